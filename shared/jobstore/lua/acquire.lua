-- acquire.lua: claims a target and creates its job, or names who holds it.
-- KEYS: job, run, in, last, watch [, the job a caller saw missing]
-- ARGV: id, missing id or '', deadline ms, retention ms, lease ms, now ms, tenant
--       (base64url), target, total, input digest, fresh 0|1, model, prompt version,
--       options, schema, comments JSON
-- Returns: {OK} | {HELD, holder} | {STALE_ID, newest}
-- Invariant: run, job, in, last and the watch member appear together or not at
-- all; a job that exists is answered OK and nothing is written.
local job, run, input, last, watch, absent = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local id, missing = ARGV[1], ARGV[2]
local deadline, retention, lease, now = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])

-- after compares byte by byte: Lua's < follows the server's locale.
local function after(a, b)
  for i = 1, 26 do
    local x, y = string.byte(a, i) or 0, string.byte(b, i) or 0
    if x ~= y then return x > y end
  end
  return false
end

if redis.call('EXISTS', job) == 1 then return {OK} end
local holder = redis.call('GET', run)
if holder then
  local gone = absent and holder == missing and redis.call('EXISTS', absent) == 0
  if not gone then return {HELD, holder} end
end
local newest = redis.call('GET', last)
if newest and not after(id, newest) then return {STALE_ID, newest} end

local life = int(deadline + retention)
redis.call('HSET', job, 'schema', ARGV[15], 'status', 'RUNNING', 'tenant', ARGV[7], 'target', ARGV[8],
  'total', ARGV[9], 'done', 0, 'retention', ARGV[4], 'createdAt', ARGV[6], 'deadlineAt', int(now + deadline),
  'attempt', 0, 'token', '', 'leaseAt', 0, 'dispatchAt', int(deadline + retention - lease),
  'inputDigest', ARGV[10], 'fresh', ARGV[11], 'model', ARGV[12], 'promptVersion', ARGV[13], 'options', ARGV[14],
  'seq', 0, 'promptTokens', 0, 'completionTokens', 0, 'totalTokens', 0, 'calls', 0, 'memoHits', 0)
redis.call('PEXPIRE', job, life)
redis.call('SET', run, id, 'PX', ARGV[3])
redis.call('SET', input, ARGV[16], 'PX', life)
redis.call('SET', last, id, 'PX', life)
redis.call('SADD', watch, id .. ':' .. ARGV[7] .. ':' .. ARGV[8])
return {OK}
