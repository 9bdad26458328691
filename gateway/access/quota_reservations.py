"""Quotas of API keys: tokens a minute (in the rate limiter) and budgets (in the store).

Each model call reserves its expected cost before it starts and records its actual usage after it.
"""

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass

from agent.core.errors import QuotaError, RateLimitError
from agent.core.models import Usage
from agent.storage.api_keys import ApiKey, KeyStore
from agent.storage.key_budgets import KeyBudgets
from gateway.access.rate_limiter import LocalRateLimiter, MeterReading, RateLimiter

MINUTE_SECONDS = 60.0
KEY_CACHE_SECONDS = 2.0
"""How long a key's limits are cached."""
RESERVATION_SECONDS = 300.0
"""How long a reservation counts if its usage is never recorded, because the process was killed while the provider went
on.
"""
RESERVED_RETRY_SECONDS = 2.0
"""Suggested time to retry if calls in progress have reserved the rest; when one ends cannot be known."""


class TokenRates:
    """Tokens a minute of every key: the usage of the last minute plus the reservations of calls in progress."""

    def __init__(self, rate_limiter: RateLimiter) -> None:
        self._rate_limiter = rate_limiter

    async def read_remaining(self, key: str, limit: int) -> tuple[int, float]:
        """The rest of the limit (at least 0), and the seconds until more is free."""
        read = await self._rate_limiter.read(_meter_name(key), limit)
        return read.remaining, _compute_wait(read)

    async def require_remaining(self, key: str, tokens: int, limit: int) -> None:
        """Raises a `RateLimitError` with the time to retry if fewer than `tokens` are left."""
        left, seconds = await self.read_remaining(key, limit)
        if tokens > limit:
            raise _make_too_large_error(key, tokens, limit)
        if tokens > left:
            raise _make_exhausted_error(key, limit, left, seconds)

    async def reserve(self, key: str, call: str, tokens: int, limit: int) -> None:
        """Reserves the tokens that a call may use. Raises what `require_remaining` raises."""
        if tokens > limit:
            raise _make_too_large_error(key, tokens, limit)
        read = await self._rate_limiter.acquire(
            _meter_name(key), call, tokens, limit=limit, seconds=RESERVATION_SECONDS
        )
        if not read.is_allowed:
            raise _make_exhausted_error(key, limit, read.remaining, _compute_wait(read))

    async def record_usage(self, key: str, call: str, held: int, tokens: int) -> None:
        """Replaces a call's reservation with its actual usage; 0 if the call was not made."""
        await self._rate_limiter.replace(_meter_name(key), call, held, tokens, seconds=MINUTE_SECONDS)


def _meter_name(key: str) -> str:
    return f"tokens:{key}"


def _compute_wait(read: MeterReading) -> float:
    """The seconds until more is free; a call in progress may end at any time."""
    return read.reset_seconds if read.reset_seconds <= MINUTE_SECONDS else RESERVED_RETRY_SECONDS


def _make_too_large_error(key: str, tokens: int, limit: int) -> RateLimitError:
    return RateLimitError(
        f"a model call that may take {tokens:,} tokens exceeds what the key {key} allows in a minute ({limit:,}); "
        "shorten it, ask for a shorter reply (max_tokens, AGENT_LLM_MAX_TOKENS), or create a key with a higher limit",
        limit="tokens",
        retry=False,
    )


def _make_exhausted_error(key: str, limit: int, left: int, seconds: float) -> RateLimitError:
    return RateLimitError(
        f"the key {key} allows {limit:,} tokens a minute, and {left:,} are left; try again in {seconds:.0f} s",
        retry_after_s=round(seconds, 3),
        limit="tokens",
    )


@dataclass(slots=True)
class _Reservation:
    """The reservation of a call in progress: tokens of its minute, and a budget row if its key has a budget."""

    tokens: int = 0
    budget_row: str | None = None


