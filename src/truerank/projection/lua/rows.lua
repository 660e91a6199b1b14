--[[ rows: apply packed rows to one ranking, or to the states; shared by apply.lua and fill.lua.

A row of a ranking is operation (1 byte: p put, d drop, m move), version (8 bytes, big-endian), sort
key (of a put), member id. A move has no version: it brings a place in line with the states.
A row of states is operation s, version, state (1 byte, a: active), member id.
Members that aren't active have a record in the members key: for each scope its board (4 bytes,
0: all boards), the state's version (8 bytes), the state. A standing of theirs is kept in the
table, but has no place.
Versions are compared as two unsigned halves, never with < on strings: Lua would use the locale.
A failed script is not rolled back, so places are written before versions: a place without its
version is put right by the next call, a version without its place never would be.
Many rows go in one command: to call one costs more than what it does for a row.
Where a ranking is counted densely, the first bytes of its places (score and tie-breaks, in which
equals agree) are kept as well, each once. Whether a ranking is, is decided when its first row comes;
one that no longer asks for it is counted so no more.
]]
local SCOPE_BYTES = 13
local PUT, MOVE = 112, 109
-- Every row asks for these: a local is found faster than a field of a global.
local byte, sub, unpack_numbers, rows = string.byte, string.sub, struct.unpack, ARGV

-- Nil where the ranking is damaged. One that lost its keys and its count together must not look
-- like one that never was: meta knows how many rankings were ever counted.
local function read_counts(meta_key, counts_key, ranking, equal_bytes)
    local field = redis.call('HGET', counts_key, ranking)
    if not field then
        local known = tonumber(redis.call('HGET', meta_key, 'rankings') or '0')
        local none = equal_bytes > 0 and '0 0 0 0' or '0 0 0'
        field = redis.call('HLEN', counts_key) == known and none or 'damaged'
    end
    local places, tombstones, withheld, prefixes =
        string.match(field, '^(%d+) (%d+) (%d+) ?(%d*)$')
    return places and {
        places = tonumber(places), tombstones = tonumber(tombstones), withheld = tonumber(withheld),
        prefixes = equal_bytes > 0 and tonumber(prefixes) or nil,
    }, field
end

local function counts_text(counts)
    local text = string.format('%d %d %d', counts.places, counts.tombstones, counts.withheld)
    return counts.prefixes and text .. ' ' .. counts.prefixes or text
end

-- Asked of the keys themselves, so that nothing they lost goes unnoticed.
local function is_whole(counts, places_key, shown_key, prefixes_key)
    return redis.call('ZCARD', places_key) == counts.places
        and redis.call('HLEN', shown_key) == counts.places + counts.tombstones + counts.withheld
        and (not counts.prefixes or redis.call('ZCARD', prefixes_key) == counts.prefixes)
end

local function write_counts(meta_key, counts_key, ranking, text)
    if redis.call('HSET', counts_key, ranking, text) == 1 then
        redis.call('HINCRBY', meta_key, 'rankings', 1)
    end
end

-- Whether the members key holds as many members as meta says: without it the hidden would be seen.
local function members_are_whole(meta_key, members_key)
    local known = tonumber(redis.call('HGET', meta_key, 'members') or '0')
    return redis.call('HLEN', members_key) == known
end

-- Two workers may be at work, and the one with the older tick may come last: what the newer one
-- covers would be covered no longer.
local function write_covered(meta_key, tick)
    local covered = redis.call('HGET', meta_key, 'covered') or '0'
    local tick_id = tonumber(string.match(tick, '^%d+'))
    local covered_id = tonumber(string.match(covered, '^%d+'))
    if tick_id > covered_id then
        redis.call('HSET', meta_key, 'covered', tick)
    end
end

-- Whether the version that begins at the second byte of a row is newer than what is shown.
local function is_newer(row, shown)
    local high, low = unpack_numbers('>I4I4', row, 2)
    local shown_high, shown_low = unpack_numbers('>I4I4', shown)
    return high > shown_high or (high == shown_high and low > shown_low)
end

