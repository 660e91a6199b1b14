--[[ page: one answer from one snapshot: a slice, some members' places, one neighbourhood, counts.

KEYS[1]  string  pointer of the group
KEYS[2]  hash    meta of the generation
KEYS[3]  hash    counts of its rankings
KEYS[4]  zset    places of the ranking
KEYS[5]  hash    shown of the ranking
KEYS[6]  hash    members of the group that aren't active
KEYS[7]  zset    only where places are counted densely: prefixes of the ranking
ARGV[1]  generation the caller believes in
ARGV[2]  ranking
ARGV[3]  leading bytes of a sort key in which equals agree (score and tie-breaks)
ARGV[4]  1: also the snapshot, and the lives of the source
ARGV[5]  where the slice starts: `at`, `after` or `before`
ARGV[6]  at: places passed over, from 0; after, before: the row (sort key and member) it is beside
ARGV[7]  first bytes of the slice's rows, from these on; '' no bound
ARGV[8]  first bytes of the row that ends the slice; '' no bound
ARGV[9]  rows of the slice
ARGV[10] rows of the neighbourhood; 0: none
ARGV[11] the place in its middle, from 0; '' that of the first member below
ARGV[12] 1: of each member also how many are equal or better
ARGV[13] board
ARGV[14] number n of members, then the members
then     keys, or first bytes of keys, before which to count

Returns  1 OK, head, rows of the slice, members, rows of the neighbourhood,
           how many come before each key, then, densely, how many different scores and tie-breaks do
         The head is seven numbers of 64 bits: total, first place of the slice, how many are better
         than its first row, places of both bounds, first place of the neighbourhood (-1: there is
         none), how many are better; then lines: epoch, tick, pending, through, time, run_id of the
         meta, both parts of TIME, snapshot, lives. One string, for values cost more than bytes.
         A member is its place, how many are better, how many are equal or better (32 bits each)
         and its sort key; or the state of one that isn't active (h hidden, b banned, m merged);
         or '': it has no place.
         | 2 MOVED, live generation | 3 MISSING | 4 DAMAGED
         | 5 NOT_DENSE: the copy keeps no prefixes of this ranking
         Who is better is counted in members, or, densely, in different scores and tie-breaks.
]]
local live = redis.call('GET', KEYS[1])
if live ~= ARGV[1] then
    return {2, live or ''}
end
local known, known_members, epoch, tick, pending, through, time, run_id, snapshot, lives
if ARGV[4] == '1' then
    known, known_members, epoch, tick, pending, through, time, run_id, snapshot, lives =
        unpack(redis.call('HMGET', KEYS[2], 'rankings', 'members', 'epoch', 'tick', 'pending',
            'through', 'time', 'run_id', 'snapshot', 'lives'))
else
    known, known_members, epoch, tick, pending, through, time, run_id =
        unpack(redis.call('HMGET', KEYS[2], 'rankings', 'members', 'epoch', 'tick', 'pending',
            'through', 'time', 'run_id'))
end
if not epoch then
    return {3}
end
known = tonumber(known or '0')
known_members = tonumber(known_members or '0')
if redis.call('HLEN', KEYS[6]) ~= known_members then
    return {4}
end
local total = redis.call('ZCARD', KEYS[4])
local count = redis.call('HGET', KEYS[3], ARGV[2])
if not count then
    -- One that lost its keys and its count together must not look like one that never was.
    count = redis.call('HLEN', KEYS[3]) == known and '0 0 0' or 'damaged'
end
local places, tombstones, withheld, prefixes =
    string.match(count, '^(%d+) (%d+) (%d+) ?(%d*)$')
if not places or total ~= tonumber(places)
    or redis.call('HLEN', KEYS[5]) ~= places + tombstones + withheld then
    return {4}
end
if KEYS[7] and total > 0 then
    if prefixes == '' then
        return {5}
    end
    if redis.call('ZCARD', KEYS[7]) ~= tonumber(prefixes) then
        return {4}
    end
end

local row_bytes = tonumber(ARGV[3])
local better_key = KEYS[7] or KEYS[4]
local function before(key)
    return redis.call('ZLEXCOUNT', KEYS[4], '-', '(' .. key)
