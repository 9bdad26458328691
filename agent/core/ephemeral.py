"""What is kept for a while only: lists of messages, locks and counts. In this process by default, in Redis by URL.

Nothing here is the truth of anything: what must not be lost is in the store, and whoever reads here can do without.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from redis.asyncio import Redis
from redis.exceptions import RedisError

from agent.core.errors import ConfigError, StoreError

SWEEP_EVERY = 256
"""In process: how many changes between two looks for what has expired."""
CONNECT_SECONDS = 5.0


class Ephemeral(Protocol):
    """The interface; `tests/contract/ephemeral_contract.py` holds every implementation to it. Times to live are in
    seconds. Methods raise `StoreError` where the server cannot be reached."""

    async def append(self, key: str, *values: str, ttl_s: float, most: int) -> None:
        """Put values at the end of a list, which lives for `ttl_s` from now on; beyond `most` the oldest go."""
        ...

    async def values(self, key: str) -> list[str]:
        """The values of a list, oldest first; none once it has expired."""
        ...

    async def touch(self, key: str, ttl_s: float) -> bool:
        """Let a list live for `ttl_s` from now on; whether it was still there."""
        ...

    async def forget(self, key: str) -> None:
        """Remove a list or a count."""
        ...

    async def acquire(self, key: str, token: str, ttl_s: float) -> bool:
        """Take a lock for whoever knows `token`; False while another has it. It is free again after `ttl_s`."""
        ...

    async def release(self, key: str, token: str) -> bool:
        """Give a lock back; False when it was no longer held with this token, and then nothing changes."""
        ...

    async def count(self, key: str, window_s: float) -> int:
        """Count one more within the window that the first one opened; how many there are by now."""
        ...

    async def check(self) -> str:
        """Where things are kept, in a few words."""
        ...

    async def aclose(self) -> None:
        """Close connections."""
        ...


@dataclass
class _Entry:
    until: float
    values: list[str] = field(default_factory=list)
    count: int = 0


class LocalEphemeral:
    """Implements `Ephemeral` in this process: other processes see nothing of it, and it ends with this one."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._entries: dict[str, _Entry] = {}
        self._changes = 0

    async def append(self, key: str, *values: str, ttl_s: float, most: int) -> None:
        """See `Ephemeral.append`."""
        entry = self._alive(key) or self._put(key, ttl_s)
        entry.values = [*entry.values, *values][-most:]
        entry.until = self._clock() + ttl_s

    async def values(self, key: str) -> list[str]:
        """See `Ephemeral.values`."""
        entry = self._alive(key)
        return list(entry.values) if entry is not None else []

    async def touch(self, key: str, ttl_s: float) -> bool:
        """See `Ephemeral.touch`."""
        entry = self._alive(key)
        if entry is not None:
            entry.until = self._clock() + ttl_s
        return entry is not None

    async def forget(self, key: str) -> None:
        """See `Ephemeral.forget`."""
        self._entries.pop(key, None)

    async def acquire(self, key: str, token: str, ttl_s: float) -> bool:
        """See `Ephemeral.acquire`."""
        if self._alive(key) is not None:
            return False
        self._put(key, ttl_s).values = [token]
        return True

    async def release(self, key: str, token: str) -> bool:
        """See `Ephemeral.release`."""
        entry = self._alive(key)
        if entry is None or entry.values != [token]:
            return False
        del self._entries[key]
        return True

    async def count(self, key: str, window_s: float) -> int:
        """See `Ephemeral.count`."""
        entry = self._alive(key) or self._put(key, window_s)
        entry.count += 1
        return entry.count

    async def check(self) -> str:
        """See `Ephemeral.check`."""
        return "in this process"

    async def aclose(self) -> None:
        """See `Ephemeral.aclose`."""
        self._entries.clear()

    def _alive(self, key: str) -> _Entry | None:
        entry = self._entries.get(key)
        return entry if entry is not None and entry.until > self._clock() else None

    def _put(self, key: str, ttl_s: float) -> _Entry:
        self._changes += 1
        if self._changes % SWEEP_EVERY == 0:
            now = self._clock()
            self._entries = {name: entry for name, entry in self._entries.items() if entry.until > now}
        entry = self._entries[key] = _Entry(self._clock() + ttl_s)
        return entry


