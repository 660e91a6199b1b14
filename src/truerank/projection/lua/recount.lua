--[[ recount: count a ranking again whose standings were compared, and write down what it comes to.

KEYS[1]  hash  meta of the generation
KEYS[2]  hash  counts of its rankings
KEYS[3]  hash  members of the group that aren't active
KEYS[4+] places and shown of the ranking, and where it is counted densely its prefixes
ARGV[1]  epoch
ARGV[2]  ranking
ARGV[3]  0 or, where it is counted densely, in how many bytes equals agree
ARGV[4]  how many entries may be looked at in one call

Returns  1 APPLIED | 3 MISSING | 4 FENCED
         | 5 LEFT: quarantined, or too large to be counted in one call
]]
local epoch = redis.call('HGET', KEYS[1], 'epoch')
if not epoch then
    return 3
end
if epoch ~= ARGV[1] then
    return 4
end
local keys = keys_at(4, tonumber(ARGV[3]))
if redis.call('HGET', KEYS[2], ARGV[2]) == 'damaged' then
    return 5
end
local places, entries = redis.call('ZCARD', keys.places), redis.call('HLEN', keys.shown)
local tombstones = 0
if redis.call('EXISTS', KEYS[3]) == 0 then
    tombstones = entries - places -- nobody is withheld
elseif entries <= tonumber(ARGV[4]) then
    local values = redis.call('HVALS', keys.shown)
    for i = 1, #values do
        tombstones = tombstones + (#values[i] == 8 and 1 or 0)
    end
else
    return 5
end
local withheld = entries - places - tombstones
if tombstones < 0 or withheld < 0 then
    return 5
end
write_counts(KEYS[1], KEYS[2], ARGV[2], counts_text({
    places = places, tombstones = tombstones, withheld = withheld,
    prefixes = keys.prefixes and redis.call('ZCARD', keys.prefixes) or nil,
}))
return 1
