--[[ purge: forget that members were removed.

Only in a copy that has seen all of the removals and will not read of them again, and whose scan is
done: nothing can bring back what a tombstone keeps out.

KEYS[1]  hash  meta of the generation
KEYS[2]  hash  counts of its rankings
KEYS[3]  hash  members of the group that aren't active
KEYS[4+] per ranking: its shown
ARGV[1]  epoch
ARGV[2]  the lowest tick that the copy must be at
ARGV[3]  number n of members, then the members
then     rankings

Returns  1 PURGED | 2 BEHIND | 3 MISSING | 4 FENCED
]]
local meta = redis.call('HMGET', KEYS[1], 'epoch', 'scan', 'base')
if not meta[1] then
    return 3
end
if meta[1] ~= ARGV[1] then
    return 4
end
local tick_id, covered_id = tonumber(meta[3] or '0'), tonumber(ARGV[2])
if meta[2] ~= 'done' or tick_id < covered_id then
    return 2
end

local last = 3 + tonumber(ARGV[3])
for i = 4, last do
    local record, active = redis.call('HGET', KEYS[3], ARGV[i]), true
    for at = 1, record and #record or 0, 13 do
        active = active and string.byte(record, at + 12) == 97
    end
    if record and active then
        redis.call('HDEL', KEYS[3], ARGV[i])
        redis.call('HINCRBY', KEYS[1], 'members', -1)
    end
end

for k = last + 1, #ARGV do
    local shown_key, gone = KEYS[k - last + 3], 0
    for i = 4, last do
        local shown = redis.call('HGET', shown_key, ARGV[i])
        if shown and #shown == 8 then
            gone = gone + redis.call('HDEL', shown_key, ARGV[i])
        end
    end
    -- A ranking that is damaged has no counts, and stays so.
    local places, tombstones, rest = string.match(
        redis.call('HGET', KEYS[2], ARGV[k]) or '', '^(%d+) (%d+)( .*)$')
    if gone ~= 0 and places then
        redis.call('HSET', KEYS[2], ARGV[k],
            places .. ' ' .. string.format('%d', tombstones - gone) .. rest)
    end
end
return 1