# Compared and deleted in one step: between a GET and a DEL the lock may have expired and be another's.
_RELEASE = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end"
# A count without an end would shut somebody out for good, should we die between the two.
_COUNT = "local n = redis.call('incr', KEYS[1]) if n == 1 then redis.call('pexpire', KEYS[1], ARGV[1]) end return n"


class RedisEphemeral:
    """Implements `Ephemeral` in a Redis server, shared by all processes that use the same `prefix`."""

    def __init__(self, url: str, prefix: str = "stepgate") -> None:
        try:
            self._redis = Redis.from_url(
                url, decode_responses=True, socket_connect_timeout=CONNECT_SECONDS, socket_timeout=CONNECT_SECONDS
            )
        except ValueError as error:
            raise ConfigError(f"AGENT_REDIS_URL: {error}") from error
        self._prefix = prefix
        options = self._redis.connection_pool.connection_kwargs
        self.where = f"{options.get('host', options.get('path', 'localhost'))}:{options.get('port', '')}".rstrip(":")
        """The server, without the password."""

    async def append(self, key: str, *values: str, ttl_s: float, most: int) -> None:
        """See `Ephemeral.append`."""
        name = self._name(key)
        try:
            async with self._redis.pipeline(transaction=True) as pipe:
                pipe.rpush(name, *values)
                pipe.ltrim(name, -most, -1)
                pipe.pexpire(name, _ms(ttl_s))
                await pipe.execute()
        except RedisError as error:
            raise self._failed(error) from error

    async def values(self, key: str) -> list[str]:
        """See `Ephemeral.values`."""
        try:
            async with self._redis.pipeline(transaction=False) as pipe:
                pipe.lrange(self._name(key), 0, -1)
                (found,) = await pipe.execute()
        except RedisError as error:
            raise self._failed(error) from error
        return [str(value) for value in found]

    async def touch(self, key: str, ttl_s: float) -> bool:
        """See `Ephemeral.touch`."""
        try:
            return bool(await self._redis.pexpire(self._name(key), _ms(ttl_s)))
        except RedisError as error:
            raise self._failed(error) from error

    async def forget(self, key: str) -> None:
        """See `Ephemeral.forget`."""
        try:
            await self._redis.delete(self._name(key))
        except RedisError as error:
            raise self._failed(error) from error

    async def acquire(self, key: str, token: str, ttl_s: float) -> bool:
        """See `Ephemeral.acquire`."""
        try:
            return bool(await self._redis.set(self._name(key), token, nx=True, px=_ms(ttl_s)))
        except RedisError as error:
            raise self._failed(error) from error

    async def release(self, key: str, token: str) -> bool:
        """See `Ephemeral.release`."""
        return bool(await self._script(_RELEASE, key, token))

    async def count(self, key: str, window_s: float) -> int:
        """See `Ephemeral.count`."""
        return await self._script(_COUNT, key, str(_ms(window_s)))

    async def check(self) -> str:
        """See `Ephemeral.check`."""
        try:
            await self._redis.echo("?")
        except RedisError as error:
            raise self._failed(error) from error
        return f"Redis at {self.where}"

    async def aclose(self) -> None:
        """See `Ephemeral.aclose`."""
        await self._redis.aclose()

    async def _script(self, script: str, key: str, argument: str) -> int:
        try:
            return int(await self._redis.register_script(script)(keys=[self._name(key)], args=[argument]))
        except RedisError as error:
            raise self._failed(error) from error

    def _name(self, key: str) -> str:
        return f"{self._prefix}:{key}"

    def _failed(self, error: RedisError) -> StoreError:
        said = " ".join(str(error).split())[:200]
        return StoreError(
            f"Redis at {self.where} cannot be used: {said}; start it, or unset AGENT_REDIS_URL", agent_id="redis"
        )


def _ms(seconds: float) -> int:
    return max(1, round(seconds * 1000))
