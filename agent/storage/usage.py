"""The ledger of model calls: one row for each ended run and model, and their sums by day. It outlives the runs.

A run without a model call has one row with an empty model, so that runs are counted too. `sum_up` adds rows to the
sums of their day. A report reads the sums, the rows that are not in them yet, and the rows of days that it covers in
part; so it takes as long over a million runs as over a thousand.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from agent.core.models import USAGE_COUNTS, RunStatus, Usage
from agent.storage.sql import Row, SqlClient, SqlStatement, format_marks

DAY_SECONDS: Final = 86_400
CATCH_UP_SECONDS: Final = 30 * DAY_SECONDS
"""How far back the first `find_unrecorded` looks."""
SETTLED_SECONDS: Final = 600
"""How long after a run's end another process may still record it. Later it counts as left behind."""
SUMMED_RUNS: Final = 500
"""Runs that one transaction adds to the sums: some milliseconds."""
MAX_GROUPS: Final = 10_000
_END_OF_TIME: Final = 1e12

Dimension = Literal["day", "owner", "key", "room", "model"]
"""The dimensions of usage. A day is one of UTC."""
_COLUMNS: Final[dict[Dimension, str]] = {
    "day": "day",
    "owner": "owner",
    "key": "key_id",
    "room": "room",
    "model": "model",
}
_COUNTS: Final = ", ".join(USAGE_COUNTS)
_RECORDED: Final = ("run_id", "model", "owner", "key_id", "room", "status", "at", "day", *USAGE_COUNTS, "cost_usd")
_INSERT: Final = (
    f"INSERT INTO model_usage ({', '.join(_RECORDED)}) SELECT {format_marks(_RECORDED)} "  # noqa: S608 - constants
    "FROM runs WHERE run_id = ? ON CONFLICT (run_id, model) DO NOTHING"
)
"""A run is recorded a moment after its end. If its owner was deleted meanwhile, nothing of it may be written."""
_KEYS: Final = "day, owner, key_id, room, model"
_IS_FIRST_MODEL: Final = (
    "CASE WHEN EXISTS (SELECT 1 FROM model_usage o WHERE o.run_id = u.run_id AND o.model < u.model) THEN 0 ELSE 1 END"
)
"""Counts a run once, under the first of its models."""
_ROWS: Final = f"SELECT {_KEYS}, {_IS_FIRST_MODEL} AS runs, 1 AS model_runs, {_COUNTS}, cost_usd FROM model_usage u"  # noqa: S608
_DAYS: Final = f"SELECT {_KEYS}, runs, model_runs, {_COUNTS}, cost_usd FROM usage_days u"  # noqa: S608
_SUM_UP: Final = (
    f"INSERT INTO usage_days ({_KEYS}, runs, model_runs, {_COUNTS}, cost_usd) "  # noqa: S608 - constants
    f"SELECT {_KEYS}, sum(runs), sum(model_runs), {', '.join(f'sum({name})' for name in USAGE_COUNTS)}, sum(cost_usd) "
    f"FROM ({_ROWS} WHERE run_id IN ({{marks}}) AND NOT summed) AS added WHERE true GROUP BY {_KEYS} "
    f"ON CONFLICT ({_KEYS}) DO UPDATE SET "
    + ", ".join(f"{name} = usage_days.{name} + excluded.{name}" for name in ("runs", "model_runs", *USAGE_COUNTS))
    + ", cost_usd = CASE WHEN excluded.cost_usd IS NULL THEN usage_days.cost_usd "
    "ELSE coalesce(usage_days.cost_usd, 0) + excluded.cost_usd END"
)


@dataclass(frozen=True, slots=True)
class UsageGroup:
    """The number of runs of one group and their usage. `values` has one entry for each dimension asked for; a day is
    counted from 1970.
    """

    values: tuple[str | int, ...]
    runs: int
    usage: Usage


