-- fail.lua: RUNNING -> FAILED.
-- KEYS: job, run, in, out, watch
-- ARGV: id, guard (worker | start | cancel), token, code, now ms, detail, comment id,
--       sequence number and five usage figures
-- Returns: {OK} | {NOT_FOUND} | {STATE, status, code} | {OVERDUE} (written as
--          DEADLINE_EXCEEDED) | {STALE} (worker's guard) | {BEGUN} (start's guard)
-- Invariant: SUCCESS and FAILED are never left; run is deleted only if it is ours;
-- a guard that fails writes nothing.
local k = {job = KEYS[1], run = KEYS[2], input = KEYS[3], out = KEYS[4], watch = KEYS[5]}
local id, guard, token, code, now = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]

local f = redis.call('HMGET', k.job, 'status', 'error', 'token', 'attempt')
if not f[1] then return {NOT_FOUND} end
if f[1] ~= 'RUNNING' then
  if f[2] == code then return {OK} end
  if f[2] == 'DEADLINE_EXCEEDED' then return {OVERDUE} end
  return {STATE, f[1], f[2] or ''}
end
local _, left = clock(k.job)
if left <= 0 then
  to_failed(k, id, 'DEADLINE_EXCEEDED', '')
  if f[3] == token then spend_extra(k.job, ARGV, 8) end
  return {OVERDUE}
end
if guard == 'worker' and (token == '' or f[3] ~= token) then return {STALE} end
if guard == 'start' and f[4] ~= '0' then return {BEGUN} end

to_failed(k, id, code, now, ARGV[6], ARGV[7])
spend_extra(k.job, ARGV, 8)
return {OK}
