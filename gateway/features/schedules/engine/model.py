"""`ScheduleSpec`: what a person asks of a schedule, as doors and commands take it."""

import re
from collections.abc import Mapping
from typing import Annotated, Final

from pydantic import AfterValidator, ConfigDict, Field, ValidationError, model_validator

from agent.core.errors import BadRequestError
from agent.core.models import AgentRequest, FrozenModel, JsonObject, Webhook
from agent.core.value_faults import describe_first_fault
from gateway.features.schedules.engine.schedule_store import Misfire, Overlap, Schedule

NAME_PATTERN: Final = r"^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9])?$"


def _check_name(name: str) -> str:
    if not re.fullmatch(NAME_PATTERN, name):
        raise ValueError(
            "use 1 to 100 letters, digits, dots, hyphens and underscores, with a letter or digit at both ends"
        )
    return name


COLUMN_FIELDS: Final = frozenset(("name", "cron", "timezone", "overlap", "misfire", "webhook", "enabled"))
"""Fields of a schedule that have a column: those that ticks are selected by, and older ones."""
REQUEST_FIELDS: Final = frozenset(("prompt", "room", "metadata"))
"""Fields that a schedule of a task does not have: the task has its own."""

ScheduleName = Annotated[str, AfterValidator(_check_name), Field(json_schema_extra={"pattern": NAME_PATTERN})]


class ScheduleSpec(FrozenModel):
    """What runs, when, and what becomes of it. Either `prompt` or `task_id` is set."""

    # Built at once, as it is a body too: see `DeferredModel`.
    model_config = ConfigDict(defer_build=False, extra="ignore", json_schema_extra={"additionalProperties": False})

    name: ScheduleName = Field(description="letters, digits, dots, hyphens and underscores; unique")
    cron: str = Field(max_length=500, description="minute hour day-of-month month day-of-week, or @daily and the like")
    timezone: str | None = Field(default=None, max_length=100, description="IANA name; unset: AGENT_TIMEZONE")
    prompt: str = Field(default="", description="the request that runs")
    room: str | None = Field(default=None, max_length=200, description="the room of the runs; unset: the default room")
    metadata: JsonObject = Field(default_factory=dict, description="as in POST /v1/agent")
    task_id: str | None = Field(
        default=None, max_length=200, description="a stored task that runs, instead of a prompt"
    )
    overlap: Overlap = Field(default="skip", description="what a tick does while the last run is still running")
    misfire: Misfire = Field(
        default="run_once", description="after ticks at which no gateway ran: run the last one once, or skip it"
    )
    webhook: Webhook | None = Field(default=None, description="receives the end of each run")
    enabled: bool = True

    @model_validator(mode="after")
    def _check_work(self) -> "ScheduleSpec":
        if bool(self.prompt.strip()) == (self.task_id is not None):
            raise ValueError("set either 'prompt' or 'task_id'")
        if self.task_id is not None and (self.room is not None or self.metadata):
            raise ValueError("a task has its own room and context: leave out 'room' and 'metadata'")
        if self.task_id is not None and self.overlap == "allow":
            raise ValueError("a task has one run at a time: 'overlap' must be 'skip'")
        return self

    def to_work(self) -> JsonObject:
        """What is stored as the schedule's work: every field without a column of its own."""
        others = REQUEST_FIELDS if self.task_id is not None else {"task_id"}
        return self.model_dump(mode="json", exclude={*COLUMN_FIELDS, *others})


def parse_spec(fields: Mapping[str, object]) -> ScheduleSpec:
    """The spec of these fields. Raises `BadRequestError` that names the first wrong one."""
    try:
        return ScheduleSpec.model_validate(fields)
    except ValidationError as error:
        where = ".".join(map(str, error.errors()[0]["loc"]))
        raise BadRequestError(describe_first_fault(error, "the schedule"), param=where or None) from error


def to_spec(schedule: Schedule) -> ScheduleSpec:
    """The spec that a stored schedule was made from."""
    return ScheduleSpec.model_validate({
        "name": schedule.name,
        "cron": schedule.cron,
        "timezone": schedule.timezone,
        **schedule.work,
        "overlap": schedule.overlap,
        "misfire": schedule.misfire,
        "webhook": schedule.webhook,
        "enabled": schedule.is_enabled,
    })  # fmt: skip


def build_request(work: JsonObject, extra: JsonObject | None = None) -> AgentRequest:
    """The request of a schedule that is not a task; `extra` is added to its metadata. Nobody can be asked."""
    metadata = work.get("metadata")
    room = work.get("room")
    return AgentRequest(
        prompt=str(work["prompt"]),
        room=room if isinstance(room, str) else None,
        metadata={**(metadata if isinstance(metadata, dict) else {}), **(extra or {})},
        interactive=False,
    )
