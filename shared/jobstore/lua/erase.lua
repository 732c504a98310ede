-- erase.lua: forgets a target's texts: memo, kept, and the texts of last and kept.
-- KEYS: last, kept, memo, run, watch, then job, in, out of last or nothing, then
--       in, out of kept or nothing
-- ARGV: last id as read or '', kept id as read or '', now ms
-- Returns: {OK} | {CHANGED, last id or ''}
-- Invariant: nothing is deleted for a last that was not the one read; last itself
-- stays, so that ids go on ordering as acquired.
local last, kept, memo, run, watch = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local newest, old = ARGV[1], ARGV[2]
local now_last = redis.call('GET', last) or ''
if now_last ~= newest then return {CHANGED, now_last} end

local texts = 6
if newest ~= '' then
  local k = {job = KEYS[6], run = run, input = KEYS[7], out = KEYS[8], watch = watch}
  texts = 9
  if redis.call('HGET', k.job, 'status') == 'RUNNING' then
    local _, left = clock(k.job)
    if left <= 0 then
      to_failed(k, newest, 'DEADLINE_EXCEEDED', '')
    else
      to_failed(k, newest, 'CANCELED', ARGV[3])
    end
  end
  redis.call('DEL', k.input, k.out)
  redis.call('HDEL', k.job, 'errorComment', 'inputDigest') -- a caller's id, and a digest of texts
end
if old ~= '' then redis.call('DEL', KEYS[texts], KEYS[texts + 1]) end
redis.call('DEL', memo, kept)
return {OK}
