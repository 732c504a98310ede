-- lib.lua: what several moves share; it stands before every one of them.
-- Invariant kept: reads come before writes, and a terminal transition frees
-- memory first, so that a full server lets the script in.

-- Reply codes, the first element of every reply. scripts.go holds the same table.
local OK, NOT_FOUND, STATE, OVERDUE, CLAIM_LOST, STALE, BUSY, EXHAUSTED, SCHEMA, OUT_OF_RANGE =
  0, 1, 2, 3, 4, 5, 6, 7, 8, 9
local INCOMPLETE, HELD, STALE_ID, BEGUN, GONE, CHANGED, FORGOTTEN, ENDED, REDISPATCH, LEFT =
  10, 11, 12, 13, 14, 15, 16, 17, 18, 19

-- int writes a number without exponent or loss (Lua 5.1 prints 14 digits).
local function int(n) return string.format('%.0f', n) end

-- clock reads PTTL once: ms the job's key lives, and ms left to the deadline.
-- A RUNNING job without a TTL counts as overdue.
local function clock(job)
  local pttl = redis.call('PTTL', job)
  return pttl, pttl - tonumber(redis.call('HGET', job, 'retention'))
end

-- fence is the check of every worker write: a refusal, or nil and the job's PTTL.
local function fence(job, run, id, token)
  local now = redis.call('HMGET', job, 'status', 'error', 'token')
  if not now[1] then return {NOT_FOUND} end
  if now[1] ~= 'RUNNING' then return {STATE, now[1], now[2] or ''} end
  local pttl, left = clock(job)
  if left <= 0 then return {OVERDUE} end
  if redis.call('GET', run) ~= id then return {CLAIM_LOST} end
  if token == '' or now[3] ~= token then return {STALE} end
  return nil, pttl
end

-- usage reads what the job has cost, as five strings.
local function usage(job)
  return redis.call('HMGET', job, 'promptTokens', 'completionTokens', 'totalTokens', 'calls', 'memoHits')
end

-- spend adds usage to the job.
local function spend(job, prompt, completion, total, calls, hits)
  redis.call('HINCRBY', job, 'promptTokens', prompt)
  redis.call('HINCRBY', job, 'completionTokens', completion)
  redis.call('HINCRBY', job, 'totalTokens', total)
  redis.call('HINCRBY', job, 'calls', calls)
  redis.call('HINCRBY', job, 'memoHits', hits)
end

-- spend_extra adds usage that came without a result once per sequence number:
-- a[i] is the number, the five figures follow.
local function spend_extra(job, a, i)
  if tonumber(a[i]) <= tonumber(redis.call('HGET', job, 'seq')) then return end
  spend(job, a[i + 1], a[i + 2], a[i + 3], a[i + 4], a[i + 5])
  redis.call('HSET', job, 'seq', a[i])
end

-- to_failed ends a RUNNING job. k: job, input, out, watch and, where the caller
-- knows it, run. now is '' for an overdue job: it finished at its deadline,
-- whoever noticed when.
local function to_failed(k, id, code, now, detail, comment)
  local f = redis.call('HMGET', k.job, 'tenant', 'target', 'retention', 'deadlineAt')
  local done = redis.call('HLEN', k.out)
  local mine = k.run and redis.call('GET', k.run) == id
  if now == '' then now = f[4] end
  redis.call('SREM', k.watch, id .. ':' .. f[1] .. ':' .. f[2])
  if mine then redis.call('DEL', k.run) end
  redis.call('DEL', k.input, k.out)
  redis.call('PEXPIRE', k.job, f[3], 'LT')
  redis.call('HSET', k.job, 'status', 'FAILED', 'error', code, 'errorDetail', detail or '',
    'errorComment', comment or '', 'finishedAt', now, 'done', done)
end

-- apply_deadline makes an overdue RUNNING job FAILED.
local function apply_deadline(k, id)
  if redis.call('HGET', k.job, 'status') ~= 'RUNNING' then return end
  local _, left = clock(k.job)
  if left <= 0 then to_failed(k, id, 'DEADLINE_EXCEEDED', '') end
end
