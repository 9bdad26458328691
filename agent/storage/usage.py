"""The ledger of model calls: one row for each ended run and model. It outlives the runs, which may be deleted.

A run without a model call has one row with an empty model, so that runs are counted too.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from agent.storage.sql import Row, SqlClient, SqlStatement

DAY_SECONDS: Final = 86_400
CATCH_UP_SECONDS: Final = 30 * DAY_SECONDS
"""How far back `find_unrecorded` looks."""
MAX_GROUPS: Final = 10_000

Dimension = Literal["day", "owner", "key", "room", "model"]
"""What usage may be grouped by. A day is one of UTC."""
_COLUMNS: Final[dict[Dimension, str]] = {
    "day": "day",
    "owner": "owner",
    "key": "key_id",
    "room": "room",
    "model": "model",
}
_INSERT: Final = (
    "INSERT INTO model_usage (run_id, model, owner, key_id, room, status, at, day, model_calls, prompt_tokens, "
    "completion_tokens, cached_tokens, reasoning_tokens, cost_usd) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?) "
    "ON CONFLICT (run_id, model) DO NOTHING"
)
_SUMS: Final = (
    "count(DISTINCT run_id), sum(model_calls), sum(prompt_tokens), sum(completion_tokens), sum(cached_tokens), "
    "sum(reasoning_tokens), sum(cost_usd)"
)


@dataclass(frozen=True, slots=True)
class UsageGroup:
    """The usage of one group. `values` has one entry for each dimension asked for; a day is counted from 1970.

    `cost_usd` is the sum of the known costs, None if no call had a known price.
    """

    values: tuple[str | int, ...]
    runs: int
    model_calls: int
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    reasoning_tokens: int
    cost_usd: float | None


class UsageLedger:
    """Records and sums up usage. `clock` gives UTC seconds since 1970. Every method raises `StoreError`."""

    def __init__(self, statements: SqlClient, clock: Callable[[], float]) -> None:
        self._statements = statements
        self._clock = clock

    async def record(self, run_id: str) -> None:
        """Records an ended run from its log. Recording it again, also in another process, changes nothing."""
        rows = await self._statements.read(
            "SELECT owner, room, status, updated_at FROM runs WHERE run_id = ? AND terminal", run_id
        )
        if not rows:  # deleted meanwhile, or not ended
            return
        owner, room, status, at = rows[0]
        events = await self._statements.read(
            "SELECT type, data FROM events WHERE run_id = ? AND type IN ('run.created', 'model.returned')", run_id
        )
        key_id, sums = "", dict[str, list[float]]()
        for kind, data in events:
            body = json.loads(data)
            if kind == "run.created":
                key_id = body.get("key") or ""
            else:
                _add_call(sums.setdefault(body["model"], [0, 0, 0, 0, 0, 0, 0]), body["usage"])
        head = (owner, key_id, room, status, at, int(at // DAY_SECONDS))
        statements = [
            SqlStatement(_INSERT, (run_id, model, *head, *(int(number) for number in counts[:5]), _known_cost(counts)))
            for model, counts in (sums or {"": [0.0] * 7}).items()
        ]
        await self._statements.write_all(*statements)

    async def find_unrecorded(self, limit: int = 500) -> list[str]:
        """Returns the ids of recently ended runs that are not recorded, oldest first: a process died between."""
        rows = await self._statements.read(
            "SELECT run_id FROM runs WHERE terminal AND updated_at > ? AND NOT EXISTS "
            "(SELECT 1 FROM model_usage u WHERE u.run_id = runs.run_id) ORDER BY updated_at LIMIT ?",
            self._clock() - CATCH_UP_SECONDS, limit,
        )  # fmt: skip
        return [run_id for (run_id,) in rows]

    async def summarize(
        self, by: Sequence[Dimension], *, owner: str | None = None, since: float = 0.0, until: float | None = None
    ) -> list[UsageGroup]:
        """Returns the usage of the runs that ended in `[since, until)`, in groups, ordered by the group's values.

        `owner` restricts it to one owner. Returns at most `MAX_GROUPS` groups; without `by` exactly one.
        """
        columns = [_COLUMNS[dimension] for dimension in dict.fromkeys(by)]
        grouped = f" GROUP BY {', '.join(columns)} ORDER BY {', '.join(columns)}" if columns else ""
        rows = await self._statements.read(
            f"SELECT {', '.join([*columns, _SUMS])} FROM model_usage WHERE at >= ? AND at < ? "  # noqa: S608 - our names
            f"AND (? = 0 OR owner = ?){grouped} LIMIT {MAX_GROUPS}",
            since, until if until is not None else 1e12, 0 if owner is None else 1, owner or "",
        )  # fmt: skip
        return [_to_group(row, len(columns)) for row in rows]


def _add_call(counts: list[float], usage: dict[str, float | None]) -> None:
    names = ("model_calls", "prompt_tokens", "completion_tokens", "cached_tokens", "reasoning_tokens")
    for position, name in enumerate(names):
        counts[position] += usage.get(name) or 0
    cost = usage.get("cost_usd")
    if cost is not None:
        counts[5] += cost
        counts[6] += 1


def _known_cost(counts: list[float]) -> float | None:
    return counts[5] if counts[6] else None


def _to_group(row: Row, dimensions: int) -> UsageGroup:
    *counts, cost = row[dimensions:]
    runs, calls, prompt, completion, cached, reasoning = (int(count or 0) for count in counts)
    known = None if cost is None else float(cost)
    return UsageGroup(tuple(row[:dimensions]), runs, calls, prompt, completion, cached, reasoning, known)
