--[[ inspect: what the live copy holds of some members of a ranking, at one cursor; nothing is written.

KEYS[1]  string  pointer of the group
KEYS[2]  hash    meta of the generation
KEYS[3]  hash    counts of its rankings
KEYS[4]  zset    places of the ranking
KEYS[5]  hash    shown of the ranking
KEYS[6]  zset    prefixes of the ranking
ARGV[1]  generation the caller believes in
ARGV[2]  ranking
ARGV[3]  number n of prefixes, then the prefixes
then     per member: member, number of places, the places to look for

Returns  1 OK, meta fields, the ranking's count ('' where it has none),
           {places, places with score 0, entries, prefixes, rankings counted, rankings known},
           per prefix {1 where it is kept, 1 where a place begins with it},
           per member {1 where it has an entry, the entry, then place and score of each that is
               there, of those looked for and the one that its entry names}
         | 2 MOVED, live generation | 3 MISSING
]]
local live = redis.call('GET', KEYS[1])
if live ~= ARGV[1] then
    return {2, live or ''}
end
local meta = redis.call(
    'HMGET', KEYS[2], 'epoch', 'cursor', 'pending', 'snapshot', 'base', 'covered', 'rankings')
if not meta[1] or not meta[2] then
    return {3}
end
local sizes = {
    redis.call('ZCARD', KEYS[4]),
    redis.call('ZCOUNT', KEYS[4], 0, 0),
    redis.call('HLEN', KEYS[5]),
    redis.call('ZCARD', KEYS[6]),
    redis.call('HLEN', KEYS[3]),
    meta[7] or '0',
}
meta[7] = nil

local prefixes = {}
local at = 4 + tonumber(ARGV[3])
for i = 4, at - 1 do
    local first = redis.call('ZRANGE', KEYS[4], '[' .. ARGV[i], '+', 'BYLEX', 'LIMIT', 0, 1)[1]
    prefixes[#prefixes + 1] = {
        redis.call('ZSCORE', KEYS[6], ARGV[i]) and 1 or 0,
        first and string.sub(first, 1, #ARGV[i]) == ARGV[i] and 1 or 0,
    }
end

local members = {}
while at <= #ARGV do
    local member, last = ARGV[at], at + 1 + tonumber(ARGV[at + 1])
    local shown = redis.call('HGET', KEYS[5], member)
    local found, seen = {shown and 1 or 0, shown or ''}, {}
    local function look_for(place)
        local score = not seen[place] and redis.call('ZSCORE', KEYS[4], place)
        seen[place] = true
        if score then
            found[#found + 1] = place
            found[#found + 1] = score
        end
    end
    for i = at + 2, last do
        look_for(ARGV[i])
    end
    if shown and #shown > 8 then
        look_for(string.sub(shown, 9) .. member)
    end
    members[#members + 1] = found
    at = last + 1
end
return {1, meta, redis.call('HGET', KEYS[3], ARGV[2]) or '', sizes, prefixes, members}
