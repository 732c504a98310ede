-- inspect.lua: the sweeper's decision on one watched job.
-- KEYS: job, run, in, out, watch
-- ARGV: id, watch member, lease ms, attempts allowed, now ms
-- Returns: {FORGOTTEN} | {ENDED, code} | {REDISPATCH, age ms} | {LEFT, age ms}
-- Invariant: a job is ended only when nothing can finish it; between two
-- dispatches of one job lies at least a lease. A member that names the job with
-- another target leaves the set and touches nothing else.
local k = {job = KEYS[1], run = KEYS[2], input = KEYS[3], out = KEYS[4], watch = KEYS[5]}
local id, member, lease, allowed, now = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5]

local f = redis.call('HMGET', k.job, 'status', 'token', 'leaseAt', 'attempt', 'dispatchAt', 'createdAt', 'deadlineAt',
  'tenant', 'target')
if f[1] ~= 'RUNNING' or member ~= id .. ':' .. f[8] .. ':' .. f[9] then
  redis.call('SREM', k.watch, member)
  return {FORGOTTEN}
end
local pttl, left = clock(k.job)
local live = f[2] ~= '' and pttl > tonumber(f[3])
local code
if left <= 0 then
  code = 'DEADLINE_EXCEEDED'
elseif redis.call('GET', k.run) ~= id then
  code = 'CLAIM_LOST'
elseif not live and tonumber(f[4]) >= allowed then
  code = 'WORKER_LOST'
end
if code then
  to_failed(k, id, code, left <= 0 and '' or now)
  return {ENDED, code}
end
local age = tonumber(f[7]) - tonumber(f[6]) - left
if not live and pttl <= tonumber(f[5]) then
  redis.call('HSET', k.job, 'dispatchAt', int(pttl - lease))
  return {REDISPATCH, age}
end
return {LEFT, age}