class KeyQuotas:
    """Implements `agent.run_context.engine.QuotaReservations` for API keys."""

    def __init__(
        self,
        keys: KeyStore,
        budgets: KeyBudgets,
        clock: Callable[[], float] = time.monotonic,
        rate_limiter: RateLimiter | None = None,
    ) -> None:
        self._keys = keys
        self._budgets = budgets
        self._clock = clock
        self._key_cache: dict[str, tuple[float, ApiKey]] = {}
        self._reservations: dict[str, _Reservation] = {}
        self.token_rates = TokenRates(rate_limiter or LocalRateLimiter(clock))

    async def check_token_rate(self, key: str, tokens: int) -> None:
        """Raises a `RateLimitError` if the key has fewer tokens left this minute than the run's first call may use.

        Without this check the run would fail at that call, when its stream has already begun.
        """
        limit = (await self._get_key(key)).limits.tokens_per_minute
        if limit is not None:
            await self.token_rates.require_remaining(key, tokens, limit)

    async def reserve(self, key: str, expected: Usage, *, run_id: str, epoch: int) -> str:
        """See `QuotaReservations.reserve`."""
        tokens = expected.total_tokens
        stored_key = await self._get_key(key)
        limits = stored_key.limits
        call = f"{run_id}/{secrets.token_hex(6)}"
        reservation_entry = self._reservations[call] = _Reservation()
        try:
            if limits.tokens_per_minute is not None:
                await self.token_rates.reserve(key, call, tokens, limits.tokens_per_minute)
                reservation_entry.tokens = tokens
            if limits.budget_tokens is not None or limits.budget_usd is not None:
                reservation_entry.budget_row = await self._reserve_budget(stored_key, expected, run_id, epoch)
        except BaseException:
            del self._reservations[call]
            if reservation_entry.tokens:
                await self.token_rates.record_usage(key, call, reservation_entry.tokens, 0)
            raise
        return call

    async def record_usage(self, key: str, reservation: str, usage: Usage) -> None:
        """See `QuotaReservations.record_usage`."""
        reserved_amount = self._reservations.pop(reservation, _Reservation())
        if reserved_amount.tokens:
            await self.token_rates.record_usage(key, reservation, reserved_amount.tokens, usage.total_tokens)
        await self._budgets.settle(key, reserved_amount.budget_row, usage.total_tokens, usage.cost_usd)

    async def _reserve_budget(self, key: ApiKey, expected: Usage, run_id: str, epoch: int) -> str:
        booked = await self._budgets.reserve(key, expected, run_id=run_id, epoch=epoch)
        if booked is not None:
            return booked
        used_tokens, used_usd = await self._keys.get_usage(key.id)
        limits = key.limits
        usd = expected.cost_usd or 0.0
        spent = (limits.budget_tokens is not None and used_tokens + expected.total_tokens > limits.budget_tokens) or (
            limits.budget_usd is not None and (used_usd >= limits.budget_usd or used_usd + usd > limits.budget_usd)
        )
        if spent:
            raise QuotaError(_describe_spent_budget(key, used_tokens, used_usd, expected))
        raise RateLimitError(
            f"the remaining budget of the key {key.id} is reserved by calls in progress; "
            f"try again in {RESERVED_RETRY_SECONDS:.0f} s",
            retry_after_s=RESERVED_RETRY_SECONDS,
        )

    async def _get_key(self, key_id: str) -> ApiKey:
        """The key with its limits, cached for `KEY_CACHE_SECONDS`."""
        now = self._clock()
        cached = self._key_cache.get(key_id)
        if cached is None or cached[0] <= now:
            cached = (now + KEY_CACHE_SECONDS, await self._keys.get(key_id))
            self._key_cache[key_id] = cached
        return cached[1]


def _describe_spent_budget(key: ApiKey, used_tokens: int, used_usd: float, expected: Usage) -> str:
    """Why a key may not call, with the figures that show how large its budget has to be."""
    limits, spent = key.limits, list[str]()
    if limits.budget_tokens is not None:
        used = f"{used_tokens:,} of {limits.budget_tokens:,} tokens are used"
        spent.append(f"{used}, and this call may take {expected.total_tokens:,}")
    if limits.budget_usd is not None:
        cost = f", and this call may cost {expected.cost_usd:,.4g}" if expected.cost_usd else ""
        spent.append(f"{used_usd:,.4g} of {limits.budget_usd:,.4g} USD are used{cost}")
    return (
        f"the budget of the key {key.id} does not allow another model call: {'; '.join(spent)}. "
        f"Ask the operator for a larger budget: `stepgate keys set {key.id}`"
    )
