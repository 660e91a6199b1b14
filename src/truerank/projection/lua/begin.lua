--[[ begin: make the meta of a new generation, once.

KEYS[1]  hash  meta of the generation
ARGV     names and values of its fields
Returns  1 made | 0 there already
]]
if redis.call('EXISTS', KEYS[1]) == 1 then
    return 0
end
for i = 1, #ARGV, 2 do
    redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1])
end
return 1
