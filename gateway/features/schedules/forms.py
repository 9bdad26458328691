"""The forms of a schedule: as it is sent, as it is changed, as a model creates it, and as tools show it to models.

A field of a schedule is defined in `ScheduleSpec` (`engine/model.py`), which a schedule is created from, and is then an
option of `stepgate schedules create`, too. It is added here to each form that has it. It is stored without a column of
its own.
"""

from datetime import UTC, datetime
from typing import Final

from pydantic import Field

from agent.core.errors import BadRequestError
from agent.core.models import DeferredModel, JsonObject, Webhook
from agent.tools import declare_roles
from agent.tools.stored_things import OUTSIDE_TEXT, Arguments
from gateway.doors.strict_body import StrictBody
from gateway.features.schedules.engine.cron import CronTimes
from gateway.features.schedules.engine.model import ScheduleSpec, parse_spec, to_spec
from gateway.features.schedules.engine.schedule_store import Misfire, Overlap, Schedule
from gateway.features.schedules.engine.service import is_from_outside, list_next_ticks

SHOWN_TICKS: Final = 5
"""Coming ticks that are shown of a schedule."""
TICKS_FOR_MODELS: Final = 3
"""Coming ticks that a tool shows of a schedule."""
CREATE_ROLES = declare_roles(name="id", cron="other", prompt="other", timezone="other", room="where")
"""The roles of `ScheduleCreateInput`: the argument with the role `where` is always asked about."""


class ScheduleItem(DeferredModel):
    """A schedule. Either `prompt` or `task_id` is set."""

    id: str
    name: str
    cron: str
    timezone: str
    prompt: str
    room: str | None
    metadata: JsonObject
    task_id: str | None
    overlap: Overlap
    misfire: Misfire
    webhook: Webhook | None
    enabled: bool
    stopped: str | None = Field(description="why the gateway has disabled it, such as a revoked key")
    key: str | None = Field(description="id of the API key it runs with; null for one made on this machine")
    next_ticks: list[datetime] = Field(description="when it runs next; empty while it is disabled")
    last_tick: datetime | None = Field(description="of the last run")
    last_run_id: str | None
    created_at: datetime
    updated_at: datetime


class ScheduleOutput(DeferredModel):
    """A schedule. Times are those of its time zone, with their offset."""

    name: str
    cron: str
    timezone: str
    prompt: str
    next_ticks: list[str] = Field(description="when it runs next; empty while it is disabled")
    stopped: str = Field(description="why the gateway has disabled it, if it has")
    from_outside: bool = Field(default=False, description="whether its prompt may be of a text that a model had read")


class ScheduleChanges(StrictBody):
    """The fields to change; those that are left out stay."""

    name: str | None = None
    cron: str | None = None
    timezone: str | None = None
    prompt: str | None = None
    room: str | None = None
    metadata: JsonObject | None = None
    task_id: str | None = None
    overlap: Overlap | None = None
    misfire: Misfire | None = None
    webhook: Webhook | None = Field(default=None, description="null removes it")
    enabled: bool | None = None

    def to_changes(self) -> dict[str, object]:
        """The fields that were sent. Raises `BadRequestError` for null where a field needs a value."""
        changes = {name: getattr(self, name) for name in type(self).model_fields if name in self.model_fields_set}
        return {name: _replace_null(name) if value is None else value for name, value in changes.items()}


class ScheduleCreateInput(Arguments):
    """Arguments of `schedule_create`."""

    name: str = Field(max_length=100, description="letters, digits, dots, hyphens and underscores")
    cron: str = Field(max_length=200, description="minute hour day-of-month month day-of-week: `0 7 * * mon-fri`")
    prompt: str = Field(min_length=1, max_length=20_000, description="the request that runs, complete in itself")
    timezone: str = Field(default="", max_length=100, description="IANA name; empty: the gateway's")
    room: str = Field(default="", max_length=200, description="the room it runs in; empty: the default room")

    def to_spec(self) -> ScheduleSpec:
        """The schedule that the model asks for. Models send "" for what they leave out."""
        fields = ScheduleSpec.model_fields
        values = {name: None if value == "" and fields[name].default is None else value for name, value in self}
        return parse_spec(values)


def to_schedule_item(schedule: Schedule) -> ScheduleItem:
    """A schedule as it is sent."""
    spec = to_spec(schedule)
    return ScheduleItem(
        id=schedule.id,
        **spec.model_dump(exclude={"timezone", "webhook"}),
        timezone=schedule.timezone,
        webhook=spec.webhook,
        stopped=schedule.stopped or None,
        key=schedule.key_id,
        next_ticks=[_to_utc(tick) for tick in list_next_ticks(schedule, SHOWN_TICKS)],
        last_tick=None if schedule.last_tick is None else _to_utc(schedule.last_tick),
        last_run_id=schedule.last_run_id,
        created_at=_to_utc(schedule.created),
        updated_at=_to_utc(schedule.updated),
    )


def to_schedule_output(schedule: Schedule) -> ScheduleOutput:
    """A schedule as tools show it."""
    return ScheduleOutput(
        name=schedule.name,
        cron=schedule.cron,
        timezone=schedule.timezone,
        prompt=str(schedule.work.get("prompt", f"task {schedule.work.get('task_id')}")),
        next_ticks=[
            CronTimes(schedule.cron, schedule.timezone).format(tick)
            for tick in list_next_ticks(schedule, TICKS_FOR_MODELS)
        ],
        stopped=schedule.stopped,
        from_outside=is_from_outside(schedule),
    )


def to_schedule_line(schedule: Schedule) -> ScheduleOutput:
    """A schedule in the list of a tool, without its prompt if that may be a text from outside."""
    whole = to_schedule_output(schedule)
    return whole.model_copy(update={"prompt": OUTSIDE_TEXT}) if whole.from_outside else whole


def _replace_null(name: str) -> object:
    """The value that null stands for in a change: the field's default if it is null or empty."""
    default = ScheduleSpec.model_fields[name].get_default(call_default_factory=True, validated_data={})
    if default not in (None, "", {}):
        raise BadRequestError(f"{name}: must not be null", param=name)
    return default


def _to_utc(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
