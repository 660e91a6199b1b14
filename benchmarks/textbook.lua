--[[ Show one event of the outbox, once.

KEYS[1]  string  marker of the event
KEYS[2]  zset    the ranking: member with its score
KEYS[3]  hash    member to version
ARGV     member, score, version, seconds until the marker expires
Returns  1 shown | 0 seen before, or older than what is shown
]]
if not redis.call('SET', KEYS[1], '1', 'NX', 'EX', ARGV[4]) then
    return 0
end
local shown = redis.call('HGET', KEYS[3], ARGV[1])
if shown and tonumber(shown) >= tonumber(ARGV[3]) then
    return 0
end
redis.call('ZADD', KEYS[2], ARGV[2], ARGV[1])
redis.call('HSET', KEYS[3], ARGV[1], ARGV[3])
return 1