@dataclass(frozen=True, slots=True)
class EndedRun:
    """A run that has ended, with the model and the usage of each of its calls. `at` is its end, in UTC seconds since
    1970; `key_id` is "" for a run without an API key.
    """

    run_id: str
    owner: str
    key_id: str
    room: str
    status: RunStatus
    at: float
    calls: tuple[tuple[str, Usage], ...]


class UsageLedger:
    """Records and sums up usage. `clock` gives UTC seconds since 1970. Every method raises `StoreError`."""

    def __init__(self, statements: SqlClient, clock: Callable[[], float]) -> None:
        self._statements = statements
        self._clock = clock

    async def record_runs(self, runs: Sequence[EndedRun]) -> None:
        """Records ended runs in one transaction, without those that were deleted. Recording one again, also in another
        process, changes nothing.
        """
        await self._statements.write_all(*(statement for run in runs for statement in _build_inserts(run)))

    async def record(self, run_id: str) -> None:
        """Records an ended run from its log, as `record_runs` does."""
        rows = await self._statements.read(
            "SELECT owner, room, status, updated_at FROM runs WHERE run_id = ? AND terminal", run_id
        )
        if not rows:  # deleted meanwhile, or not ended
            return
        owner, room, status, at = rows[0]
        events = await self._statements.read(
            "SELECT type, data FROM events WHERE run_id = ? AND type IN ('run.created', 'model.returned')", run_id
        )
        bodies = [(kind, json.loads(data)) for kind, data in events]
        key_id = next((body.get("key") for kind, body in bodies if kind == "run.created"), None) or ""
        calls = [
            (body["model"], Usage.model_validate(body["usage"])) for kind, body in bodies if kind == "model.returned"
        ]
        await self.record_runs([EndedRun(run_id, owner, key_id, room, status, at, tuple(calls))])

    async def find_unrecorded(self) -> list[str]:
        """The ids of ended runs that are not recorded, oldest first: a process died between. Looks at the runs
        that ended since the last `mark_caught_up`.
        """
        rows = await self._statements.read("SELECT done FROM housekeeping WHERE name = 'usage'")
        since = max(float(rows[0][0]) if rows else 0.0, self._clock() - CATCH_UP_SECONDS)
        rows = await self._statements.read(
            "SELECT run_id FROM runs WHERE terminal AND updated_at > ? AND NOT EXISTS "
            "(SELECT 1 FROM model_usage u WHERE u.run_id = runs.run_id) ORDER BY updated_at LIMIT 500",
            since,
        )
        return [run_id for (run_id,) in rows]

    async def mark_caught_up(self) -> None:
        """Notes that every run which ended some time ago is recorded, so that the next search begins there."""
        await self._statements.write(
            "INSERT INTO housekeeping (name, holder, until, done) VALUES ('usage', '', 0, ?) "
            "ON CONFLICT (name) DO UPDATE SET done = excluded.done WHERE housekeeping.done < excluded.done",
            self._clock() - SETTLED_SECONDS,
        )

    async def sum_up(self) -> int:
        """Adds some recorded runs to the sums of their days. Returns how many; 0 if all are in them.

        Each row is added once, also if several processes do this: the first statement makes the others wait, and then
        they find the rows summed.
        """
        rows = await self._statements.read(
            "SELECT DISTINCT run_id FROM (SELECT run_id FROM model_usage WHERE NOT summed ORDER BY at LIMIT ?) AS old",
            SUMMED_RUNS,
        )
        if not rows:
            return 0
        runs = tuple(sorted(str(run_id) for (run_id,) in rows))
        marks = format_marks(runs)
        unsummed = f"WHERE run_id IN ({marks}) AND NOT summed"
        await self._statements.write_all(
            SqlStatement(f"UPDATE model_usage SET summed = summed {unsummed}", runs),  # noqa: S608 - constants
            SqlStatement(_SUM_UP.format(marks=marks), runs),
            SqlStatement(f"UPDATE model_usage SET summed = true {unsummed}", runs),  # noqa: S608 - constants
        )
        return len(runs)

    async def delete_before(self, at: float, *, limit: int) -> int:
        """Deletes up to `limit` rows of runs that ended before a time and are summed. Their days' sums stay."""
        rows = await self._statements.read(
            "SELECT run_id, model FROM model_usage WHERE at < ? AND summed ORDER BY at LIMIT ?", at, limit
        )
        runs = sorted({str(run_id) for run_id, _ in rows})
        if not runs:
            return 0
        (count,) = await self._statements.write_all(
            SqlStatement(
                f"DELETE FROM model_usage WHERE summed AND run_id IN ({format_marks(runs)})",  # noqa: S608 - marks
                tuple(runs),
            )
        )
        return count

    async def summarize(
        self, by: Sequence[Dimension], *, owner: str | None = None, since: float = 0.0, until: float | None = None
    ) -> list[UsageGroup]:
        """The usage of the runs that ended in `[since, until)`, in groups, ordered by the group's values.

        `owner` restricts it to one owner. Returns at most `MAX_GROUPS` groups; without `by` exactly one. Where a range
        begins or ends within a day whose rows are deleted (`delete_before`), it has nothing of that day.
        """
        columns = [_COLUMNS[dimension] for dimension in dict.fromkeys(by)]
        grouped = f" GROUP BY {', '.join(columns)} ORDER BY {', '.join(columns)}" if columns else ""
        runs = "sum(model_runs)" if "model" in columns else "sum(runs)"
        sums = ", ".join((runs, *(f"sum({name})" for name in (*USAGE_COUNTS, "cost_usd"))))
        parts, values = _select_span(since, _END_OF_TIME if until is None or until > self._clock() else until, owner)
        rows = await self._statements.read(
            f"SELECT {', '.join([*columns, sums])} FROM ({parts}) AS span{grouped} LIMIT {MAX_GROUPS}",  # noqa: S608
            *values,
        )
        return [_to_group(row, len(columns)) for row in rows]


