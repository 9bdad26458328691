"""`ScheduleService`: creates, changes and removes schedules, and starts one by hand."""

import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from agent.core.errors import BadRequestError
from agent.core.models import AgentRequest, JsonObject, Webhook
from agent.core.principal import Principal
from agent.runs.intake_requests import ChatRequest
from agent.runs.run_intake import RunIntake
from agent.runs.service import AcceptedRun, AgentService
from gateway.features.protocols.engine import TaskRunRequest, TaskService
from gateway.features.schedules.engine.cron import CronTimes
from gateway.features.schedules.engine.model import ScheduleSpec, build_request, parse_spec, to_spec
from gateway.features.schedules.engine.schedule_store import Schedule, ScheduleStore, Tick

CheckWebhook = Callable[[Webhook, str], Awaitable[None]]
_TIMING = ("cron", "timezone", "enabled")
_FROM_OUTSIDE = "from_outside"
"""In the work of a schedule: its prompt may be the words of a text that a model had read."""
_OWN_ADDRESSES = "own_addresses"
"""In the work of such a schedule: the addresses in its prompt that the user wrote."""


class ScheduleService:
    """The schedules of this gateway. `timezone` is the default, `most` the number of schedules of one owner.

    `notify` is called when a schedule may have become due sooner. `clock` gives UTC seconds.
    """

    def __init__(
        self,
        store: ScheduleStore,
        service: AgentService[Any],
        tasks: TaskService,
        intake: RunIntake,
        *,
        check_webhook: CheckWebhook,
        notify: Callable[[], None],
        timezone: str,
        most: int,
        clock: Callable[[], float],
    ) -> None:
        self.store = store
        self._service = service
        self._tasks = tasks
        self._intake = intake
        self._check_webhook = check_webhook
        self._notify = notify
        self._timezone = timezone
        self._most = most
        self._clock = clock

    async def check(self, spec: ScheduleSpec, caller: Principal) -> None:
        """Raises what `create` would raise, except for a taken name and too many schedules. Stores nothing."""
        await self._build(spec, caller)

    async def create(
        self, spec: ScheduleSpec, caller: Principal, *, own_addresses: Sequence[str] | None = None
    ) -> Schedule:
        """Stores a schedule that runs on behalf of the caller, with the limits of the caller's key.

        `own_addresses`: its prompt is not the caller's own words, except for these addresses; so its runs ask before
        they change something or fetch another address. None: it is.

        Raises `BadRequestError`, `RoomUnknownError`, `TooLargeError`, `NotFoundError` for a task that does not exist,
        and `ConflictError` for a taken name or too many schedules.
        """
        now = self._clock()
        made = await self._build(spec, caller, own_addresses=own_addresses)
        await self.store.add(
            replace(made, id=f"sched_{secrets.token_hex(16)}", created=now, updated=now), most=self._most
        )
        self._notify()
        return await self.store.get(caller.owner, spec.name)

    async def change(self, name: str, changes: Mapping[str, object], caller: Principal) -> Schedule:
        """Changes some fields. From now on the schedule runs with the rights and limits of the caller's key.

        Otherwise a key could borrow the rights of the one that made the schedule. Raises what `create` raises.
        """
        before = await self.store.get(caller.owner, name)
        values = to_spec(before).model_dump()
        if "task_id" in changes and changes["task_id"] is not None:
            values |= {"prompt": "", "room": None, "metadata": {}}
        elif "prompt" in changes:
            values["task_id"] = None
        spec = parse_spec({**values, **changes})
        is_same_prompt = spec.prompt == values["prompt"]
        after = await self._build(spec, caller, own_addresses=_get_own_addresses(before) if is_same_prompt else None)
        if all(getattr(spec, field) == values[field] for field in _TIMING):  # a tick that is due stays due
            after = replace(after, next_tick=before.next_tick, stopped=before.stopped)
        await self.store.replace(before, replace(after, id=before.id))
        self._notify()
        return await self.store.get(caller.owner, before.id)

    async def run_now(self, name: str, caller: Principal, *, run_id: str | None = None) -> AcceptedRun:
        """Starts a run on behalf of the caller, also of a disabled schedule, and whatever `overlap` is.

        Raises `NotFoundError`, and what `RunIntake.accept` raises.
        """
        schedule = await self.store.get(caller.owner, name)
        now = self._clock()
        request = build_run_request(schedule, now)
        accepted = await self._intake.accept(caller, request, run_id=run_id, webhook=schedule.webhook)
        await self.store.record(schedule, Tick(now, "manual", "started", accepted.run_id), next_tick=None)
        return accepted

    async def _build(
        self, spec: ScheduleSpec, caller: Principal, *, own_addresses: Sequence[str] | None = None
    ) -> Schedule:
        """The schedule of a spec, checked, without an id."""
        times = CronTimes(spec.cron.strip(), spec.timezone or self._timezone)
        work = spec.to_work()
        if spec.task_id is not None:
            await self._tasks.get_task(spec.task_id, owner=caller.owner)
        else:
            request = self._service.redact_request(caller.restrict_request(build_request(work)))
            self._service.admit(request, caller.owner)
            work |= {"prompt": request.prompt, "metadata": self._service.redact_json(spec.metadata)}
            work |= {} if own_addresses is None else {_FROM_OUTSIDE: True, _OWN_ADDRESSES: [*own_addresses]}
        if spec.webhook is not None:
            await self._check_webhook(spec.webhook, caller.owner)
        return Schedule(
            id="",
            owner=caller.owner,
            name=spec.name,
            work=work,
            cron=times.cron,
            timezone=times.timezone,
            overlap=spec.overlap,
            misfire=spec.misfire,
            webhook=spec.webhook,
            key_id=caller.key_id,
            is_enabled=spec.enabled,
            next_tick=times.find_next(self._clock()) if spec.enabled else None,
        )


def list_next_ticks(schedule: Schedule, count: int) -> list[float]:
    """The next ticks of a schedule; none while it is disabled or its time zone is unknown here."""
    if schedule.next_tick is None:
        return []
    try:
        times = CronTimes(schedule.cron, schedule.timezone)
    except BadRequestError:
        return []
    return [schedule.next_tick, *times.list_next(schedule.next_tick, count - 1)]


def build_run_request(schedule: Schedule, tick: float) -> AgentRequest | ChatRequest | TaskRunRequest:
    """The request of a schedule's run at a tick. Its metadata names the schedule. A prompt that is not the owner's own
    words is untrusted.
    """
    at = datetime.fromtimestamp(tick, UTC).isoformat()
    origin: JsonObject = {"schedule": {"id": schedule.id, "name": schedule.name, "tick": at}}
    task_id = schedule.work.get("task_id")
    if isinstance(task_id, str):
        return TaskRunRequest(task_id, origin)
    request = build_request(schedule.work, origin)
    addresses = _get_own_addresses(schedule)
    return request if addresses is None else ChatRequest(request, tainted=True, prompt_addresses=addresses)


def is_from_outside(schedule: Schedule) -> bool:
    """Whether the prompt of a schedule is not its owner's own words."""
    return schedule.work.get(_FROM_OUTSIDE) is True


def _get_own_addresses(schedule: Schedule) -> tuple[str, ...] | None:
    """The user's addresses in a prompt from outside; None if the prompt is the owner's own words."""
    if not is_from_outside(schedule):
        return None
    addresses = schedule.work.get(_OWN_ADDRESSES)
    return tuple(map(str, addresses)) if isinstance(addresses, list) else ()
