"""Authentication and rate limits: verifies API keys and tokens, counts requests and open streams.

Without keys every caller on this machine is the owner `local`. A gateway that listens on the network requires a key.
"""

import contextlib
import hashlib
import ipaddress
import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from agent.core.errors import AuthError, RateLimitError, ScopeError
from agent.core.models import LOCAL_OWNER
from agent.core.principal import LOCAL, Principal
from agent.core.settings import Settings
from agent.storage.api_keys import SCOPES, ApiKey, KeyStore, Scope
from gateway.access.external_tokens import TokenGrant, TokenVerifier, is_expired
from gateway.access.key_watch import KeyWatch
from gateway.access.quota_reservations import MINUTE_SECONDS, TokenRates
from gateway.access.rate_limiter import LocalRateLimiter, RateLimiter

CACHE_SECONDS = 2.0
"""How long a verified key is cached. A key that another process has revoked may still work for that long."""
CACHE_KEYS = 10_000
LAST_USED_SECONDS = 60.0
"""Resolution of `last_used_at`; a write for every request would be too much."""
STREAM_RETRY_SECONDS = 5.0
"""Suggested time to retry if too many streams are open; when one ends cannot be known."""


@dataclass(frozen=True, slots=True)
class Caller:
    """An authenticated caller. `key` is None for a caller on this machine where no key is required."""

    key: ApiKey | None = None
    is_external: bool = False
    """Whether the caller has a token of another issuer: its key is not in the store and has no budget."""

    @property
    def owner(self) -> str:
        """Whose data the caller reads and writes."""
        return LOCAL_OWNER if self.key is None else self.key.owner

    @property
    def name(self) -> str:
        """The caller's name for audit records."""
        return self.principal.name

    @property
    def principal(self) -> Principal:
        """On whose behalf the engine works, and with which limits."""
        if self.key is None:
            return LOCAL
        return Principal(
            self.key.owner,
            None if self.is_external else self.key.id,
            self.key.tools,
            self.key.limits.parallel_runs,
            self.key.has_scope("approve"),
            scopes=frozenset(SCOPES) if self.key.has_scope("admin") else self.key.scopes,
        )

    def has_scope(self, scope: Scope) -> bool:
        """Whether the caller may do what the scope names. Without a key they are the machine's owner, who may all."""
        return self.key is None or self.key.has_scope(scope)

    @property
    def readable_owner(self) -> str | None:
        """Whose runs the caller may read; None for those of all owners, with a key of the scope `admin`.

        Without a key a caller administers this machine, but what other people wrote is not read along the way: making
        the key for it is in the audit record.
        """
        return None if self.key is not None and self.key.has_scope("admin") else self.owner

    def require_scope(self, scope: Scope) -> None:
        """Raises `ScopeError` if the caller's key lacks the scope."""
        if self.key is not None and not self.has_scope(scope):
            raise ScopeError(f"the API key {self.key.id} lacks the scope {scope!r}", scope=scope)

    def require_readable(self, owner: str | None) -> None:
        """Raises `ScopeError` if the caller may not read the runs of this owner; None: of all owners."""
        if self.readable_owner not in (None, owner):
            raise ScopeError(
                "reading the runs of other owners requires a key with the scope 'admin' "
                "(stepgate keys create NAME --scopes admin)",
                scope="admin",
            )


@dataclass(frozen=True, slots=True)
class RateLimitResult:
    """The result of counting a request: the rate-limit headers of its answer, and the error if it is over the limit."""

    headers: dict[str, str]
    refusal: RateLimitError | None = None

    def raise_if_refused(self) -> None:
        """Raises the `RateLimitError`, if there is one. The headers belong on that answer too."""
        if self.refusal is not None:
            raise self.refusal


