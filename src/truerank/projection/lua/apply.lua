--[[ apply: show the standings of one call of a batch that are newer than what is shown, then move
the cursor, or the progress inside the batch.

KEYS[1]  string  pointer of the group: a copy that isn't live gives no hints
KEYS[2]  hash    meta of the generation
KEYS[3]  hash    counts of its rankings
KEYS[4]  hash    members of the group that aren't active
KEYS[5+] per ranking: its places, its shown, and where it is counted densely its prefixes
ARGV[1]  epoch           ARGV[2]  generation
ARGV[3]  cursor and      ARGV[4]  pending that are required
ARGV[5]  pending to write ('' closes the batch: then the meta fields below are written)
ARGV[6]  the tick that covers these rows
ARGV[7]  channel of hints
ARGV[8]  PUBLISH or SPUBLISH
ARGV[9]  number n of meta fields, then n names and values
then per ranking: ranking, board, bytes of a sort key, 0 or, where it is counted densely, in how many
         bytes of it equals agree, number of rows, the rows
(-1 bytes: states of members; no ranking has that number, and its keys stay untouched)

Returns  1 APPLIED, rows applied, damaged rankings, 1 where readers read this copy
         | 2 CURSOR, cursor, pending | 3 MISSING | 4 FENCED
         Where the members are damaged no row is applied, and ranking 0 is named.
Repeat   any number of calls, in any order, end at the highest version.
]]
local meta = redis.call('HMGET', KEYS[2], 'epoch', 'cursor', 'pending')
if not meta[1] then
    return {3}
end
if meta[1] ~= ARGV[1] then
    return {4}
end
if meta[2] ~= ARGV[3] or meta[3] ~= ARGV[4] then
    return {2, meta[2], meta[3]}
end

local fields = tonumber(ARGV[9])
local at = 10 + 2 * fields
local key = 5
local total = 0
local damaged = {}
local boards = {}
local changed = {}
if not members_are_whole(KEYS[2], KEYS[4]) then
    damaged[1] = '0'
    at = #ARGV + 1
end
while at <= #ARGV do
    local ranking, board, key_bytes = ARGV[at], ARGV[at + 1], tonumber(ARGV[at + 2])
    local equal_bytes = tonumber(ARGV[at + 3])
    local first = at + 5
    local last = at + 4 + tonumber(ARGV[at + 4])
    local keys
    keys, key = keys_at(key, equal_bytes)
    if key_bytes == -1 then
        apply_states(KEYS[2], KEYS[4], tonumber(board), first, last)
    else
        local applied, seen = apply_rows(
            KEYS[2], KEYS[3], KEYS[4], keys, ranking, tonumber(board), key_bytes, equal_bytes,
            first, last)
        if not applied then
            damaged[#damaged + 1] = ranking
        else
            total = total + applied
            if seen > 0 then
                if not changed[board] then
                    boards[#boards + 1] = board
                    changed[board] = {}
                end
                changed[board][#changed[board] + 1] = ranking
            end
        end
    end
    at = last + 1
end

if fields > 0 then
    redis.call('HSET', KEYS[2], unpack(ARGV, 10, 9 + 2 * fields))
end
write_covered(KEYS[2], ARGV[6])
redis.call('HSET', KEYS[2], 'pending', ARGV[5])

local is_live = redis.call('GET', KEYS[1]) == ARGV[2]
if is_live then
    for _, board in ipairs(boards) do
        redis.call(ARGV[8], ARGV[7],
            board .. ' ' .. ARGV[6] .. ' ' .. ARGV[2] .. ' ' .. table.concat(changed[board], ','))
    end
end
return {1, total, damaged, is_live and 1 or 0}