end
local function better_than(place)
    local prefix = string.sub(place, 1, row_bytes)
    return redis.call('ZLEXCOUNT', better_key, '-', '(' .. prefix)
end
-- All that begin with the same bytes come before the least that begins with greater ones.
local function up_to(place)
    local at = row_bytes
    while at > 0 and string.byte(place, at) == 255 do
        at = at - 1
    end
    if at == 0 then
        return total
    end
    return before(string.sub(place, 1, at - 1) .. string.char(string.byte(place, at) + 1))
end
local function rows_from(first, rows)
    local got = rows > 0 and redis.call('ZRANGE', KEYS[4], first, first + rows - 1) or {}
    return got, got[1] and first > 0 and better_than(got[1]) or 0
end

-- Both ends as places: one walk down the list finds either, however long the slice is.
local low = ARGV[7] == '' and 0 or before(ARGV[7])
local high = ARGV[8] == '' and total or before(ARGV[8])
local first, stop = low, high
local wanted = tonumber(ARGV[9])
if ARGV[5] == 'at' then
    first = low + tonumber(ARGV[6])
elseif ARGV[5] == 'after' then
    first = math.max(low, redis.call('ZLEXCOUNT', KEYS[4], '-', '[' .. ARGV[6]))
else
    stop = math.min(high, before(ARGV[6]))
    first = math.max(low, stop - wanted)
end
local rows, better = rows_from(first, math.max(0, math.min(wanted, stop - first)))

-- The strictest of the states everywhere and on this board, or nil: active.
local function state_of(member)
    local record = known_members > 0 and redis.call('HGET', KEYS[6], member) or ''
    local board, found = tonumber(ARGV[13]), {}
    for scope_at = 1, #record, 13 do
        local scope = struct.unpack('>I4', record, scope_at)
        if scope == 0 or scope == board then
            found[string.sub(record, scope_at + 12, scope_at + 12)] = true
        end
    end
    return found.m and 'm' or found.b and 'b' or found.h and 'h' or nil
end

local members = {}
local middle = tonumber(ARGV[11])
local last = 14 + tonumber(ARGV[14])
for i = 15, last do
    local shown = redis.call('HGET', KEYS[5], ARGV[i])
    local state = state_of(ARGV[i])
    local told = state or ''
    if shown and #shown > 8 then
        local place = string.sub(shown, 9) .. ARGV[i]
        local rank = redis.call('ZRANK', KEYS[4], place)
        -- Within a batch a state may be known whose moves are still to come.
        if ((rank and state) or not (rank or state)) and pending == '' then
            return {4}
        end
        if rank and not state then
            told = struct.pack('>I4I4I4', rank, better_than(place),
                ARGV[12] == '1' and up_to(place) or 0) .. string.sub(shown, 9)
            middle = middle or i == 15 and rank
        end
    end
    members[i - 14] = told
end

local window = tonumber(ARGV[10])
local around_first, around, around_better = -1, {}, 0
-- A member that is withheld is in no place: it has no neighbourhood.
if window > 0 and middle then
    -- As many rows as asked for wherever the middle is, unless the board is smaller.
    around_first = math.max(0, math.min(middle - math.floor((window - 1) / 2), total - window))
    around, around_better = rows_from(around_first, window)
end

local counts = {}
for i = last + 1, #ARGV do
    counts[#counts + 1] = before(ARGV[i])
end
if KEYS[7] then
    for i = last + 1, #ARGV do
        counts[#counts + 1] = redis.call('ZLEXCOUNT', KEYS[7], '-', '(' .. ARGV[i])
    end
end
local clock = redis.call('TIME')
local head = struct.pack('>i8i8i8i8i8i8i8',
    total, first, better, low, high, around_first, around_better)
    .. epoch .. '\n' .. (tick or '') .. '\n' .. (pending or '') .. '\n' .. (through or '') .. '\n'
    .. (time or '') .. '\n' .. (run_id or '') .. '\n' .. clock[1] .. '\n' .. clock[2] .. '\n'
    .. (snapshot or '') .. '\n' .. (lives or '')
return {1, head, rows, members, around, counts}
