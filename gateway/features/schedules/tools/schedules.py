"""`schedule_create`, `schedules_list`, `schedule_remove`: schedules by talking, in rooms that list these tools."""

import asyncio
from collections.abc import Callable

from pydantic import Field

from agent.core.errors import ToolInputError
from agent.core.models import LOCAL_OWNER, DeferredModel
from agent.core.principal import Principal
from agent.policy.guardrails.egress import list_addresses
from agent.tools import READ_ONLY, Tool, ToolContext, declare_roles
from agent.tools.stored_things import CHANGES, DESTROYS, Arguments, StoredThingList, StoredThingTool
from agent.tools.tool import In, Out
from gateway.features.schedules.engine.service import ScheduleService
from gateway.features.schedules.forms import (
    CREATE_ROLES,
    ScheduleCreateInput,
    ScheduleOutput,
    to_schedule_line,
    to_schedule_output,
)


class _ScheduleTool(StoredThingTool[In, Out]):
    """The base class: tools over the schedules of the caller. No model may name a webhook: it could send data away."""

    def __init__(self, get_schedules: Callable[[], ScheduleService]) -> None:
        super().__init__()
        self._get_schedules = get_schedules


class ScheduleCreateTool(_ScheduleTool[ScheduleCreateInput, ScheduleOutput]):
    """Creates a schedule, once a person has allowed it."""

    name = "schedule_create"
    description = "Run a request at regular times, such as every morning. The user is always asked first."
    annotations = CHANGES
    argument_roles = CREATE_ROLES
    requires_approval = True
    keywords = ("schedule", "cron", "every", "daily")

    async def check(self, args: ScheduleCreateInput, context: ToolContext) -> None:
        """Raises `BadRequestError` and `RoomUnknownError` for what cannot run, `ToolInputError` without a key."""
        await self._get_schedules().check(args.to_spec(), _to_caller(context))

    async def run(self, args: ScheduleCreateInput, context: ToolContext) -> ScheduleOutput:
        """Creates it, to run with the rights of the caller's key. What was made of a result is the user's request
        only if it is in the user's words as they wrote them.
        """
        addresses = await asyncio.to_thread(_find_own_addresses, args.prompt, context) if context.tainted else None
        made = await self._get_schedules().create(args.to_spec(), _to_caller(context), own_addresses=addresses)
        return to_schedule_output(made)

    def format_text(self, output: ScheduleOutput) -> str:
        return f"The schedule {output.name} is set. It runs next at {', '.join(output.next_ticks)} ({output.timezone})."


class SchedulesListInput(Arguments):
    """Arguments of `schedules_list`: none."""


class SchedulesListOutput(DeferredModel):
    """The schedules in order of name."""

    schedules: list[ScheduleOutput]


class SchedulesListTool(StoredThingList, _ScheduleTool[SchedulesListInput, SchedulesListOutput]):
    name = "schedules_list"
    description = "List the user's schedules with the times at which they run next."
    annotations = READ_ONLY

    async def run(self, args: SchedulesListInput, context: ToolContext) -> SchedulesListOutput:
        schedules = await self._get_schedules().store.list_all(context.owner)
        return SchedulesListOutput(schedules=[to_schedule_line(one) for one in schedules])

    def format_text(self, output: SchedulesListOutput) -> str:
        lines = [
            f"- {one.name} (`{one.cron}` {one.timezone}): "
            + (f"next at {one.next_ticks[0]}" if one.next_ticks else one.stopped or "disabled")
            for one in output.schedules
        ]
        return "\n".join(lines) or "There are no schedules yet."


class ScheduleNameInput(Arguments):
    """Arguments of `schedule_remove`."""

    name: str = Field(min_length=1, max_length=200, description="the schedule's name")


class ScheduleRemoveOutput(DeferredModel):
    """The name of the removed schedule."""

    removed: str


class ScheduleRemoveTool(_ScheduleTool[ScheduleNameInput, ScheduleRemoveOutput]):
    name = "schedule_remove"
    description = "Remove a schedule of the user. Its runs stay."
    annotations = DESTROYS
    argument_roles = declare_roles(name="id")

    async def check(self, args: ScheduleNameInput, context: ToolContext) -> None:
        """Raises `NotFoundError` if there is no such schedule."""
        await self._get_schedules().store.get(context.owner, args.name)

    async def run(self, args: ScheduleNameInput, context: ToolContext) -> ScheduleRemoveOutput:
        store = self._get_schedules().store
        await store.remove(await store.get(context.owner, args.name))
        return ScheduleRemoveOutput(removed=args.name)

    def format_text(self, output: ScheduleRemoveOutput) -> str:
        return f"Removed the schedule {output.removed}."


def make_schedule_tools(get_schedules: Callable[[], ScheduleService]) -> tuple[Tool, ...]:
    """The tools over schedules. `get_schedules` is called when one of them is."""
    return (ScheduleCreateTool(get_schedules), SchedulesListTool(get_schedules), ScheduleRemoveTool(get_schedules))


def _find_own_addresses(prompt: str, context: ToolContext) -> list[str] | None:
    """The addresses in a prompt that the user wrote; None if all of the prompt is in their words, in their order."""
    words = context.get_own_words()
    return None if words.hold_quotation(prompt) else [one for one in list_addresses(prompt) if words.hold(one)]


def _to_caller(context: ToolContext) -> Principal:
    if context.api_key_id is None and context.owner != LOCAL_OWNER:
        raise ToolInputError("a token of another issuer expires: schedules need an API key")
    return context.to_principal()
