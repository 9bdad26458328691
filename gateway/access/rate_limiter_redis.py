"""`RedisRateLimiter`: meters in a Redis server, shared by all gateways with the same `prefix`. Uses the
server's clock.
"""

from redis.asyncio import Redis
from redis.exceptions import RedisError

from agent.core.errors import ConfigError, StoreError
from gateway.access.rate_limiter import MeterReading

SOCKET_TIMEOUT_SECONDS = 1.0
"""How long a request waits for the server before its process counts for itself."""

# One sorted set for each meter: members `AMOUNT:NAME`, scored by expiry. Scripts make check and change atomic.
_ACQUIRE_SCRIPT = """
local key, name, amount, limit, ms = KEYS[1], ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZREMRANGEBYSCORE', key, '-inf', now)
local entries = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
local total = 0
for i = 1, #entries, 2 do
  if entries[i] ~= amount .. ':' .. name then total = total + tonumber(string.match(entries[i], '^%d+')) end
end
local taken, missing = 1, 1
if amount > 0 and total + amount > limit then
  taken, missing = 0, total + amount - limit
elseif amount > 0 then
  redis.call('ZADD', key, now + ms, amount .. ':' .. name)
  if redis.call('PTTL', key) < ms then redis.call('PEXPIRE', key, ms) end
  total = total + amount
  if #entries == 0 then return {taken, limit - total, ms} end
end
local freed, wait = 0, 0
for i = 1, #entries, 2 do
  wait = tonumber(entries[i + 1]) - now
  freed = freed + tonumber(string.match(entries[i], '^%d+'))
  if freed >= missing then break end
end
return {taken, math.max(0, limit - total), wait}
"""
_REPLACE_SCRIPT = """
local key, name, amount, by, ms = KEYS[1], ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
redis.call('ZREM', key, amount .. ':' .. name)
if by > 0 then
  local time = redis.call('TIME')
  redis.call('ZADD', key, time[1] * 1000 + math.floor(time[2] / 1000) + ms, by .. ':' .. name)
  if redis.call('PTTL', key) < ms then redis.call('PEXPIRE', key, ms) end
end
return 0
"""


class RedisRateLimiter:
    """Implements `RateLimiter` in a Redis server. Methods raise `StoreError` if it cannot be reached."""

    def __init__(self, url: str, prefix: str = "stepgate") -> None:
        try:
            self._redis = Redis.from_url(
                url, socket_connect_timeout=SOCKET_TIMEOUT_SECONDS, socket_timeout=SOCKET_TIMEOUT_SECONDS
            )
        except ValueError as error:
            raise ConfigError(f"AGENT_REDIS_URL: {error}") from error
        self._prefix = prefix
        self._meter = self._redis.register_script(_ACQUIRE_SCRIPT)
        self._replace = self._redis.register_script(_REPLACE_SCRIPT)

    async def acquire(self, meter: str, name: str, amount: int, *, limit: int, seconds: float) -> MeterReading:
        """See `RateLimiter.acquire`."""
        return await self._run_acquire(meter, name, amount, limit, seconds)

    async def read(self, meter: str, limit: int) -> MeterReading:
        """See `RateLimiter.read`."""
        return await self._run_acquire(meter, "", 0, limit, 0.0)

    async def replace(self, meter: str, name: str, amount: int, by: int, *, seconds: float = 0.0) -> None:
        """See `RateLimiter.replace`."""
        try:
            await self._replace(keys=[self._build_key(meter)], args=[name, amount, by, _to_milliseconds(seconds)])
        except RedisError as error:
            raise _make_store_error(error) from error

    async def aclose(self) -> None:
        """See `RateLimiter.aclose`."""
        await self._redis.aclose()

    async def _run_acquire(self, meter: str, name: str, amount: int, limit: int, seconds: float) -> MeterReading:
        try:
            acquired, left, wait = await self._meter(
                keys=[self._build_key(meter)], args=[name, amount, limit, _to_milliseconds(seconds)]
            )
        except RedisError as error:
            raise _make_store_error(error) from error
        return MeterReading(bool(acquired), int(left), int(wait) / 1000)

    def _build_key(self, meter: str) -> str:
        return f"{self._prefix}:meter:{meter}"


def _make_store_error(error: RedisError) -> StoreError:
    reason = " ".join(str(error).split())[:200].rstrip(".")
    return StoreError(f"Redis cannot be used: {reason}; start it, or unset AGENT_REDIS_URL", agent_id="redis")


def _to_milliseconds(seconds: float) -> int:
    return max(1, round(seconds * 1000))