-- Whether the member of a record is anything but active on a board.
local function is_withheld(record, board)
    for at = 1, #record, SCOPE_BYTES do
        local scope = struct.unpack('>I4', record, at)
        if (scope == 0 or scope == board) and string.byte(record, at + 12) ~= 97 then
            return true
        end
    end
    return false
end

-- Take in the states of one scope. While a scan is under way, active is kept with its version:
-- the scan may still bring what was before.
local function apply_states(meta_key, members_key, board, first, last)
    local keeps = redis.call('HGET', meta_key, 'scan') ~= 'done'
    local added = 0
    for i = first, last do
        local version, state = string.sub(ARGV[i], 2, 9), string.sub(ARGV[i], 10, 10)
        local member = string.sub(ARGV[i], 11)
        local record = redis.call('HGET', members_key, member) or ''
        local others, known = '', nil
        for at = 1, #record, SCOPE_BYTES do
            if struct.unpack('>I4', record, at) == board then
                known = string.sub(record, at + 4, at + 11)
            else
                others = others .. string.sub(record, at, at + 12)
            end
        end
        if not known or is_newer(ARGV[i], known) then
            if state ~= 'a' or keeps then
                others = others .. struct.pack('>I4', board) .. version .. state
            end
            if others ~= '' then
                added = added + redis.call('HSET', members_key, member, others)
            else
                added = added - redis.call('HDEL', members_key, member)
            end
        end
    end
    if added ~= 0 then
        redis.call('HINCRBY', meta_key, 'members', added)
    end
end

-- Rows from `first` on, at most a thousand, for unpack has a limit. A member that comes again
-- ends the slice: its second row must find what the first did.
-- Returns the members, and the row after the slice.
local function slice(key_bytes, first, last)
    local members, seen = {}, {}
    local after_key = 10 + key_bytes
    for i = first, math.min(last, first + 999) do
        local row = rows[i]
        local member = sub(row, byte(row) == PUT and after_key or 10)
        if seen[member] then
            return members, i
        end
        seen[member] = true
        members[i - first + 1] = member
    end
    return members, first + #members
end

