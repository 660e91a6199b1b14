--[[ repair: put what the source says of some members in place of what was seen of them.

Unlike apply it asks for no newer version: it may lower one. It asks instead that the copy stands
where it stood when the entries were read, and that each entry is still what was read.

KEYS[1]  string  pointer of the group: a copy that isn't live gives no hints
KEYS[2]  hash    meta of the generation
KEYS[3]  hash    counts of its rankings
KEYS[4]  hash    members of the group that aren't active
KEYS[5+] places and shown of the ranking, and where it is counted densely its prefixes
ARGV[1]  epoch           ARGV[2]  generation
ARGV[3]  cursor, with which nothing may be pending
ARGV[4]  a tick taken after the source was read: it covers these rows
ARGV[5]  channel of hints
ARGV[6]  PUBLISH or SPUBLISH
ARGV[7]  ranking         ARGV[8]  board
ARGV[9]  0 or, where it is counted densely, in how many bytes equals agree
ARGV[10] number n of prefixes to bring in line with the places, then the prefixes
then     per member: member, the entry as it was read and as it is to be (each behind = or, where
         there is none, -), number of places to take away, the places

Returns  1 APPLIED, per member 1 or, where its entry has changed, 0; live
         | 2 CURSOR, cursor, pending | 3 MISSING | 4 FENCED
]]
local meta = redis.call('HMGET', KEYS[2], 'epoch', 'cursor', 'pending')
if not meta[1] then
    return {3}
end
if meta[1] ~= ARGV[1] then
    return {4}
end
if meta[2] ~= ARGV[3] or meta[3] ~= '' then
    return {2, meta[2], meta[3]}
end

local ranking, board, equal_bytes = ARGV[7], tonumber(ARGV[8]), tonumber(ARGV[9])
local keys = keys_at(5, equal_bytes)
local counts = read_counts(KEYS[2], KEYS[3], ranking, equal_bytes)
-- Where the counts agree with the keys they are carried on; where they don't they may agree again
-- afterwards, for who damaged the keys knows nothing of counts.
local carried = counts and is_whole(counts, keys.places, keys.shown, keys.prefixes)

-- Which of the three counts an entry is in; nil: in none.
local function kind_of(member, shown)
    if not shown then
        return nil
    elseif #shown <= 8 then
        return 'tombstones'
    end
    local place = redis.call('ZSCORE', keys.places, string.sub(shown, 9) .. member)
    return place and 'places' or 'withheld'
end

local function count(member, shown, change)
    local kind = carried and kind_of(member, shown)
    if kind and kind ~= 'places' then
        counts[kind] = counts[kind] + change
    end
end

local function wanted_of(text)
    return string.sub(text, 1, 1) == '=' and string.sub(text, 2) or nil
end

local done, changed = {}, false
local added, removed = {}, {}
local at = 11 + tonumber(ARGV[10])
while at <= #ARGV do
    local member, seen, wanted = ARGV[at], wanted_of(ARGV[at + 1]), wanted_of(ARGV[at + 2])
    local last = at + 3 + tonumber(ARGV[at + 3])
    local shown = redis.call('HGET', keys.shown, member) or nil
    done[#done + 1] = shown == seen and 1 or 0
    if shown == seen then
        changed = true
        count(member, shown, -1)
        local record = redis.call('HGET', KEYS[4], member)
        local place = wanted and #wanted > 8 and not (record and is_withheld(record, board))
            and string.sub(wanted, 9) .. member or nil
        if place then
            redis.call('ZADD', keys.places, '0', place)
            added[#added + 1] = '0'
            added[#added + 1] = place
        end
        for i = at + 4, last do
            if ARGV[i] ~= place then
                redis.call('ZREM', keys.places, ARGV[i])
                removed[#removed + 1] = ARGV[i]
            end
        end
        if wanted then
            redis.call('HSET', keys.shown, member, wanted)
        else
            redis.call('HDEL', keys.shown, member)
        end
        count(member, wanted, 1)
    end
    at = last + 1
end

if keys.prefixes then
    for i = 11, 10 + tonumber(ARGV[10]) do
        changed = true
        removed[#removed + 1] = ARGV[i]
        redis.call('ZREM', keys.prefixes, ARGV[i])
        local first = redis.call(
            'ZRANGE', keys.places, '[' .. ARGV[i], '+', 'BYLEX', 'LIMIT', 0, 1)[1]
        if first and string.sub(first, 1, equal_bytes) == ARGV[i] then
            added[#added + 1] = '0'
            added[#added + 1] = first
        end
    end
    apply_prefixes({prefixes = 0}, keys.places, keys.prefixes, equal_bytes, added, removed)
end
if carried then
    counts.places = redis.call('ZCARD', keys.places)
    counts.prefixes = keys.prefixes and redis.call('ZCARD', keys.prefixes) or nil
    if is_whole(counts, keys.places, keys.shown, keys.prefixes) then
        write_counts(KEYS[2], KEYS[3], ranking, counts_text(counts))
    end
end

local is_live = redis.call('GET', KEYS[1]) == ARGV[2]
if changed then
    write_covered(KEYS[2], ARGV[4])
    if is_live then
        redis.call(ARGV[6], ARGV[5],
            ARGV[8] .. ' ' .. ARGV[4] .. ' ' .. ARGV[2] .. ' ' .. ranking)
    end
end
return {1, done, is_live and 1 or 0}
