-- results.lua: before and after of a finished job, in one reply.
-- KEYS: job, in, out
-- ARGV: none
-- Returns: {OK, flat job, comments JSON, flat out} | {NOT_FOUND} |
--          {STATE, status, code, flat job} | {GONE, flat job}
-- Invariant: no result is readable before SUCCESS.
local job, input, out = KEYS[1], KEYS[2], KEYS[3]
local f = redis.call('HMGET', job, 'status', 'error', 'total')
if not f[1] then return {NOT_FOUND} end
if f[1] ~= 'SUCCESS' then return {STATE, f[1], f[2] or '', redis.call('HGETALL', job)} end
local comments = redis.call('GET', input)
if not comments or redis.call('HLEN', out) ~= tonumber(f[3]) then
  return {GONE, redis.call('HGETALL', job)}
end
return {OK, redis.call('HGETALL', job), comments, redis.call('HGETALL', out)}