-- Per member the sort key and id it was shown with, and whether that has a place: where nothing is
-- withheld every one has.
local function read_places(counts, places_key, members, all_shown)
    local old = {}
    for k = 1, #members do
        local shown = all_shown[k]
        if shown and #shown > 8 then
            old[k] = sub(shown, 9) .. members[k]
        end
    end
    if counts.withheld == 0 then
        return old, old
    end
    local asked, placed = {}, {}
    for k = 1, #members do
        asked[#asked + 1] = old[k]
    end
    if #asked > 0 then
        local scores = redis.call('ZMSCORE', places_key, unpack(asked))
        local at = 0
        for k = 1, #members do
            if old[k] then
                at = at + 1
                placed[k] = scores[at] and true or false
            end
        end
    end
    return old, placed
end

-- Bring the prefixes in line with places that came and went. Whether a prefix is still in use is
-- asked of the places, not counted: so to repeat a call that failed half-way puts it right.
local function apply_prefixes(counts, places_key, prefixes_key, equal_bytes, added, removed)
    local used, came, went = {}, {}, {}
    for k = 2, #added, 2 do
        local prefix = string.sub(added[k], 1, equal_bytes)
        if not used[prefix] then
            used[prefix] = true
            came[#came + 1] = 0
            came[#came + 1] = prefix
        end
    end
    for _, place in ipairs(removed) do
        local prefix = string.sub(place, 1, equal_bytes)
        if not used[prefix] then
            used[prefix] = true
            local left = redis.call(
                'ZRANGE', places_key, '[' .. prefix, '+', 'BYLEX', 'LIMIT', 0, 1)[1]
            if not left or string.sub(left, 1, equal_bytes) ~= prefix then
                went[#went + 1] = prefix
            end
        end
    end
    if #came > 0 then
        counts.prefixes = counts.prefixes + redis.call('ZADD', prefixes_key, unpack(came))
    end
    if #went > 0 then
        counts.prefixes = counts.prefixes - redis.call('ZREM', prefixes_key, unpack(went))
    end
end

-- Returns how many rows of a slice were newer than what was shown, and of how many readers see
-- something.
local function apply_slice(
    counts, keys, key_bytes, equal_bytes, first, members, records, board)
    local places_key, shown_key = keys.places, keys.shown
    local all_shown = redis.call('HMGET', shown_key, unpack(members))
    local old, placed = read_places(counts, places_key, members, all_shown)
    local added, removed, versions = {}, {}, {}
    local after_key = 9 + key_bytes
    local seen, additions, removals, changes = 0, 0, 0, 0
    for k = 1, #members do
        local row, shown = rows[first + k - 1], all_shown[k]
        local kind = byte(row)
        local newer = kind ~= MOVE and (not shown or is_newer(row, shown))
        local kept = old[k]
        if newer then
            -- A drop also of an unknown member: a put of before may still be on its way.
            kept = kind == PUT and sub(row, 10) or nil
            versions[changes + 1] = members[k]
            versions[changes + 2] = sub(row, 2, kept and after_key or 9)
            changes = changes + 2
        end
        -- Not only where the row is newer: a state that came in between may not know of it.
        local withheld = kept and records and records[k] and is_withheld(records[k], board)
        local was = placed[k] and old[k] or nil
        local is = not withheld and kept or nil
        if was ~= is then
            if is then
                added[additions + 1] = '0'
                added[additions + 2] = is
                additions = additions + 2
            end
            if was then
                removals = removals + 1
                removed[removals] = was
            end
        end
        if was ~= is or (newer and is) then
            seen = seen + 1
        end
        if is and not was then
            counts.places = counts.places + 1
        elseif was and not is then
            counts.places = counts.places - 1
        end
        if withheld then
            counts.withheld = counts.withheld + 1
        end
        if old[k] and not placed[k] then
            counts.withheld = counts.withheld - 1
        end
        if newer then
            if not kept then
                counts.tombstones = counts.tombstones + 1
            end
            if shown and not old[k] then
                counts.tombstones = counts.tombstones - 1
            end
        end
    end
    if additions > 0 then
        redis.call('ZADD', places_key, unpack(added))
    end
    if removals > 0 then
        redis.call('ZREM', places_key, unpack(removed))
    end
    if counts.prefixes and additions + removals > 0 then
        apply_prefixes(counts, places_key, keys.prefixes, equal_bytes, added, removed)
    end
    if changes > 0 then
        redis.call('HSET', shown_key, unpack(versions))
    end
    return changes / 2, seen
end

-- The keys of a ranking, which begin at one of KEYS, and where those of the next one begin.
local function keys_at(key, equal_bytes)
    local prefixes = equal_bytes > 0 and KEYS[key + 2] or nil
    return {places = KEYS[key], shown = KEYS[key + 1], prefixes = prefixes},
        key + (prefixes and 3 or 2)
end

-- Returns how many rows were newer than what was shown, or nil where the ranking is damaged; and
-- of how many readers see something.
local function apply_rows(
    meta_key, counts_key, members_key, keys, ranking, board, key_bytes, equal_bytes, first, last)
    local counts, before = read_counts(meta_key, counts_key, ranking, equal_bytes)
    if not counts or not is_whole(counts, keys.places, keys.shown, keys.prefixes) then
        write_counts(meta_key, counts_key, ranking, 'damaged')
        return nil
    end
    local any_states = redis.call('EXISTS', members_key) == 1
    local applied, seen, at = 0, 0, first
    while at ~= last + 1 do
        local members, after = slice(key_bytes, at, last)
        local records = any_states and redis.call('HMGET', members_key, unpack(members))
        local newer, visible = apply_slice(
            counts, keys, key_bytes, equal_bytes, at, members, records, board)
        applied, seen, at = applied + newer, seen + visible, after
    end
    local after = counts_text(counts)
    if applied > 0 or after ~= before then
        write_counts(meta_key, counts_key, ranking, after)
    end
    return applied, seen
end
