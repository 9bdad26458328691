"""`KeyBudgets`: limits the tokens and the money that API keys spend. Reserves before a call, settles after it.

A reservation is a row with the run that made it and the epoch of its claim. A process that is killed during a call
leaves its row behind. The row no longer counts once the run has ended or another worker has claimed it.
"""

import secrets
from collections.abc import Callable
from typing import Final

from agent.core.models import Usage
from agent.storage.api_keys import ApiKey, KeyStore
from agent.storage.sql import SqlClient, SqlStatement

STALE_SECONDS: Final = 86_400.0
"""A reservation of this age belongs to a run that no longer exists: no call lasts a day."""
_ROUNDING_MARGIN: Final = 1 - 1e-9
"""Reserving the whole rest of a budget must succeed despite rounding of floats."""


class KeyBudgets:
    """The budgets of keys. `clock` gives UTC seconds since 1970. Every method raises `StoreError`."""

    def __init__(self, keys: KeyStore, statements: SqlClient, clock: Callable[[], float]) -> None:
        self._keys = keys
        self._statements = statements
        self._clock = clock

    async def reserve(self, key: ApiKey, expected: Usage, *, run_id: str, epoch: int) -> str | None:
        """Reserves what a call may cost and returns the reservation's name, or None if it does not fit into the budget
        beside what is spent and reserved. Raises `NotFoundError` for a key that no longer exists.

        If the price is unknown, reserves at the key's average cost per token; with no history, the whole remaining
        budget. A single call of unknown price may always spend what is left.
        """
        tokens, usd = expected.total_tokens, expected.cost_usd or 0.0
        if key.limits.budget_usd is not None and expected.cost_usd is None:
            used_tokens, used_usd = await self._keys.get_usage(key.id)
            left = max(0.0, key.limits.budget_usd - used_usd) * _ROUNDING_MARGIN
            usd = min(left, used_usd * tokens / used_tokens) if used_tokens else left
        name = secrets.token_hex(12)
        change_counts = await self._statements.write_all(
            # Locks the key: other reservations for it wait here and then see this row.
            SqlStatement("UPDATE api_keys SET used_tokens = used_tokens WHERE id = ?", (key.id,)),
            SqlStatement(
                "DELETE FROM key_reservations WHERE key_id = ? AND (at < ? OR EXISTS (SELECT 1 FROM runs WHERE "
                "runs.run_id = key_reservations.run_id AND (runs.epoch > key_reservations.epoch OR runs.terminal)))",
                (key.id, self._clock() - STALE_SECONDS),
            ),
            SqlStatement(
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
        return name if change_counts[-1] else None

    async def settle(self, key_id: str, reservation: str | None, tokens: int, usd: float | None) -> None:
        """Replaces a reservation, if there is one, with what was spent."""
        spent = SqlStatement(
            "UPDATE api_keys SET used_tokens = used_tokens + ?, used_usd = used_usd + ? WHERE id = ?",
            (tokens, usd or 0.0, key_id),
        )
        freed = SqlStatement("DELETE FROM key_reservations WHERE id = ?", (reservation or "",))
        await self._statements.write_all(spent, *((freed,) if reservation is not None else ()))
