--[[ fill: bring one chunk of a scan into a warming generation.

KEYS[1]  hash  meta of the generation
KEYS[2]  hash  counts of its rankings
KEYS[3]  hash  members of the group that aren't active
KEYS[4+] per ranking: its places, its shown, and where it is counted densely its prefixes
ARGV[1]  epoch
ARGV[2]  position of the scan that is required
ARGV[3]  position to write
ARGV[4]  a tick taken after the chunk was read: it covers these rows
ARGV[5]  '' or, with the last chunk, the snapshot of that tick, which the cursor must contain
then per ranking as in apply.lua

Returns  1 APPLIED, rows applied, damaged rankings | 2 SCAN, position | 3 MISSING | 4 FENCED
]]
local meta = redis.call('HMGET', KEYS[1], 'epoch', 'scan')
if not meta[1] then
    return {3}
end
if meta[1] ~= ARGV[1] then
    return {4}
end
if meta[2] ~= ARGV[2] then
    return {2, meta[2]}
end

local at = 6
local key = 4
local total = 0
local damaged = {}
if not members_are_whole(KEYS[1], KEYS[3]) then
    damaged[1] = '0'
    at = #ARGV + 1
end
while at <= #ARGV do
    local ranking, board, key_bytes = ARGV[at], tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])
    local equal_bytes = tonumber(ARGV[at + 3])
    local first = at + 5
    local last = at + 4 + tonumber(ARGV[at + 4])
    local keys
    keys, key = keys_at(key, equal_bytes)
    if key_bytes == -1 then
        apply_states(KEYS[1], KEYS[3], board, first, last)
    else
        local applied = apply_rows(
            KEYS[1], KEYS[2], KEYS[3], keys, ranking, board, key_bytes, equal_bytes, first, last)
        if applied then
            total = total + applied
        else
            damaged[#damaged + 1] = ranking
        end
    end
    at = last + 1
end
write_covered(KEYS[1], ARGV[4])
if ARGV[5] ~= '' then
    redis.call('HSET', KEYS[1], 'high', ARGV[5])
end
redis.call('HSET', KEYS[1], 'scan', ARGV[3])
return {1, total, damaged}
