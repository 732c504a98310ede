-- finish.lua: RUNNING -> SUCCESS.
-- KEYS: job, run, in, out, kept, watch [, in, out of the job kept until now]
-- ARGV: id, token, now ms, kept id or '', sequence number and five usage figures
-- Returns: {OK} | {NOT_FOUND} | {STATE, status, code} | {OVERDUE} | {CLAIM_LOST} |
--          {STALE} | {INCOMPLETE, done}
-- Invariant: SUCCESS only before the deadline, with the claim, the token and
-- every result in hand; the texts of at most one finished job a target are kept.
local job, run, input, out, kept, watch = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local id, token, now, old = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

local f = redis.call('HMGET', job, 'status', 'token', 'tenant', 'target', 'total', 'retention')
if f[1] == 'SUCCESS' and f[2] == token then return {OK} end
local refused = fence(job, run, id, token)
if refused then return refused end
local done = redis.call('HLEN', out)
if done ~= tonumber(f[5]) then return {INCOMPLETE, done} end
local replaces = old ~= '' and old ~= id and redis.call('GET', kept) == old

redis.call('SREM', watch, id .. ':' .. f[3] .. ':' .. f[4])
redis.call('DEL', run)
if replaces then redis.call('DEL', KEYS[7], KEYS[8]) end
redis.call('PEXPIRE', job, f[6], 'LT')
redis.call('PEXPIRE', input, f[6], 'LT')
redis.call('PEXPIRE', out, f[6], 'LT')
redis.call('SET', kept, id, 'PX', f[6])
redis.call('HSET', job, 'status', 'SUCCESS', 'done', done, 'finishedAt', now)
spend_extra(job, ARGV, 5)
return {OK}
