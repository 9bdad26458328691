"""`RunSearch`: runs by owner, words, room, time and model, with what their models have cost."""

from collections.abc import Sequence
from dataclasses import dataclass

from agent.core.events import ModelReturned, ToolCalled
from agent.core.models import RunStatus
from agent.core.surrogates import to_storable_text
from agent.storage.journal import RunRow
from agent.storage.journal_rows import RUN_COLUMNS, make_search_words, parse_run_row
from agent.storage.sql import SqlClient, format_marks

_WORK = (ToolCalled.type, ModelReturned.type)
"""Events that show that something was done in a run."""

_WORDS = "COALESCE((SELECT w.words FROM request_words w WHERE w.run_id = runs.run_id), lower(title))"
"""The words of a run's request; of a process of an earlier version, which stores none, its title."""


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Which runs are listed. Times are UTC seconds; `before` is the id of the run to continue after."""

    before: str | None = None
    status: RunStatus | None = None
    query: str = ""
    """Words of the request, as they follow one another in it, or the run's id."""
    room: str = ""
    model: str = ""
    since: float | None = None
    until: float | None = None
    min_cost_usd: float | None = None
    """The least known cost of the models of a run, in US dollars."""

    @property
    def is_plain(self) -> bool:
        """Whether only the status and the place in the list are asked for."""
        bounds = (self.since, self.until, self.min_cost_usd)
        return not (self.query or self.room or self.model or any(one is not None for one in bounds))


@dataclass(frozen=True, slots=True)
class RunCost:
    """The cost of a run's model calls; `usd` is None where no price is known."""

    tokens: int
    usd: float | None


class RunSearch:
    """Searches runs. Methods raise `StoreError`."""

    def __init__(self, statements: SqlClient) -> None:
        self._statements = statements

    async def list_runs(self, owner: str | None, wanted: RunFilter, limit: int) -> list[RunRow]:
        """The runs that fit, newest first; of all owners if `owner` is None."""
        conditions, values = ["NOT hidden"], list[object]()
        for condition, value in (
            ("owner = ?", owner),
            ("status = ?", wanted.status),
            ("room = ?", wanted.room or None),
            ("created_at >= ?", wanted.since),
            ("created_at < ?", wanted.until),
        ):
            if value is not None:
                conditions.append(condition)
                values.append(value)
        if wanted.query.strip():
            escaped = "".join(f"!{sign}" if sign in "!%_" else sign for sign in make_search_words(wanted.query))
            conditions.append(f"({_WORDS} LIKE ? ESCAPE '!' OR run_id = ?)")
            values += [f"%{escaped}%", to_storable_text(wanted.query.strip())]
        if wanted.model:
            conditions.append("EXISTS (SELECT 1 FROM model_usage u WHERE u.run_id = runs.run_id AND u.model = ?)")
            values.append(wanted.model)
        if wanted.min_cost_usd is not None:
            conditions.append("(SELECT sum(u.cost_usd) FROM model_usage u WHERE u.run_id = runs.run_id) >= ?")
            values.append(wanted.min_cost_usd)
        if wanted.before is not None:
            own = "" if owner is None else " AND b.owner = ?"
            conditions.append(
                f"(created_at, run_id) < (SELECT b.created_at, b.run_id FROM runs b WHERE b.run_id = ?{own})"  # noqa: S608 - constants
            )
            values += [wanted.before] if owner is None else [wanted.before, owner]
        rows = await self._statements.read(
            f"SELECT {RUN_COLUMNS} FROM runs WHERE {' AND '.join(conditions)} "  # noqa: S608 - constants
            "ORDER BY created_at DESC, run_id DESC LIMIT ?",
            *values, limit,
        )  # fmt: skip
        return [parse_run_row(row) for row in rows]

    async def find_idle(self, run_ids: Sequence[str]) -> set[str]:
        """Which of these runs have called neither a tool nor a model."""
        if not run_ids:
            return set()
        rows = await self._statements.read(
            "SELECT DISTINCT run_id FROM events "  # noqa: S608 - marks
            f"WHERE run_id IN ({format_marks(run_ids)}) AND type IN ({format_marks(_WORK)})",
            *run_ids, *_WORK,
        )  # fmt: skip
        return {*run_ids} - {str(run_id) for (run_id,) in rows}

    async def sum_costs(self, run_ids: Sequence[str]) -> dict[str, RunCost]:
        """The cost of the model calls of each run; runs without any, or that have not ended, are absent."""
        if not run_ids:
            return {}
        rows = await self._statements.read(
            "SELECT run_id, sum(prompt_tokens + completion_tokens), sum(cost_usd) FROM model_usage "  # noqa: S608 - marks
            f"WHERE run_id IN ({format_marks(run_ids)}) AND model_calls > 0 GROUP BY run_id",
            *run_ids,
        )
        return {str(run_id): RunCost(int(tokens), None if usd is None else float(usd)) for run_id, tokens, usd in rows}
