"""Who calls, and how much: API keys verified, requests counted, tools narrowed. The doors ask; see `auth.py`.

Without keys everybody on this machine is the owner `local`. A gateway that listens to the network demands a key of
every caller.
"""

import contextlib
import hashlib
import ipaddress
import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from agent.core.config import Settings
from agent.core.errors import AuthError, RateLimitError
from agent.core.keys import ApiKey, KeyStore
from agent.core.models import LOCAL_OWNER
from agent.core.principal import Principal
from gateway.meters import LocalMeters, Meters
from gateway.purse import MINUTE, TokenMinutes
from gateway.tokens import Grant, TokenVerifier, is_over

CACHE_SECONDS = 2.0
"""How long a key counts as verified without a look at the store: so long a revoked one may still work."""
CACHE_KEYS = 10_000
USED_SECONDS = 60.0
"""How exactly `last_used_at` is kept; a write a request would be too much."""
STREAM_RETRY_SECONDS = 5.0
"""When to try again where too many streams are open: nobody knows when one of them ends."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who a request comes from. `key` is None for a caller of this machine where no key is demanded."""

    owner: str = LOCAL_OWNER
    key: ApiKey | None = None
    vouched: bool = False
    """Whether somebody else vouches for the caller: their key is no row of ours, and nobody pays by it."""
    told_as: str = ""
    """Who it is where that is known otherwise: the person at a terminal."""

    @property
    def name(self) -> str:
        """Who it is, for a person who reads what was decided."""
        return self.told_as or self.principal.name

    @property
    def principal(self) -> Principal:
        """On whose behalf the engine works, and within what."""
        if self.key is None:
            return Principal(self.owner)
        paying = None if self.vouched else self.key.id
        return Principal(self.owner, paying, self.key.tools, self.key.limits.parallel_runs)


@dataclass(frozen=True, slots=True)
class Counted:
    """A request that was counted: the rate-limit headers of its answer, and why it is one too many, where it is."""

    headers: dict[str, str]
    refusal: RateLimitError | None = None

    def require(self) -> None:
        """Raise the `RateLimitError`, if there is one; the headers belong on its answer too."""
        if self.refusal is not None:
            raise self.refusal


class Gatekeeper:
    """Verifies keys and counts requests; open streams for one process, whose room they take."""

    def __init__(
        self,
        keys: KeyStore,
        *,
        demanded: bool,
        max_streams: int = 200,
        tokens: TokenVerifier | None = None,
        minutes: TokenMinutes | None = None,
        meters: Meters | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._keys = keys
        self._clock = clock
        self._max_streams = max_streams
        self._tokens = tokens
        self._minutes = minutes
        self._vouched: dict[str, tuple[float, Grant]] = {}
        self._streams: Counter[str] = Counter()
        self._verified: dict[str, tuple[float, ApiKey]] = {}
        self._meters = meters or LocalMeters(clock)
        self._used: dict[str, float] = {}
        self.demanded = demanded
        """Whether a caller without a key is refused."""

    async def caller(self, text: str | None) -> Caller:
        """Who holds this key. `AuthError` for one that is not valid, and for none where one is demanded.

        Where none is demanded, what is no key of ours passes: many clients must send something."""
        if text is not None and self._tokens is not None and not text.startswith("sg_"):
            vouched = await self._vouched_for(text, self._tokens)
            if vouched is not None:
                return vouched
        if text is None or (not text.startswith("sg_") and not self.demanded):
            if self.demanded:
                raise AuthError("this gateway wants an API key: send `Authorization: Bearer sg_...`", missing=True)
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

    async def _vouched_for(self, token: str, tokens: TokenVerifier) -> Caller | None:
        """Who holds this token of others, looked at anew every few seconds; None for what is none."""
        now = self._clock()
        known = self._vouched.get(token)
        if known is None or known[0] <= now or is_over(known[1]):
            grant = await tokens.verify(token)
            if grant is None:
                return None
            if len(self._vouched) > CACHE_KEYS:
                self._vouched.clear()
            known = self._vouched[token] = (now + CACHE_SECONDS, grant)
        grant = known[1]
        # By whom, not by token: a new token of the same caller starts no new minute.
        key_id = f"token_{hashlib.sha256(grant.owner.encode()).hexdigest()[:12]}"
        key = ApiKey(key_id, grant.owner, grant.name, grant.scopes, grant.tools, grant.limits, 0.0, grant.expires_at)
        return Caller(grant.owner, key, vouched=True)

    async def count(self, caller: Caller) -> Counted:
        """Count one request."""
        key = caller.key
        if key is None:
            return Counted({})
        headers: dict[str, str] = {}
        refusal: RateLimitError | None = None
        limit = key.limits.requests_per_minute
        if limit is not None:
            request = secrets.token_hex(8)
            read = await self._meters.take(f"requests:{key.id}", request, 1, limit=limit, seconds=MINUTE)
            headers = _told("requests", limit, read.left, read.seconds)
            if not read.taken:
                refusal = RateLimitError(
                    f"the key {key.id} allows {limit} requests a minute; try again in {read.seconds:.0f} s",
                    retry_after_s=round(read.seconds, 3),
                )
        if self._minutes is not None and not caller.vouched and (limit := key.limits.tokens_per_minute) is not None:
            headers |= _told("tokens", limit, *await self._minutes.left(key.id, limit))
        return Counted(headers, refusal)

    @contextlib.contextmanager
    def stream(self, caller: Caller) -> Iterator[None]:
        """A place among the caller's open streams, for as long as it is held. `RateLimitError` when none is free."""
        who = caller.key.id if caller.key else ""
        if self._streams[who] >= self._max_streams:
            whose = f"the key {who}" if who else "callers without a key"
            raise RateLimitError(
                f"{self._max_streams} event streams of {whose} are open, and no more are allowed "
                "(AGENT_MAX_OPEN_STREAMS); close one, or ask for the whole answer instead of a stream",
                retry_after_s=STREAM_RETRY_SECONDS,
            )
        self._streams[who] += 1
        try:
            yield
        finally:
            self._streams[who] -= 1
            if not self._streams[who]:
                del self._streams[who]


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


def _told(what: str, limit: int, left: int, seconds: float) -> dict[str, str]:
    """The headers OpenAI tells a limit with; `seconds` until some of it is free again."""
    return {
        f"x-ratelimit-limit-{what}": str(limit),
        f"x-ratelimit-remaining-{what}": str(max(0, left)),
        f"x-ratelimit-reset-{what}": duration(seconds),
    }


def duration(seconds: float) -> str:
    """A time as OpenAI's rate-limit headers write it: `12ms`, `1s`, `6m0s`."""
    if seconds < 1:
        return f"{max(0, round(seconds * 1000))}ms"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}m{rest}s" if minutes else f"{rest}s"
