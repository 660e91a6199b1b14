--[[ page: one answer from one snapshot: a slice, some members' places, one neighbourhood.

KEYS[1]  string  pointer of the group
KEYS[2]  hash    meta of the generation
KEYS[3]  hash    counts of its rankings
KEYS[4]  zset    places of the ranking
KEYS[5]  hash    shown of the ranking
ARGV[1]  generation the caller believes in
ARGV[2]  ranking
ARGV[3]  leading bytes of a sort key in which equals agree (score and tie-breaks)
ARGV[4]  first place of the slice, from 0        ARGV[5]  rows of the slice
ARGV[6]  1: also the snapshot
ARGV[7]  rows of the neighbourhood of the first member below; 0: none
ARGV[8+] members

Returns  1 OK, meta fields, TIME, total,
           {rows of the slice, how many are better than its first},
           per member {place, how many are better, sort key} or {},
           {first place, rows, how many are better than its first} of the neighbourhood or {}
         | 2 MOVED, live generation | 3 MISSING | 4 DAMAGED
]]
local live = redis.call('GET', KEYS[1])
if live ~= ARGV[1] then
    return {2, live or ''}
end
local meta = redis.call('HMGET', KEYS[2], 'epoch', 'tick', 'pending', 'through', 'time', 'run_id',
    ARGV[6] == '1' and 'snapshot' or 'none', 'rankings')
if not meta[1] then
    return {3}
end
local known = tonumber(meta[8] or '0')
meta[8] = nil
local total = redis.call('ZCARD', KEYS[4])
local count = redis.call('HGET', KEYS[3], ARGV[2])
if not count then
    -- One that lost its keys and its count together must not look like one that never was.
    count = redis.call('HLEN', KEYS[3]) == known and '0 0 0' or 'damaged'
end
local places, tombstones, withheld = string.match(count, '^(%d+) (%d+) (%d+)$')
if not places or total ~= tonumber(places)
    or redis.call('HLEN', KEYS[5]) ~= places + tombstones + withheld then
    return {4}
end

local row_bytes = tonumber(ARGV[3])
local function better_than(place)
    return redis.call('ZLEXCOUNT', KEYS[4], '-', '(' .. string.sub(place, 1, row_bytes))
end
local function slice(first, rows)
    local got = rows > 0 and redis.call('ZRANGE', KEYS[4], first, first + rows - 1) or {}
    return got, got[1] and better_than(got[1]) or 0
end

local rows, better = slice(tonumber(ARGV[4]), tonumber(ARGV[5]))
local members = {}
for i = 8, #ARGV do
    local shown = redis.call('HGET', KEYS[5], ARGV[i])
    members[#members + 1] = {}
    if shown and #shown > 8 then
        local place = string.sub(shown, 9) .. ARGV[i]
        local rank = redis.call('ZRANK', KEYS[4], place)
        if not rank and withheld == '0' then
            return {4}
        end
        if rank then
            members[#members] = {rank, better_than(place), string.sub(shown, 9)}
        end
    end
end

local around = {}
local window = tonumber(ARGV[7])
if window > 0 and members[1][1] then
    -- As many rows as asked for wherever the member stands, unless the board is smaller.
    local first = math.max(0, math.min(
        members[1][1] - math.floor((window - 1) / 2), total - window))
    local around_rows, around_better = slice(first, window)
    around = {first, around_rows, around_better}
end
return {1, meta, redis.call('TIME'), total, {rows, better}, members, around}
