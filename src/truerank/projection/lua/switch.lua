--[[ switch: let readers read another generation, in one step.

The caller has judged from what it read that the scan is done, that the cursor has passed the
tick after it, and that readers won't go backwards; here only nothing may have changed since.

KEYS[1]  string  pointer of the group
KEYS[2]  hash    meta of the new generation
KEYS[3]  hash    meta of the generation that is live, or the new one again where none is
ARGV[1]  epoch
ARGV[2]  the new generation        ARGV[3]  its cursor
ARGV[4]  the live generation, '' where none is
ARGV[5]  its cursor, '' where its meta is missing

Returns  1 SWITCHED | 2 CHANGED | 3 MISSING
]]
local meta = redis.call('HMGET', KEYS[2], 'epoch', 'cursor', 'pending', 'scan')
if not meta[1] then
    return 3
end
local live = redis.call('GET', KEYS[1]) or ''
if meta[1] ~= ARGV[1] or meta[2] ~= ARGV[3] or meta[3] ~= '' or meta[4] ~= 'done'
    or live ~= ARGV[4] then
    return 2
end
if live ~= '' and ARGV[5] ~= '' and redis.call('HGET', KEYS[3], 'cursor') ~= ARGV[5] then
    return 2
end
redis.call('SET', KEYS[1], ARGV[2])
return 1
