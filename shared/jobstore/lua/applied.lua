-- applied.lua: notes that a finished job is published.
-- KEYS: job, in, out
-- ARGV: ms when it was published by the head, ms the texts live on
-- Returns: {OK} | {NOT_FOUND} | {STATE, status, code}
-- Invariant: appliedAt is set once; lifetimes only shrink.
local job, input, out = KEYS[1], KEYS[2], KEYS[3]
local f = redis.call('HMGET', job, 'status', 'error', 'appliedAt')
if not f[1] then return {NOT_FOUND} end
if f[1] ~= 'SUCCESS' then return {STATE, f[1], f[2] or ''} end
if f[3] then return {OK} end
redis.call('PEXPIRE', input, ARGV[2], 'LT')
redis.call('PEXPIRE', out, ARGV[2], 'LT')
redis.call('HSET', job, 'appliedAt', ARGV[1])
return {OK}
