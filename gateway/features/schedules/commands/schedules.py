"""`stepgate schedules list|show|create|enable|disable|run|remove`."""

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent.core.models import LOCAL_OWNER
from agent.core.principal import Principal
from gateway.cli.groups import HelpfulGroup
from gateway.cli.model_options import add_fields
from gateway.cli.session import gateway_command, get_operator_name, print_json, run_with_gateway
from gateway.features.schedules.engine.model import ScheduleSpec, parse_spec
from gateway.features.schedules.parts import get_schedules

if TYPE_CHECKING:
    from datetime import datetime

    from gateway.bootstrap import Stepgate
    from gateway.features.schedules.forms import ScheduleItem

app = typer.Typer(help="Schedules: list, show, create, enable, disable, run, remove.", cls=HelpfulGroup)

MAX_TICKS = 1_000
"""As many as are kept of a schedule."""

Name = Annotated[str, typer.Argument(help="The schedule's name or id.")]
Owner = Annotated[str, typer.Option(help="Whose schedules.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command("list")
@gateway_command()
async def list_schedules(stepgate: "Stepgate", owner: Owner = LOCAL_OWNER, as_json: AsJson = False) -> None:
    """List the schedules with their next ticks."""
    from gateway.features.schedules.forms import to_schedule_item  # noqa: PLC0415 - loaded with the engine

    schedule_items = [to_schedule_item(one) for one in await get_schedules(stepgate).store.list_all(owner)]
    if as_json:
        print_json(schedule_items)
        return
    for one in schedule_items:
        print(_format_schedule(one))
    if not schedule_items:
        print("No schedules yet. `stepgate schedules create NAME CRON PROMPT` makes one.")


@app.command()
@gateway_command()
async def show(
    stepgate: "Stepgate",
    name: Name,
    owner: Owner = LOCAL_OWNER,
    ticks: Annotated[int, typer.Option(min=0, max=MAX_TICKS, help="How many of the last ticks.")] = 10,
    as_json: AsJson = False,
) -> None:
    """Show a schedule and what happened at its last ticks."""
    from gateway.features.schedules.doors.schedules import TickItem  # noqa: PLC0415 - loaded with the engine
    from gateway.features.schedules.forms import to_schedule_item  # noqa: PLC0415 - as above

    store = get_schedules(stepgate).store
    schedule = await store.get(owner, name)
    item = to_schedule_item(schedule)
    past = TickItem.from_records(await store.list_ticks(schedule, limit=ticks))
    if as_json:
        output = {**item.model_dump(mode="json"), "ticks": [one.model_dump(mode="json") for one in past]}
        print_json(output)
        return
    print(_format_details(item))
    for one in past:
        what = f"{one.run_id} ({one.run_status or 'deleted'})" if one.run_id else one.detail
        missed = f"  ({one.missed} missed before it)" if one.missed else ""
        print(f"    {_format_time(item, one.tick)}  {one.outcome}  {what}{missed}")
    if older := await store.count_ticks(schedule) - len(past):
        print(f"    and {older} older: --ticks {min(len(past) + older, MAX_TICKS)}")


@app.command()
@add_fields(ScheduleSpec, arguments=("name", "cron", "prompt"), leave_out=("task_id", "metadata", "webhook", "enabled"))
def create(
    fields: dict[str, Any],
    task: Annotated[str | None, typer.Option(help="A stored task that runs, instead of a prompt.")] = None,
    webhook: Annotated[str | None, typer.Option(help="URL that receives the end of each run.")] = None,
    secret_name: Annotated[str | None, typer.Option(help="Credential that signs the webhook.")] = None,
    key: Annotated[str | None, typer.Option(help="Id of the API key whose rights and limits its runs have.")] = None,
    owner: Owner = LOCAL_OWNER,
) -> None:
    """Create a schedule. A running gateway on the same store runs it."""
    posted = {"url": webhook, "secret_name": secret_name} if webhook is not None else None

    async def work(stepgate: "Stepgate") -> None:
        from gateway.access.authentication import Caller  # noqa: PLC0415
        from gateway.features.schedules.forms import to_schedule_item  # noqa: PLC0415

        caller = Caller(await stepgate.keys.get_valid(key)).principal if key is not None else Principal(owner)
        spec = parse_spec({**fields, "task_id": task, "webhook": posted})
        print(_format_schedule(to_schedule_item(await get_schedules(stepgate).service.create(spec, caller))))

    run_with_gateway(work)


@app.command()
def enable(name: Name, owner: Owner = LOCAL_OWNER) -> None:
    """Enable a schedule, including one the gateway stopped. It then runs with the operator's rights, not a key's."""
    _set_enabled(name, owner, enabled=True)


@app.command()
def disable(name: Name, owner: Owner = LOCAL_OWNER) -> None:
    """Disable a schedule: it is kept, but does not run."""
    _set_enabled(name, owner, enabled=False)


@app.command()
@gateway_command(foreign="started")
async def run(stepgate: "Stepgate", name: Name, owner: Owner = LOCAL_OWNER) -> None:
    """Run a schedule now, in this process, and print the answer."""
    from gateway.cli.progress import follow_run  # noqa: PLC0415 - loaded with the engine

    caller = Principal(owner, display_name=get_operator_name(), is_operator=True)
    response = await follow_run(stepgate.service, await get_schedules(stepgate).service.run_now(name, caller))
    print(response.response)


@app.command()
@gateway_command()
async def remove(stepgate: "Stepgate", name: Name, owner: Owner = LOCAL_OWNER) -> None:
    """Remove a schedule with the record of its ticks. Its runs stay."""
    await get_schedules(stepgate).store.remove(await get_schedules(stepgate).store.get(owner, name))
    print(f"Removed {name}.")


def _set_enabled(name: str, owner: str, *, enabled: bool) -> None:
    async def work(stepgate: "Stepgate") -> None:
        from gateway.features.schedules.forms import to_schedule_item  # noqa: PLC0415 - loaded with the engine

        changed = await get_schedules(stepgate).service.change(name, {"enabled": enabled}, Principal(owner))
        print(_format_schedule(to_schedule_item(changed)))

    run_with_gateway(work)


def _format_schedule(item: "ScheduleItem") -> str:
    if item.next_ticks:
        state = f"next {_format_time(item, item.next_ticks[0])}"
    else:
        state = f"stopped: {item.stopped}" if item.stopped else "disabled"
    what = f"task {item.task_id}" if item.task_id else item.prompt
    return f"{item.name}  {item.cron} {item.timezone}  ({state})\n    {what}"


def _format_details(item: "ScheduleItem") -> str:
    signed = f", signed with {item.webhook.secret_name}" if item.webhook and item.webhook.secret_name else ""
    rows = {
        "id": item.id,
        "enabled": "yes" if item.enabled else "no",
        "room": item.room or ("that of the task" if item.task_id else "the default room"),
        "metadata": json.dumps(item.metadata, ensure_ascii=False) if item.metadata else "",
        "overlap": item.overlap,
        "misfire": item.misfire,
        "webhook": f"{item.webhook.url}{signed}" if item.webhook else "none",
        "key": item.key or "none: made on this machine",
        "next": ", ".join(_format_time(item, at) for at in item.next_ticks),
    }
    return "\n".join([_format_schedule(item), *(f"    {name:8}  {text}" for name, text in rows.items() if text)])


def _format_time(item: "ScheduleItem", at: "datetime") -> str:
    from agent.core.errors import BadRequestError  # noqa: PLC0415 - loaded with the engine
    from gateway.features.schedules.engine.cron import CronTimes  # noqa: PLC0415 - loaded with the engine

    try:
        return CronTimes(item.cron, item.timezone).format(at.timestamp())
    except BadRequestError:  # of a schedule that is stopped because its time zone is unknown
        return at.isoformat(sep=" ", timespec="minutes")
