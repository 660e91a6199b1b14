--[[ rows: apply packed standings to one ranking; shared by apply.lua and fill.lua.

A row is operation (1 byte: p put, d drop), version (8 bytes, big-endian), sort key, member id.
Versions are compared as two unsigned halves, never with < on strings: Lua would use the locale.
A failed script is not rolled back, so places are written before versions: a place without its
version is put right by the next call, a version without its place never would be.
Many rows go in one command: to call one costs more than what it does for a row.
]]
-- Nil where the ranking is damaged. One that lost its keys and its count together must not look
-- like one that never was: meta knows how many rankings were ever counted.
local function read_counts(meta_key, counts_key, ranking)
    local field = redis.call('HGET', counts_key, ranking)
    if not field then
        local known = tonumber(redis.call('HGET', meta_key, 'rankings') or '0')
        field = redis.call('HLEN', counts_key) == known and '0 0 0' or 'damaged'
    end
    local places, tombstones, withheld = string.match(field, '^(%d+) (%d+) (%d+)$')
    return places and {
        places = tonumber(places), tombstones = tonumber(tombstones), withheld = tonumber(withheld),
    }
end

local function write_counts(meta_key, counts_key, ranking, text)
    if redis.call('HSET', counts_key, ranking, text) == 1 then
        redis.call('HINCRBY', meta_key, 'rankings', 1)
    end
end

local function is_newer(version, shown)
    local high, low = struct.unpack('>I4I4', version)
    local shown_high, shown_low = struct.unpack('>I4I4', shown)
    return high > shown_high or (high == shown_high and low > shown_low)
end

local function is_put(row)
    return string.byte(row, 1) == 112
end

-- Rows from `first` on, at most a thousand, for unpack has a limit. A member that comes again
-- ends the slice: its second row must find what the first did.
-- Returns the members, and the row after the slice.
local function slice(key_bytes, first, last)
    local members, seen = {}, {}
    for i = first, math.min(last, first + 999) do
        local member = string.sub(ARGV[i], is_put(ARGV[i]) and 10 + key_bytes or 10)
        if seen[member] then
            return members, i
        end
        seen[member] = true
        members[#members + 1] = member
    end
    return members, first + #members
end

-- Returns how many rows of a slice were newer than what was shown.
local function apply_slice(counts, places_key, shown_key, key_bytes, first, members)
    local all_shown = redis.call('HMGET', shown_key, unpack(members))
    local added, removed, versions = {}, {}, {}
    for k, member in ipairs(members) do
        local row, shown = ARGV[first + k - 1], all_shown[k]
        if not shown or is_newer(string.sub(row, 2, 9), shown) then
            local was_placed = shown and #shown > 8
            local old = was_placed and string.sub(shown, 9) .. member
            versions[#versions + 1] = member
            if is_put(row) then
                local place = string.sub(row, 10)
                if old ~= place then
                    added[#added + 1] = 0
                    added[#added + 1] = place
                    removed[#removed + 1] = old or nil
                end
                versions[#versions + 1] = string.sub(row, 2, 9 + key_bytes)
                if not was_placed then
                    counts.places = counts.places + 1
                    counts.tombstones = counts.tombstones - (shown and 1 or 0)
                end
            else
                if old then
                    removed[#removed + 1] = old
                    counts.places = counts.places - 1
                end
                -- Also for an unknown member: a put of before may still be on its way.
                versions[#versions + 1] = string.sub(row, 2, 9)
                if was_placed or not shown then
                    counts.tombstones = counts.tombstones + 1
                end
            end
        end
    end
    if #added > 0 then
        redis.call('ZADD', places_key, unpack(added))
    end
    if #removed > 0 then
        redis.call('ZREM', places_key, unpack(removed))
    end
    if #versions > 0 then
        redis.call('HSET', shown_key, unpack(versions))
    end
    return #versions / 2
end

-- Returns how many rows were newer than what was shown, or nil where the ranking is damaged.
local function apply_rows(
    meta_key, counts_key, places_key, shown_key, ranking, key_bytes, first, last)
    local counts = read_counts(meta_key, counts_key, ranking)
    if not counts or redis.call('ZCARD', places_key) ~= counts.places
        or redis.call('HLEN', shown_key) ~= counts.places + counts.tombstones + counts.withheld then
        write_counts(meta_key, counts_key, ranking, 'damaged')
        return nil
    end
    local applied, at = 0, first
    while at ~= last + 1 do
        local members, after = slice(key_bytes, at, last)
        applied = applied + apply_slice(counts, places_key, shown_key, key_bytes, at, members)
        at = after
    end
    if applied > 0 then
        write_counts(meta_key, counts_key, ranking, string.format('%d %d %d',
            counts.places, counts.tombstones, counts.withheld))
    end
    return applied
end
