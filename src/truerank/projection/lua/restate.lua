--[[ restate: put what the source says of the states of some members in place of what was seen.

Their places follow: whoever calls this compares the standings next.

KEYS[1]  string  pointer of the group
KEYS[2]  hash    meta of the generation
KEYS[3]  hash    members of the group that aren't active
KEYS[4]  hash    counts of its rankings
ARGV[1]  epoch           ARGV[2]  generation
ARGV[3]  cursor, with which nothing may be pending
ARGV[4]  a tick taken after the source was read
ARGV[5]  1: also let meta know how many rankings are counted, all of which were compared
then     per member: member, its record as it was read and as it is to be (each behind = or -)

Returns  1 APPLIED, per member 1 or, where its record has changed, 0
         | 2 CURSOR, cursor, pending | 3 MISSING | 4 FENCED
]]
local meta = redis.call('HMGET', KEYS[2], 'epoch', 'cursor', 'pending')
if not meta[1] then
    return {3}
end
if meta[1] ~= ARGV[1] or redis.call('GET', KEYS[1]) ~= ARGV[2] then
    return {4}
end
if meta[2] ~= ARGV[3] or meta[3] ~= '' then
    return {2, meta[2], meta[3]}
end

local done = {}
for i = 6, #ARGV, 3 do
    local record = redis.call('HGET', KEYS[3], ARGV[i])
    local is_seen = (record and '=' .. record or '-') == ARGV[i + 1]
    done[#done + 1] = is_seen and 1 or 0
    if is_seen then
        if ARGV[i + 2] == '-' then
            redis.call('HDEL', KEYS[3], ARGV[i])
        else
            redis.call('HSET', KEYS[3], ARGV[i], string.sub(ARGV[i + 2], 2))
        end
    end
end
redis.call('HSET', KEYS[2], 'members', redis.call('HLEN', KEYS[3]))
if ARGV[5] == '1' then
    redis.call('HSET', KEYS[2], 'rankings', redis.call('HLEN', KEYS[4]))
end
write_covered(KEYS[2], ARGV[4])
return {1, done}
