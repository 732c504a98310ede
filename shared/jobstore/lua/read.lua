-- read.lua: the job as it is, the deadline applied first.
-- KEYS: job, in, out, watch
-- ARGV: id
-- Returns: {OK, results recorded, flat job} | {NOT_FOUND}
-- Invariant: nobody reads RUNNING after the deadline. run needs no deletion: it
-- has expired with the deadline.
local k = {job = KEYS[1], input = KEYS[2], out = KEYS[3], watch = KEYS[4]}
if redis.call('EXISTS', k.job) == 0 then return {NOT_FOUND} end
apply_deadline(k, ARGV[1])
return {OK, redis.call('HLEN', k.out), redis.call('HGETALL', k.job)}
