-- record.lua: stores results, each once, with what each cost.
-- KEYS: job, run, out, memo
-- ARGV: id, token, lease ms, memo limit (fields), sequence number and five usage
--       figures of answers that gave no result, then per result: index, result
--       JSON, memo key, five usage figures
-- Returns: {OK, done, usage[5]} | {NOT_FOUND} | {STATE, status, code} | {OVERDUE} |
--          {CLAIM_LOST} | {STALE} | {OUT_OF_RANGE}
-- Invariant: a result stored is never replaced, and its usage is counted exactly
-- when it is stored; the memo's life starts at its creation and never again.
local job, run, out, memo = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local refused, pttl = fence(job, run, ARGV[1], ARGV[2])
if refused then return refused end
local f = redis.call('HMGET', job, 'total', 'fresh', 'retention')
local total, fresh = tonumber(f[1]), f[2] == '1'
for i = 11, #ARGV, 8 do
  local index = tonumber(ARGV[i])
  if not index or index < 0 or index >= total or ARGV[i] ~= int(index) then return {OUT_OF_RANGE} end
end

local limit, size = tonumber(ARGV[4]), redis.call('HLEN', memo)
local memo_born, out_born = size == 0, redis.call('EXISTS', out) == 0
redis.call('HSET', job, 'leaseAt', int(pttl - tonumber(ARGV[3])))
for i = 11, #ARGV, 8 do
  if redis.call('HSETNX', out, ARGV[i], ARGV[i + 1]) == 1 then
    spend(job, ARGV[i + 3], ARGV[i + 4], ARGV[i + 5], ARGV[i + 6], ARGV[i + 7])
    local known = redis.call('HEXISTS', memo, ARGV[i + 2]) == 1
    if (known and fresh) or (not known and size < limit) then
      redis.call('HSET', memo, ARGV[i + 2], ARGV[i + 1])
      if not known then size = size + 1 end
    end
  end
end
if memo_born then redis.call('PEXPIRE', memo, f[3]) end
if out_born then redis.call('PEXPIRE', out, pttl) end
spend_extra(job, ARGV, 5)
return {OK, redis.call('HLEN', out), usage(job)}