class Authenticator:
    """Verifies API keys and tokens and counts requests. Open streams are counted for this process only."""

    def __init__(
        self,
        keys: KeyStore,
        *,
        requires_key: bool,
        max_streams: int = 200,
        token_verifier: TokenVerifier | None = None,
        token_rates: TokenRates | None = None,
        rate_limiter: RateLimiter | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._keys = keys
        self._clock = clock
        self._max_streams = max_streams
        self._token_verifier = token_verifier
        self._token_rates = token_rates
        self._external_grants: dict[str, tuple[float, TokenGrant]] = {}
        self._streams: Counter[str] = Counter()
        self._verified_keys: dict[str, tuple[float, ApiKey]] = {}
        self._rate_limiter = rate_limiter or LocalRateLimiter(clock)
        self._last_used: dict[str, float] = {}
        self.requires_key = requires_key
        """Whether callers without a key are refused."""

    def forget_key(self, key_id: str) -> None:
        """Drops a key from the cache, so that its next use reads it again. Call it for a key that was revoked or
        changed.
        """
        for text in [text for text, (_, key) in self._verified_keys.items() if key.id == key_id]:
            del self._verified_keys[text]

    async def authenticate(self, text: str | None) -> Caller:
        """The holder of this key. Raises `AuthError` for an invalid key, and for a missing key where one is
        required.

        Where no key is required, any text that is not one of our keys is accepted: many clients always send a
        placeholder.
        """
        if text is not None and self._token_verifier is not None and not text.startswith("sg_"):
            vouched = await self._authenticate_external_token(text, self._token_verifier)
            if vouched is not None:
                return vouched
        if text is None or (not text.startswith("sg_") and not self.requires_key):
            if self.requires_key:
                raise AuthError("this gateway requires an API key: send `Authorization: Bearer sg_...`", missing=True)
            return Caller()
        now = self._clock()
        cached = self._verified_keys.get(text)
        if cached is None or cached[0] <= now:
            if len(self._verified_keys) > CACHE_KEYS:
                self._verified_keys.clear()
            self._verified_keys.pop(text, None)
            cached = (now + CACHE_SECONDS, await self._keys.verify(text))
            self._verified_keys[text] = cached
        key = cached[1]
        if self._last_used.get(key.id, -LAST_USED_SECONDS) <= now - LAST_USED_SECONDS:
            self._last_used[key.id] = now
            await self._keys.record_use(key.id)
        return Caller(key)

    async def _authenticate_external_token(self, token: str, tokens: TokenVerifier) -> Caller | None:
        """The external token's owner (cached for `CACHE_SECONDS`), or None if the token is not of a
        known kind.
        """
        now = self._clock()
        cached = self._external_grants.get(token)
        if cached is None or cached[0] <= now or is_expired(cached[1]):
            grant = await tokens.verify(token)
            if grant is None:
                return None
            if len(self._external_grants) > CACHE_KEYS:
                self._external_grants.clear()
            cached = self._external_grants[token] = (now + CACHE_SECONDS, grant)
        grant = cached[1]
        # By owner, not by token: a new token of the same owner must not start a new minute.
        key_id = f"token_{hashlib.sha256(grant.owner.encode()).hexdigest()[:12]}"
        key = ApiKey(key_id, grant.owner, grant.name, grant.scopes, grant.tools, grant.limits, 0.0, grant.expires_at)
        return Caller(key, is_external=True)

    async def count_request(self, caller: Caller) -> RateLimitResult:
        """Counts one request against the key's requests and tokens a minute."""
        key = caller.key
        if key is None:
            return RateLimitResult({})
        headers: dict[str, str] = {}
        refusal: RateLimitError | None = None
        limit = key.limits.requests_per_minute
        if limit is not None:
            request = secrets.token_hex(8)
            read = await self._rate_limiter.acquire(
                f"requests:{key.id}", request, 1, limit=limit, seconds=MINUTE_SECONDS
            )
            headers = _build_rate_limit_headers("requests", limit, read.remaining, read.reset_seconds)
            if not read.is_allowed:
                refusal = RateLimitError(
                    f"the key {key.id} allows {limit} requests a minute; try again in {read.reset_seconds:.0f} s",
                    retry_after_s=round(read.reset_seconds, 3),
                )
        if (
            self._token_rates is not None
            and not caller.is_external
            and (limit := key.limits.tokens_per_minute) is not None
        ):
            headers |= _build_rate_limit_headers(
                "tokens", limit, *await self._token_rates.read_remaining(key.id, limit)
            )
        return RateLimitResult(headers, refusal)

    def watch_key(self, caller: Caller) -> KeyWatch | None:
        """The watch of the caller's key. None without a key, and for a token of another issuer: those are made for
        minutes, so one that was good when the stream began is enough.
        """
        return None if caller.key is None or caller.is_external else KeyWatch(self._keys, caller.key.id)

    @contextlib.contextmanager
    def open_stream(self, caller: Caller) -> Iterator[KeyWatch | None]:
        """Holds one of the caller's stream slots while entered, and gives the watch of its key, if it has one. Raises
        `RateLimitError` if no slot is free.
        """
        who = caller.key.id if caller.key else ""
        if self._streams[who] >= self._max_streams:
            whose = f"the key {who}" if who else "callers without a key"
            raise RateLimitError(
                f"{self._max_streams} event streams of {whose} are open, and no more are allowed "
                "(AGENT_MAX_OPEN_STREAMS); close one, or request the answer without a stream",
                retry_after_s=STREAM_RETRY_SECONDS,
            )
        self._streams[who] += 1
        try:
            yield self.watch_key(caller)
        finally:
            self._streams[who] -= 1
            if not self._streams[who]:
                del self._streams[who]


def read_key(headers: Mapping[str, str]) -> str | None:
    """The key a request carries, as a bearer token or in `x-api-key`. Header names must be lower case."""
    kind, _, token = headers.get("authorization", "").partition(" ")
    if kind.lower() == "bearer" and token.strip():
        return token.strip()
    return headers.get("x-api-key") or None


def is_key_required(settings: Settings) -> bool:
    """Whether callers need a key: `AGENT_REQUIRE_KEY`, or with `auto`, whether other machines can call."""
    if settings.require_key != "auto":
        return settings.require_key == "always"
    return can_others_call(settings)


def can_others_call(settings: Settings) -> bool:
    """Whether other machines can reach the gateway: at its address, or at its public one through a proxy."""
    public_host = urlsplit(settings.public_url or "").hostname
    return not is_loopback(settings.host) or (public_host is not None and not is_loopback(public_host))


def is_loopback(host: str) -> bool:
    """Whether only programs on this machine can reach this address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _build_rate_limit_headers(what: str, limit: int, left: int, seconds: float) -> dict[str, str]:
    """The rate-limit headers of OpenAI's API; `seconds` is the time until some of the limit is free again."""
    return {
        f"x-ratelimit-limit-{what}": str(limit),
        f"x-ratelimit-remaining-{what}": str(max(0, left)),
        f"x-ratelimit-reset-{what}": format_duration(seconds),
    }


def format_duration(seconds: float) -> str:
    """Formats seconds as OpenAI's rate-limit headers do: `12ms`, `1s`, `6m0s`."""
    if seconds < 1:
        return f"{max(0, round(seconds * 1000))}ms"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}m{rest}s" if minutes else f"{rest}s"
