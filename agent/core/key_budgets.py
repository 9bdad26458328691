"""`KeyBudgets`: what API keys may spend in all, in tokens and money. Set aside before a call, settled after it.

What is set aside is a row of the run that asked, under the epoch it was claimed with. A process that is killed in a
call leaves its row behind; it counts no more once the run has ended or is somebody else's.
"""

import secrets
from collections.abc import Callable
from typing import Final

from agent.core.keys import ApiKey, KeyStore
from agent.core.models import Usage
from agent.core.statements import Change, Statements

FORGOTTEN_SECONDS: Final = 86_400.0
"""What is set aside this long belongs to a run that is not there any more: no call lasts a day."""
_ROUNDING: Final = 1 - 1e-9
"""What is left of a budget, set aside whole, must fit into it whatever the last bit of a float does."""


class KeyBudgets:
    """The budgets of keys. `clock` gives UTC seconds since 1970. Every method raises `StoreError`."""

    def __init__(self, keys: KeyStore, statements: Statements, clock: Callable[[], float]) -> None:
        self._keys = keys
        self._statements = statements
        self._clock = clock

    async def reserve(self, key: ApiKey, expected: Usage, *, run_id: str, epoch: int) -> str | None:
        """Set aside what a call may take, under the name that is returned; None when it does not fit beside what is
        spent and set aside. `NotFoundError` for a key that is gone.

        Where no price is known beforehand, it is told by the reply. Until then it is taken for what the key's tokens
        have cost so far, and for all that is left where they have cost nothing yet; one such call alone may always
        spend what is left."""
        tokens, usd = expected.total_tokens, expected.cost_usd or 0.0
        if key.limits.budget_usd is not None and expected.cost_usd is None:
            used_tokens, used_usd = await self._keys.spent(key.id)
            left = max(0.0, key.limits.budget_usd - used_usd) * _ROUNDING
            usd = min(left, used_usd * tokens / used_tokens) if used_tokens else left
        name = secrets.token_hex(12)
        told = await self._statements.write_all(
            # Whoever else sets aside for this key waits here, and then sees this row.
            Change("UPDATE api_keys SET used_tokens = used_tokens WHERE id = ?", (key.id,)),
            Change(
                "DELETE FROM key_reservations WHERE key_id = ? AND (at < ? OR EXISTS (SELECT 1 FROM runs WHERE "
                "runs.run_id = key_reservations.run_id AND (runs.epoch > key_reservations.epoch OR runs.terminal)))",
                (key.id, self._clock() - FORGOTTEN_SECONDS),
            ),
            Change(
                "INSERT INTO key_reservations (id, key_id, owner, run_id, epoch, tokens, usd, at) "
                "SELECT ?, k.id, k.owner, ?, ?, ?, ?, ? FROM api_keys k WHERE k.id = ? "
                "AND (? < 0 OR k.used_tokens + ? + (SELECT COALESCE(SUM(r.tokens), 0) FROM key_reservations r "
                "WHERE r.key_id = k.id) <= ?) "
                "AND (? < 0 OR (k.used_usd < ? AND k.used_usd + ? + (SELECT COALESCE(SUM(r.usd), 0) "
                "FROM key_reservations r WHERE r.key_id = k.id) <= ?))",
                (
                    name, run_id, epoch, tokens, usd, self._clock(), key.id,
                    -1 if key.limits.budget_tokens is None else 0, tokens, key.limits.budget_tokens or 0,
                    -1.0 if key.limits.budget_usd is None else 0.0,
                    key.limits.budget_usd or 0.0, usd, key.limits.budget_usd or 0.0,
                ),
            ),
        )  # fmt: skip
        return name if told[-1] else None

    async def settle(self, key_id: str, reservation: str | None, tokens: int, usd: float | None) -> None:
        """Put what was spent in the place of what was set aside, if anything was."""
        spent = Change(
            "UPDATE api_keys SET used_tokens = used_tokens + ?, used_usd = used_usd + ? WHERE id = ?",
            (tokens, usd or 0.0, key_id),
        )
        freed = Change("DELETE FROM key_reservations WHERE id = ?", (reservation or "",))
        await self._statements.write_all(spent, *((freed,) if reservation is not None else ()))
