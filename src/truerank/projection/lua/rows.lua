--[[ rows: apply packed standings to one ranking; shared by apply.lua and fill.lua.

A row is operation (1 byte: p put, d drop), version (8 bytes, big-endian), sort key, member id.
Versions are compared as two unsigned halves, never with < on strings: Lua would use the locale.
A failed script is not rolled back, so the place is written before the version: a place without
its version is put right by the next call, a version without its place never would be.
]]
local function read_counts(counts_key, ranking)
    local field = redis.call('HGET', counts_key, ranking)
    if not field then
        return 0, 0, 0
    end
    local places, tombstones, withheld = string.match(field, '^(%d+) (%d+) (%d+)$')
    return tonumber(places), tonumber(tombstones), tonumber(withheld)
end

local function is_newer(version, shown)
    local high, low = struct.unpack('>I4I4', version)
    local shown_high, shown_low = struct.unpack('>I4I4', shown)
    return high > shown_high or (high == shown_high and low > shown_low)
end

-- Returns how many rows were newer than what was shown, or nil where the ranking is damaged.
local function apply_rows(counts_key, places_key, shown_key, ranking, key_bytes, first, last)
    local places, tombstones, withheld = read_counts(counts_key, ranking)
    if not places or redis.call('ZCARD', places_key) ~= places
        or redis.call('HLEN', shown_key) ~= places + tombstones + withheld then
        redis.call('HSET', counts_key, ranking, 'damaged')
        return nil
    end
    local applied = 0
    for i = first, last do
        local row = ARGV[i]
        local put = string.byte(row, 1) == 112
        local member = string.sub(row, put and 10 + key_bytes or 10)
        local shown = redis.call('HGET', shown_key, member)
        if not shown or is_newer(string.sub(row, 2, 9), shown) then
            local was_placed = shown and #shown > 8
            local old = was_placed and string.sub(shown, 9) .. member
            if put then
                local place = string.sub(row, 10)
                if old ~= place then
                    redis.call('ZADD', places_key, 0, place)
                    if old then
                        redis.call('ZREM', places_key, old)
                    end
                end
                redis.call('HSET', shown_key, member, string.sub(row, 2, 9 + key_bytes))
                if not was_placed then
                    places = places + 1
                    tombstones = tombstones - (shown and 1 or 0)
                end
            else
                if old then
                    redis.call('ZREM', places_key, old)
                    places = places - 1
                end
                -- Also for an unknown member: a put of before may still be on its way.
                redis.call('HSET', shown_key, member, string.sub(row, 2, 9))
                if was_placed or not shown then
                    tombstones = tombstones + 1
                end
            end
            applied = applied + 1
        end
    end
    if applied > 0 then
        redis.call('HSET', counts_key, ranking,
            string.format('%d %d %d', places, tombstones, withheld))
    end
    return applied
end
