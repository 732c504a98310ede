-- begin.lua: an attempt takes the job and gets everything it needs to work.
-- KEYS: job, run, in, out, kept
-- ARGV: id, token, lease ms, attempts allowed, schema known
-- Returns: {OK, attempt, total, ms left, fresh, model, prompt version, options,
--           kept id or '', comments JSON, usage[5], flat out} | {NOT_FOUND} |
--          {SCHEMA, found} | {STATE, status, code} | {OVERDUE} | {CLAIM_LOST} |
--          {BUSY} | {EXHAUSTED} | {STALE} (no token)
-- Invariant: at most one token has a live lease; a refusal writes nothing.
local job, run, input, out, kept = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local id, token, lease = ARGV[1], ARGV[2], tonumber(ARGV[3])

local f = redis.call('HMGET', job, 'status', 'error', 'schema', 'token', 'leaseAt', 'attempt',
  'total', 'fresh', 'model', 'promptVersion', 'options')
if not f[1] then return {NOT_FOUND} end
if f[3] ~= ARGV[5] then return {SCHEMA, f[3] or ''} end
if f[1] ~= 'RUNNING' then return {STATE, f[1], f[2] or ''} end
local pttl, left = clock(job)
if left <= 0 then return {OVERDUE} end
if redis.call('GET', run) ~= id then return {CLAIM_LOST} end
if token == '' then return {STALE} end

local attempt = tonumber(f[6])
if f[4] ~= token then
  if f[4] ~= '' and pttl > tonumber(f[5]) then return {BUSY} end
  if attempt >= tonumber(ARGV[4]) then return {EXHAUSTED} end
  attempt = attempt + 1
  redis.call('HSET', job, 'token', token, 'attempt', attempt, 'seq', 0)
end
redis.call('HSET', job, 'leaseAt', int(pttl - lease))
return {OK, attempt, tonumber(f[7]), left, f[8], f[9], f[10], f[11], redis.call('GET', kept) or '',
  redis.call('GET', input) or '', usage(job), redis.call('HGETALL', out)}
