-- renew.lua: extends the attempt's lease while calls are slow.
-- KEYS: job, run
-- ARGV: id, token, lease ms
-- Returns: {OK} | {NOT_FOUND} | {STATE, status, code} | {OVERDUE} | {CLAIM_LOST} | {STALE}
-- Invariant: the deadline does not move; only the holder of the token renews.
local job, run = KEYS[1], KEYS[2]
local refused, pttl = fence(job, run, ARGV[1], ARGV[2])
if refused then return refused end
redis.call('HSET', job, 'leaseAt', int(pttl - tonumber(ARGV[3])))
return {OK}
