--[[ quarantine: let rankings be answered from PostgreSQL for as long as this copy exists.

KEYS[1]  hash  meta of the generation
KEYS[2]  hash  counts of its rankings
ARGV[1]  epoch
ARGV[2+] rankings

Returns  1 MARKED | 3 MISSING | 4 FENCED
]]
local epoch = redis.call('HGET', KEYS[1], 'epoch')
if not epoch then
    return 3
end
if epoch ~= ARGV[1] then
    return 4
end
for i = 2, #ARGV do
    if redis.call('HSET', KEYS[2], ARGV[i], 'damaged') == 1 then
        redis.call('HINCRBY', KEYS[1], 'rankings', 1)
    end
end
return 1
