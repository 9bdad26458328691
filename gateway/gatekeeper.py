"""Who calls, and how much: API keys verified, requests counted, tools narrowed. The doors ask; see `auth.py`.

Without keys everybody on this machine is the owner `local`. A gateway that listens to the network demands a key of
every caller.
"""

import ipaddress
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from agent.core.config import Settings
from agent.core.errors import AuthError, QuotaError, RateLimitError
from agent.core.keys import ApiKey, KeyStore
from agent.core.models import LOCAL_OWNER, Usage
from agent.core.principal import Principal

CACHE_SECONDS = 2.0
"""How long a key counts as verified without a look at the store: so long a revoked one may still work."""
CACHE_KEYS = 10_000
USED_SECONDS = 60.0
"""How exactly `last_used_at` is kept; a write a request would be too much."""
MINUTE = 60.0


@dataclass(frozen=True, slots=True)
class Caller:
    """Who a request comes from. `key` is None for a caller of this machine where no key is demanded."""

    owner: str = LOCAL_OWNER
    key: ApiKey | None = None

    @property
    def name(self) -> str:
        """Who it is, for a person who reads what was decided."""
        return f"{self.owner} (key {self.key.id})" if self.key else self.owner

    @property
    def principal(self) -> Principal:
        """On whose behalf the engine works, and within what."""
        if self.key is None:
            return Principal(self.owner)
        return Principal(self.owner, self.key.id, self.key.tools, self.key.limits.parallel_runs)


@dataclass(slots=True)
class _Window:
    """The requests of a key within the last minute."""

    times: deque[float] = field(default_factory=deque)

    def add(self, now: float, limit: int) -> tuple[int, float]:
        """What is left after one more, negative when it is one too many; and seconds until there is room again."""
        while self.times and self.times[0] <= now - MINUTE:
            self.times.popleft()
        if len(self.times) >= limit:
            return -1, self.times[0] + MINUTE - now
        self.times.append(now)
        return limit - len(self.times), self.times[0] + MINUTE - now


class Gatekeeper:
    """Verifies keys and counts requests, for one process: several gateways count each by itself."""

    def __init__(self, keys: KeyStore, *, demanded: bool, clock: Callable[[], float] = time.monotonic) -> None:
        self._keys = keys
        self._clock = clock
        self._verified: dict[str, tuple[float, ApiKey]] = {}
        self._windows: dict[str, _Window] = {}
        self._used: dict[str, float] = {}
        self.demanded = demanded
        """Whether a caller without a key is refused."""

    async def caller(self, text: str | None) -> Caller:
        """Who holds this key. `AuthError` for one that is not valid, and for none where one is demanded.

        Where none is demanded, what is no key of ours passes: many clients must send something."""
        if text is None or (not text.startswith("sg_") and not self.demanded):
            if self.demanded:
                raise AuthError("this gateway wants an API key: send `Authorization: Bearer sg_...`")
            return Caller()
        now = self._clock()
        known = self._verified.get(text)
        if known is None or known[0] <= now:
            if len(self._verified) > CACHE_KEYS:
                self._verified.clear()
            self._verified.pop(text, None)
            known = (now + CACHE_SECONDS, await self._keys.verify(text))
            self._verified[text] = known
        key = known[1]
        if self._used.get(key.id, -USED_SECONDS) <= now - USED_SECONDS:
            self._used[key.id] = now
            await self._keys.used(key.id)
        return Caller(key.owner, key)

    def count(self, caller: Caller) -> dict[str, str]:
        """Count one request; the rate-limit headers of its answer. `RateLimitError` for one too many."""
        limit = caller.key.limits.requests_per_minute if caller.key else None
        if caller.key is None or limit is None:
            return {}
        left, seconds = self._windows.setdefault(caller.key.id, _Window()).add(self._clock(), limit)
        if left < 0:
            raise RateLimitError(
                f"the key {caller.key.id} allows {limit} requests a minute; try again in {seconds:.0f} s",
                retry_after_s=round(seconds, 3),
            )
        return {
            "x-ratelimit-limit-requests": str(limit),
            "x-ratelimit-remaining-requests": str(left),
            "x-ratelimit-reset-requests": duration(seconds),
        }


class KeyPurse:
    """Implements `agent.execution.run.Purse` over the keys: budgets in the store, tokens a minute in this process."""

    def __init__(self, keys: KeyStore, clock: Callable[[], float] = time.monotonic) -> None:
        self._keys = keys
        self._clock = clock
        self._known: dict[str, tuple[float, ApiKey]] = {}
        self._spent: dict[str, deque[tuple[float, int]]] = {}

    async def reserve(self, key: str, tokens: int) -> None:
        """See `Purse.reserve`."""
        found = await self._key(key)
        limits = found.limits
        per_minute = limits.tokens_per_minute
        if per_minute is not None and self._last_minute(key) >= per_minute:
            raise RateLimitError(f"the key {key} allows {per_minute:,} tokens a minute; try again in a minute")
        if limits.budget_tokens is None and limits.budget_usd is None:
            return
        if not await self._keys.reserve(found, tokens):
            raise QuotaError(f"the budget of the key {key} does not allow another model call")

    async def settle(self, key: str, reserved: int, usage: Usage) -> None:
        """See `Purse.settle`."""
        limits = (await self._key(key)).limits
        if limits.tokens_per_minute is not None:
            self._spent.setdefault(key, deque()).append((self._clock(), usage.total_tokens))
        kept = reserved if limits.budget_tokens is not None or limits.budget_usd is not None else 0
        await self._keys.settle(key, kept, usage.total_tokens, usage.cost_usd)

    def _last_minute(self, key: str) -> int:
        spent = self._spent.get(key, deque())
        while spent and spent[0][0] <= self._clock() - MINUTE:
            spent.popleft()
        return sum(tokens for _, tokens in spent)

    async def _key(self, key_id: str) -> ApiKey:
        """The key with its limits, as they are for a few seconds."""
        now = self._clock()
        known = self._known.get(key_id)
        if known is None or known[0] <= now:
            known = (now + CACHE_SECONDS, await self._keys.get(key_id))
            self._known[key_id] = known
        return known[1]


def key_of(headers: Mapping[str, str]) -> str | None:
    """The key a request carries, as a bearer token or in `x-api-key`; names of headers in lower case."""
    kind, _, token = headers.get("authorization", "").partition(" ")
    if kind.lower() == "bearer" and token.strip():
        return token.strip()
    return headers.get("x-api-key") or None


def demands_key(settings: Settings) -> bool:
    """Whether callers must have a key: `AGENT_REQUIRE_KEY`, or, on `auto`, an address others can reach."""
    if settings.require_key != "auto":
        return settings.require_key == "always"
    return not is_loopback(settings.host)


def is_loopback(host: str) -> bool:
    """Whether only programs of this machine can reach this address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def duration(seconds: float) -> str:
    """A time as OpenAI's rate-limit headers write it: `12ms`, `1s`, `6m0s`."""
    if seconds < 1:
        return f"{max(0, round(seconds * 1000))}ms"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}m{rest}s" if minutes else f"{rest}s"
