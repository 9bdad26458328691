"""What callers' keys may spend: tokens a minute, by the meters, and budgets, kept in the store."""

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass

from agent.core.errors import QuotaError, RateLimitError
from agent.core.key_budgets import KeyBudgets
from agent.core.keys import ApiKey, KeyStore
from agent.core.models import Usage
from gateway.meters import LocalMeters, Meters, Reading

MINUTE = 60.0
KNOWN_SECONDS = 2.0
"""How long a key's limits count as known without a look at the store."""
CALL_SECONDS = 300.0
"""How long what a call may take counts if nobody settles it: its process was killed, and the provider goes on."""
UNDER_WAY_SECONDS = 2.0
"""When to try again where calls that are under way hold the rest: nobody knows when one of them ends."""


class TokenMinutes:
    """Tokens a minute of every key: what calls have used within the last one, and what those under way may."""

    def __init__(self, meters: Meters) -> None:
        self._meters = meters

    async def left(self, key: str, limit: int) -> tuple[int, float]:
        """What is left of the limit, at least 0, and seconds until some more is free."""
        read = await self._meters.look(_meter(key), limit)
        return read.left, _until(read)

    async def require(self, key: str, tokens: int, limit: int) -> None:
        """Raise a `RateLimitError`, which says when to try again, where so many tokens are not left."""
        left, seconds = await self.left(key, limit)
        if tokens > limit:
            raise _never(key, tokens, limit)
        if tokens > left:
            raise _later(key, limit, left, seconds)

    async def hold(self, key: str, call: str, tokens: int, limit: int) -> None:
        """Count what a call may take, until it is over. Raises what `require` does."""
        if tokens > limit:
            raise _never(key, tokens, limit)
        read = await self._meters.take(_meter(key), call, tokens, limit=limit, seconds=CALL_SECONDS)
        if not read.taken:
            raise _later(key, limit, read.left, _until(read))

    async def settle(self, key: str, call: str, held: int, tokens: int) -> None:
        """Put what a call has used in its place; 0 where it was not made."""
        await self._meters.replace(_meter(key), call, held, tokens, seconds=MINUTE)


def _meter(key: str) -> str:
    return f"tokens:{key}"


def _until(read: Reading) -> float:
    """Seconds until more is free; what is under way may end at any time."""
    return read.seconds if read.seconds <= MINUTE else UNDER_WAY_SECONDS


def _never(key: str, tokens: int, limit: int) -> RateLimitError:
    return RateLimitError(
        f"a model call that may take {tokens:,} tokens is more than the key {key} allows in a minute ({limit:,}); "
        "shorten it, ask for a shorter reply (max_tokens, AGENT_LLM_MAX_TOKENS), or make a key with more",
        limit="tokens",
        retry=False,
    )


def _later(key: str, limit: int, left: int, seconds: float) -> RateLimitError:
    return RateLimitError(
        f"the key {key} allows {limit:,} tokens a minute, and {left:,} are left; try again in {seconds:.0f} s",
        retry_after_s=round(seconds, 3),
        limit="tokens",
    )


@dataclass(slots=True)
class _Held:
    """What a call under way has set aside: tokens of its minute, and the store's row where its key has a budget."""

    tokens: int = 0
    booked: str | None = None


class KeyPurse:
    """Implements `agent.execution.run.Purse` over the keys."""

    def __init__(
        self,
        keys: KeyStore,
        budgets: KeyBudgets,
        clock: Callable[[], float] = time.monotonic,
        meters: Meters | None = None,
    ) -> None:
        self._keys = keys
        self._budgets = budgets
        self._clock = clock
        self._known: dict[str, tuple[float, ApiKey]] = {}
        self._held: dict[str, _Held] = {}
        self.minutes = TokenMinutes(meters or LocalMeters(clock))

    async def afford(self, key: str, tokens: int) -> None:
        """Raise a `RateLimitError` where the key has fewer tokens left this minute: a run whose first call may take so
        many would fail at it, when its stream has begun already."""
        limit = (await self._key(key)).limits.tokens_per_minute
        if limit is not None:
            await self.minutes.require(key, tokens, limit)

    async def reserve(self, key: str, expected: Usage, *, run_id: str, epoch: int) -> str:
        """See `Purse.reserve`."""
        tokens = expected.total_tokens
        found = await self._key(key)
        limits = found.limits
        call = f"{run_id}/{secrets.token_hex(6)}"
        held = self._held[call] = _Held()
        try:
            if limits.tokens_per_minute is not None:
                await self.minutes.hold(key, call, tokens, limits.tokens_per_minute)
                held.tokens = tokens
            if limits.budget_tokens is not None or limits.budget_usd is not None:
                held.booked = await self._book(found, expected, run_id, epoch)
        except BaseException:
            del self._held[call]
            if held.tokens:
                await self.minutes.settle(key, call, held.tokens, 0)
            raise
        return call

    async def settle(self, key: str, reservation: str, usage: Usage) -> None:
        """See `Purse.settle`."""
        held = self._held.pop(reservation, _Held())
        if held.tokens:
            await self.minutes.settle(key, reservation, held.tokens, usage.total_tokens)
        await self._budgets.settle(key, held.booked, usage.total_tokens, usage.cost_usd)

    async def _book(self, key: ApiKey, expected: Usage, run_id: str, epoch: int) -> str:
        booked = await self._budgets.reserve(key, expected, run_id=run_id, epoch=epoch)
        if booked is not None:
            return booked
        used_tokens, used_usd = await self._keys.spent(key.id)
        limits = key.limits
        usd = expected.cost_usd or 0.0
        spent = (limits.budget_tokens is not None and used_tokens + expected.total_tokens > limits.budget_tokens) or (
            limits.budget_usd is not None and (used_usd >= limits.budget_usd or used_usd + usd > limits.budget_usd)
        )
        if spent:
            raise QuotaError(f"the budget of the key {key.id} does not allow another model call")
        raise RateLimitError(
            f"what is left of the budget of the key {key.id} is set aside for calls that are under way; "
            f"try again in {UNDER_WAY_SECONDS:.0f} s",
            retry_after_s=UNDER_WAY_SECONDS,
        )

    async def _key(self, key_id: str) -> ApiKey:
        """The key with its limits, as they are for a few seconds."""
        now = self._clock()
        known = self._known.get(key_id)
        if known is None or known[0] <= now:
            known = (now + KNOWN_SECONDS, await self._keys.get(key_id))
            self._known[key_id] = known
        return known[1]
