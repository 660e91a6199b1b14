--[[ count: which rankings of a copy are not as they were left; nothing is written.

KEYS[1]  hash  meta of the generation
KEYS[2]  hash  counts of its rankings
KEYS[3+] per ranking: its places, its shown, its prefixes
ARGV     rankings

Returns  the damaged rankings; none where the copy is gone
]]
local damaged = {}
if redis.call('EXISTS', KEYS[1]) == 0 then
    return damaged
end
local key = 3
for i = 1, #ARGV do
    local field = redis.call('HGET', KEYS[2], ARGV[i]) or 'damaged'
    local places, tombstones, withheld, prefixes =
        string.match(field, '^(%d+) (%d+) (%d+) ?(%d*)$')
    if not places or redis.call('ZCARD', KEYS[key]) ~= tonumber(places)
        or redis.call('HLEN', KEYS[key + 1]) ~= places + tombstones + withheld
        or (prefixes ~= '' and redis.call('ZCARD', KEYS[key + 2]) ~= tonumber(prefixes)) then
        damaged[#damaged + 1] = ARGV[i]
    end
    key = key + 3
end
return damaged