def _build_inserts(run: EndedRun) -> Iterator[SqlStatement]:
    """Yields one row for each model of a run; one without a model if there was no call."""
    sums: dict[str, Usage] = {}
    for model, usage in run.calls:
        sums[model] = sums[model] + usage if model in sums else usage
    head = (run.owner, run.key_id, run.room, run.status, run.at, int(run.at // DAY_SECONDS))
    for model, total in (sums or {"": Usage()}).items():
        values = (run.run_id, model, *head, *(getattr(total, name) for name in USAGE_COUNTS), total.cost_usd)
        yield SqlStatement(_INSERT, (*values, run.run_id))


def _select_span(since: float, until: float, owner: str | None) -> tuple[str, list[object]]:
    """The query for the rows of a time span: sums of its whole days, and single rows for the rest."""
    first, last = -int(-since // DAY_SECONDS), int(until // DAY_SECONDS)
    owned, who = ("", []) if owner is None else (" AND owner = ?", [owner])
    if first >= last:  # no whole day
        return f"{_ROWS} WHERE at >= ? AND at < ?{owned}", [since, until, *who]
    begin, end = first * DAY_SECONDS, last * DAY_SECONDS
    parts = (
        (f"{_DAYS} WHERE day >= ? AND day < ?{owned}", [first, last, *who]),
        (f"{_ROWS} WHERE NOT summed AND at >= ? AND at < ?{owned}", [begin, end, *who]),
        (f"{_ROWS} WHERE at >= ? AND at < ?{owned}", [since, begin, *who]),
        (f"{_ROWS} WHERE at >= ? AND at < ?{owned}", [end, until, *who]),
    )
    return " UNION ALL ".join(query for query, _ in parts), [value for _, values in parts for value in values]


def _to_group(row: Row, dimensions: int) -> UsageGroup:
    *sums, cost = row[dimensions:]
    runs, *counts = (int(count or 0) for count in sums)
    total = Usage(**dict(zip(USAGE_COUNTS, counts, strict=True)), cost_usd=None if cost is None else float(cost))
    return UsageGroup(tuple(row[:dimensions]), runs, total)
