-- results.lua: before and after of a finished job, in one reply.
-- KEYS: job, in, out, watch
-- ARGV: id
-- Returns: {OK, flat job, comments JSON, flat out} | {NOT_FOUND} |
--          {STATE, status, code, flat job} | {GONE, flat job}
-- Invariant: no result is readable before SUCCESS, and nobody reads RUNNING after
-- the deadline.
local k = {job = KEYS[1], input = KEYS[2], out = KEYS[3], watch = KEYS[4]}
if redis.call('EXISTS', k.job) == 0 then return {NOT_FOUND} end
apply_deadline(k, ARGV[1])
local f = redis.call('HMGET', k.job, 'status', 'error', 'total')
if f[1] ~= 'SUCCESS' then return {STATE, f[1], f[2] or '', redis.call('HGETALL', k.job)} end
local comments = redis.call('GET', k.input)
if not comments or redis.call('HLEN', k.out) ~= tonumber(f[3]) then
  return {GONE, redis.call('HGETALL', k.job)}
end
return {OK, redis.call('HGETALL', k.job), comments, redis.call('HGETALL', k.out)}
