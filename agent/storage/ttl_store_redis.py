"""`RedisTtlStore`: values with a time to live in a Redis server that several processes share."""

from redis.asyncio import Redis
from redis.exceptions import RedisError

from agent.core.errors import ConfigError, StoreError

CONNECT_SECONDS = 5.0

# Compares and deletes in one step: between a GET and a DEL the lock could expire and be taken by another.
_RELEASE = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end"
# In one step: if we died between the two, a counter without expiry would lock somebody out forever.
_COUNT = "local n = redis.call('incr', KEYS[1]) if n == 1 then redis.call('pexpire', KEYS[1], ARGV[1]) end return n"


class RedisTtlStore:
    """Implements `TtlStore` in a Redis server, shared by all processes that use the same `prefix`."""

    def __init__(self, url: str, prefix: str = "stepgate") -> None:
        try:
            self._redis = Redis.from_url(
                url, decode_responses=True, socket_connect_timeout=CONNECT_SECONDS, socket_timeout=CONNECT_SECONDS
            )
        except ValueError as error:
            raise ConfigError(f"AGENT_REDIS_URL: {error}") from error
        self._prefix = prefix
        options = self._redis.connection_pool.connection_kwargs
        self.location = f"{options.get('host', options.get('path', 'localhost'))}:{options.get('port', '')}".rstrip(":")
        """The server, without the password."""

    async def append(self, key: str, *values: str, ttl_s: float, most: int) -> None:
        """See `TtlStore.append`."""
        name = self._build_key(key)
        try:
            async with self._redis.pipeline(transaction=True) as pipe:
                pipe.rpush(name, *values)
                pipe.ltrim(name, -most, -1)
                pipe.pexpire(name, _to_milliseconds(ttl_s))
                await pipe.execute()
        except RedisError as error:
            raise self._to_store_error(error) from error

    async def list_values(self, key: str) -> list[str]:
        """See `TtlStore.list_values`."""
        try:
            async with self._redis.pipeline(transaction=False) as pipe:
                pipe.lrange(self._build_key(key), 0, -1)
                (members,) = await pipe.execute()
        except RedisError as error:
            raise self._to_store_error(error) from error
        return [str(value) for value in members]

    async def touch(self, key: str, ttl_s: float) -> bool:
        """See `TtlStore.touch`."""
        try:
            return bool(await self._redis.pexpire(self._build_key(key), _to_milliseconds(ttl_s)))
        except RedisError as error:
            raise self._to_store_error(error) from error

    async def delete(self, key: str) -> None:
        """See `TtlStore.delete`."""
        try:
            await self._redis.delete(self._build_key(key))
        except RedisError as error:
            raise self._to_store_error(error) from error

    async def acquire(self, key: str, token: str, ttl_s: float) -> bool:
        """See `TtlStore.acquire`."""
        try:
            return bool(await self._redis.set(self._build_key(key), token, nx=True, px=_to_milliseconds(ttl_s)))
        except RedisError as error:
            raise self._to_store_error(error) from error

    async def release(self, key: str, token: str) -> bool:
        """See `TtlStore.release`."""
        return bool(await self._run_script(_RELEASE, key, token))

    async def increment(self, key: str, window_s: float) -> int:
        """See `TtlStore.increment`."""
        return await self._run_script(_COUNT, key, str(_to_milliseconds(window_s)))

    async def get_ttl(self, key: str) -> float:
        """See `TtlStore.get_ttl`."""
        try:
            return max(0, int(await self._redis.pttl(self._build_key(key)))) / 1000
        except RedisError as error:
            raise self._to_store_error(error) from error

    async def describe_location(self) -> str:
        """See `TtlStore.describe_location`."""
        try:
            await self._redis.echo("?")
        except RedisError as error:
            raise self._to_store_error(error) from error
        return f"Redis at {self.location}"

    async def aclose(self) -> None:
        """See `TtlStore.aclose`."""
        await self._redis.aclose()

    async def _run_script(self, script: str, key: str, argument: str) -> int:
        try:
            return int(await self._redis.register_script(script)(keys=[self._build_key(key)], args=[argument]))
        except RedisError as error:
            raise self._to_store_error(error) from error

    def _build_key(self, key: str) -> str:
        return f"{self._prefix}:{key}"

    def _to_store_error(self, error: RedisError) -> StoreError:
        reason = " ".join(str(error).split())[:200].rstrip(".")
        return StoreError(
            f"Redis at {self.location} cannot be used: {reason}; start it, or unset AGENT_REDIS_URL", agent_id="redis"
        )


def _to_milliseconds(seconds: float) -> int:
    return max(1, round(seconds * 1000))
