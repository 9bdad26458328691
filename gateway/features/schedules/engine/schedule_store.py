"""`ScheduleStore`: schedules by owner, and the record of their ticks.

A tick is handled by the process that claims it: `held_until` is not 0 from then until the tick is recorded. A claim
that is over, because its process died or wants to try again, is taken over with the same tick.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from agent.core.errors import ConflictError, NotFoundError
from agent.core.models import JsonObject, Webhook
from agent.core.surrogates import replace_surrogates, to_storable_text
from agent.storage.sql import Row, SqlClient, SqlStatement

Overlap = Literal["skip", "allow"]
Misfire = Literal["run_once", "skip"]
TickOrigin = Literal["cron", "manual"]
TickOutcome = Literal["started", "skipped", "missed", "refused"]
MAX_TICKS: Final = 1_000
"""Ticks that are kept of a schedule."""
_COLUMNS: Final = (
    "id, owner, name, work, cron, timezone, overlap, misfire, webhook, key_id, enabled, stopped, next_tick, "
    "held_until, last_tick, last_run_id, created, updated"
)
_INSERT_TICK: Final = (
    "INSERT INTO schedule_ticks (schedule_id, tick, owner, origin, outcome, run_id, detail, missed, at) "
    "SELECT ?,?,?,?,?,?,?,?,? WHERE EXISTS (SELECT 1 FROM schedules WHERE id = ?) "
    "ON CONFLICT (schedule_id, tick) DO UPDATE SET outcome = excluded.outcome, run_id = excluded.run_id, "
    "detail = excluded.detail WHERE schedule_ticks.outcome <> 'started'"
)
_CUT_TICKS: Final = (
    "DELETE FROM schedule_ticks WHERE schedule_id = ? AND tick < (SELECT tick FROM schedule_ticks "
    "WHERE schedule_id = ? ORDER BY tick DESC LIMIT 1 OFFSET ?)"
)


@dataclass(frozen=True, slots=True)
class Schedule:
    """A schedule. Times are UTC seconds. `work` is a request (`prompt`, `room`, `metadata`) or names a stored task.

    `stopped` says why the gateway has disabled it; empty if a person has, or it is enabled.
    """

    id: str
    owner: str
    name: str
    work: JsonObject
    cron: str
    timezone: str
    overlap: Overlap
    misfire: Misfire
    webhook: Webhook | None
    key_id: str | None
    is_enabled: bool
    stopped: str = ""
    next_tick: float | None = None
    held_until: float = 0.0
    last_tick: float | None = None
    last_run_id: str | None = None
    created: float = 0.0
    updated: float = 0.0


@dataclass(frozen=True, slots=True)
class Tick:
    """What was done at a tick: a run, or the reason for none. `missed` counts the ticks before it that nobody handled.

    `run_status` is that of its run now; None without a run, and for a deleted one.
    """

    tick: float
    origin: TickOrigin
    outcome: TickOutcome
    run_id: str | None
    detail: str = ""
    missed: int = 0
    at: float = 0.0
    run_status: str | None = None


class ScheduleStore:
    """The schedules by owner. `clock` gives UTC seconds. Every method raises `StoreError`."""

    def __init__(self, statements: SqlClient, clock: Callable[[], float]) -> None:
        self._statements = statements
        self._clock = clock

    async def add(self, schedule: Schedule, *, most: int) -> None:
        """Stores a new schedule. Raises `ConflictError` if its name is taken or the owner has `most` already."""
        rows = await self._statements.write(
            f"INSERT INTO schedules ({_COLUMNS}) SELECT ?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,? "  # noqa: S608 - constants only
            "WHERE (SELECT count(*) FROM schedules WHERE owner = ?) < ? "
            "ON CONFLICT (owner, name) DO NOTHING RETURNING id",
            *_to_row(schedule), schedule.owner, most,
        )  # fmt: skip
        if rows:
            return
        if await self._read("owner = ? AND name = ?", schedule.owner, schedule.name):
            raise ConflictError(
                f"there is a schedule {schedule.name!r} already; choose another name or change that one"
            )
        raise ConflictError(f"{schedule.owner} has {most} schedules, the most allowed")

    async def replace(self, before: Schedule, after: Schedule) -> None:
        """Stores a changed schedule. Raises `ConflictError` if its new name is taken, or it was changed meanwhile."""
        if after.name != before.name and await self._read("owner = ? AND name = ?", after.owner, after.name):
            raise ConflictError(f"there is a schedule {after.name!r} already; choose another name")
        names = ("name", "work", "cron", "timezone", "overlap", "misfire", "webhook", "key_id", "enabled", "stopped")
        row = dict(zip(_COLUMNS.split(", "), _to_row(after), strict=True))
        # A claim of the former times ends here. Its process still records what it has started.
        rows = await self._statements.write(
            f"UPDATE schedules SET {', '.join(f'{name} = ?' for name in names)}, next_tick = ?, held_until = 0, "  # noqa: S608 - constants only
            "updated = ? WHERE id = ? AND updated = ? RETURNING id",
            *(row[name] for name in names), after.next_tick, self._clock(), before.id, before.updated,
        )  # fmt: skip
        if not rows:
            raise ConflictError(f"the schedule {before.name!r} was changed at the same time; read it again")

    async def get(self, owner: str, name: str) -> Schedule:
        """The schedule of this id or name. Raises `NotFoundError`."""
        text = to_storable_text(name)
        schedule = await self._read("owner = ? AND (id = ? OR name = ?)", owner, text, text)
        if not schedule:
            raise NotFoundError(
                f"there is no schedule {name[:100]!r}; GET /v1/schedules and `stepgate schedules list` show them"
            )
        return schedule[0]

    async def list_all(self, owner: str) -> list[Schedule]:
        """The schedules in order of name."""
        return await self._read("owner = ? ORDER BY name", owner)

    async def remove(self, schedule: Schedule) -> None:
        """Removes a schedule with the record of its ticks. Its runs stay."""
        await self._statements.write("DELETE FROM schedules WHERE id = ?", schedule.id)

    async def list_due(self, limit: int) -> list[Schedule]:
        """Schedules whose tick has come and is not held, the oldest tick first."""
        now = self._clock()
        return await self._read(
            "enabled = 1 AND next_tick <= ? AND held_until < ? ORDER BY next_tick LIMIT ?", now, now, limit
        )

    async def list_later(self, now: float) -> list[Schedule]:
        """The enabled schedules whose next tick is still to come."""
        return await self._read("enabled = 1 AND next_tick > ? ORDER BY next_tick", now)

    async def find_last_time(self, schedule: Schedule, now: float) -> float:
        """The last time up to `now` when the schedule had a tick or was changed; `now` if there was none."""
        ((tick,),) = await self._statements.read(
            "SELECT max(tick) FROM schedule_ticks WHERE schedule_id = ? AND tick <= ?", schedule.id, now
        )
        times = [time for time in (_to_float(tick), schedule.updated) if time is not None and time <= now]
        return max(times, default=now)

    async def move_back(self, schedule: Schedule, next_tick: float) -> None:
        """Lets a schedule have an earlier next tick, unless it was changed since it was read."""
        await self._statements.write(
            "UPDATE schedules SET next_tick = ?, held_until = 0 WHERE id = ? AND next_tick = ? AND updated = ?",
            next_tick, schedule.id, schedule.next_tick, schedule.updated,
        )  # fmt: skip

    async def find_next_tick(self) -> float | None:
        """The time of the next tick of any schedule."""
        ((tick,),) = await self._statements.read("SELECT min(next_tick) FROM schedules WHERE enabled = 1")
        return None if tick is None else float(tick)

    async def claim(self, schedule: Schedule, tick: float, *, until: float) -> bool:
        """Claims the due schedule for one tick, at most until `until`. Returns False if another process has it, or it
        was changed since it was read.
        """
        rows = await self._statements.write(
            "UPDATE schedules SET next_tick = ?, held_until = ? WHERE id = ? AND enabled = 1 AND next_tick = ? "
            "AND held_until = ? AND updated = ? RETURNING id",
            tick, until, schedule.id, schedule.next_tick, schedule.held_until, schedule.updated,
        )  # fmt: skip
        return bool(rows)

    async def defer(self, schedule: Schedule, tick: float, *, until: float) -> None:
        """Lets a claimed tick be tried again after `until`."""
        await self._statements.write(
            "UPDATE schedules SET held_until = ? WHERE id = ? AND next_tick = ? AND held_until <> 0",
            until, schedule.id, tick,
        )  # fmt: skip

    async def record(self, schedule: Schedule, tick: Tick, *, next_tick: float | None) -> None:
        """Records a tick and, unless the schedule was changed meanwhile, goes on to the next one. Recording it again
        changes nothing, but a run is never recorded over.
        """
        started = [SqlStatement(
            "UPDATE schedules SET last_tick = ?, last_run_id = ? WHERE id = ? AND COALESCE(last_tick, 0) <= ?",
            (tick.tick, tick.run_id, schedule.id, tick.tick),
        )] if tick.outcome == "started" else []  # fmt: skip
        moved = [SqlStatement(
            "UPDATE schedules SET next_tick = ?, held_until = 0 WHERE id = ? AND next_tick = ?",
            (next_tick, schedule.id, tick.tick),
        )] if tick.origin == "cron" else []  # fmt: skip
        values = (
            schedule.id, tick.tick, schedule.owner, tick.origin, tick.outcome, tick.run_id,
            replace_surrogates(tick.detail), tick.missed, self._clock(), schedule.id,
        )  # fmt: skip
        await self._statements.write_all(
            SqlStatement(_INSERT_TICK, values),
            *started,
            *moved,
            SqlStatement(_CUT_TICKS, (schedule.id, schedule.id, MAX_TICKS - 1)),
        )

    async def stop(self, schedule: Schedule, reason: str) -> bool:
        """Disables a schedule that can no longer run, and stores why. Returns False if it was changed meanwhile."""
        rows = await self._statements.write(
            "UPDATE schedules SET enabled = 0, stopped = ?, next_tick = NULL, held_until = 0, updated = ? "
            "WHERE id = ? AND updated = ? RETURNING id",
            replace_surrogates(reason), self._clock(), schedule.id, schedule.updated,
        )  # fmt: skip
        return bool(rows)

    async def list_ticks(self, schedule: Schedule, *, limit: int, before: float | None = None) -> list[Tick]:
        """The ticks of a schedule, newest first; only those before `before`, if given."""
        rows = await self._statements.read(
            "SELECT t.tick, t.origin, t.outcome, t.run_id, t.detail, t.missed, t.at, r.status FROM schedule_ticks t "
            "LEFT JOIN runs r ON r.run_id = t.run_id WHERE t.schedule_id = ? AND t.tick < ? "
            "ORDER BY t.tick DESC LIMIT ?",
            schedule.id, 1e12 if before is None else before, limit,
        )  # fmt: skip
        return [
            Tick(float(tick), origin, outcome, run_id, detail, int(missed), float(at), status)
            for tick, origin, outcome, run_id, detail, missed, at, status in rows
        ]

    async def count_ticks(self, schedule: Schedule) -> int:
        """Counts the recorded ticks of a schedule."""
        query = "SELECT count(*) FROM schedule_ticks WHERE schedule_id = ?"
        ((count,),) = await self._statements.read(query, schedule.id)
        return int(count)

    async def _read(self, condition: str, *values: object) -> list[Schedule]:
        rows = await self._statements.read(f"SELECT {_COLUMNS} FROM schedules WHERE {condition}", *values)  # noqa: S608 - constants only
        return [_parse_row(row) for row in rows]


def _to_row(schedule: Schedule) -> Sequence[object]:
    webhook = schedule.webhook.model_dump_json() if schedule.webhook is not None else None
    work = replace_surrogates(json.dumps(schedule.work, ensure_ascii=False))
    return (
        schedule.id, schedule.owner, schedule.name, work, schedule.cron,
        schedule.timezone, schedule.overlap, schedule.misfire, webhook, schedule.key_id, int(schedule.is_enabled),
        schedule.stopped, schedule.next_tick, schedule.held_until, schedule.last_tick, schedule.last_run_id,
        schedule.created, schedule.updated,
    )  # fmt: skip


def _parse_row(row: Row) -> Schedule:
    head, (overlap, misfire, webhook, key_id, enabled, stopped), times = row[:6], row[6:12], row[12:]
    schedule_id, owner, name, work, cron, timezone = head
    next_tick, held_until, last_tick, last_run_id, created, updated = times
    return Schedule(
        schedule_id, owner, name, json.loads(work), cron, timezone, overlap, misfire,
        Webhook.model_validate_json(webhook) if webhook is not None else None,
        key_id, bool(enabled), stopped, _to_float(next_tick), float(held_until), _to_float(last_tick), last_run_id,
        float(created), float(updated),
    )  # fmt: skip


def _to_float(value: Any) -> float | None:
    return None if value is None else float(value)
