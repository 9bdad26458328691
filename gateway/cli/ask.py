"""`stepgate ask`: sends a request from the terminal; shows its steps on stderr and prints its answer on stdout."""

import asyncio
import json
import sys
from typing import TYPE_CHECKING, Annotated

import typer
from pydantic import ValidationError

from agent.core.errors import AgentError, BadRequestError, ConflictError
from agent.core.models import AgentRequest, AgentResponse
from agent.core.principal import Principal
from agent.core.value_faults import describe_fault
from gateway.cli import lazy_rich
from gateway.cli.after_answer import finish_after_answer
from gateway.cli.interrupts import Interrupts
from gateway.cli.progress import follow_run
from gateway.cli.session import get_operator_name, run_with_gateway
from gateway.cli.terminal_input import read_line
from gateway.quiet_interrupt import INTERRUPTED_EXIT_CODE

if TYPE_CHECKING:
    from agent.runs.service import Decision
    from gateway.bootstrap import Stepgate

WAITING_STATUS = "awaiting_approval"
DECISIONS: "dict[str, Decision]" = {"approved": "approve", "rejected": "reject", "answered": "answer"}
CANCEL_WAIT_SECONDS = 1.0
"""How long the command waits after a second Ctrl-C; most runs end within milliseconds of being cancelled."""


def ask(
    prompt: Annotated[list[str], typer.Argument(help="The request; `-` reads it from stdin.")],
    room: Annotated[str | None, typer.Option(help="The room that answers.")] = None,
    conversation: Annotated[str | None, typer.Option(help="Continue the conversation with this id.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole response as JSON.")] = False,
) -> None:
    """Send a request, show its steps, print its answer. Ctrl-C cancels it."""
    text = sys.stdin.read() if prompt == ["-"] else " ".join(prompt)
    try:
        request = AgentRequest(prompt=text, room=room, conversation_id=conversation)
    except ValidationError as error:
        fault = error.errors()[0]
        option = {"conversation_id": "--conversation"}.get(str(fault["loc"][0]), str(fault["loc"][0]))
        raise BadRequestError(f"{option}: {describe_fault(fault)}", param=option) from error

    principal = Principal(display_name=get_operator_name(), is_operator=True)

    async def work(stepgate: "Stepgate") -> int:
        with Interrupts() as interrupts:
            run = await stepgate.intake.accept(principal, request)
            while True:
                following = asyncio.create_task(follow_run(stepgate.service, run, quiet=as_json))
                reply = None
                if await _finishes_before(interrupts.first, following):
                    reply = await _ask_for_decision(following, run.run_id, interrupts.first, as_json=as_json)
                if interrupts.first.is_set() and await _cancel_run(stepgate, run.run_id):
                    return await _wait_for_cancel(stepgate, run.run_id, following, interrupts)
                if reply is None:
                    code = await _print_result(following, as_json=as_json)
                    row = await stepgate.service.get_run(run.run_id)
                    read = await finish_after_answer(stepgate, row.conversation_id or run.run_id, interrupts.first)
                    return code if read else code or 1
                decision, reason = reply
                run = await stepgate.service.submit_decision(run.run_id, decision, principal=principal, reason=reason)

    raise SystemExit(run_with_gateway(work, foreign="started"))


async def _ask_for_decision(
    following: "asyncio.Task[AgentResponse]", run_id: str, interrupted: asyncio.Event, *, as_json: bool
) -> "tuple[Decision, str] | None":
    """Asks the person at the terminal for their decision; None if the run does not wait or nobody answers."""
    if following.exception() is not None or following.result().metadata.get("status") != WAITING_STATUS:
        return None
    if as_json or not (sys.stdin.isatty() and sys.stderr.isatty()):
        print(f"waiting: `stepgate runs approve {run_id}`, or `runs reject`", file=sys.stderr)
        return None

    from agent.policy.approval import parse_decision  # noqa: PLC0415 - loaded with the engine

    lazy_rich.Console(stderr=True).print(lazy_rich.Markdown(following.result().response))
    reply: str | None = ""
    while reply is not None and not reply.strip():
        reply = await read_line("approve, reject, or describe a change: ", interrupted)
    if reply is None:
        return None
    decision, text = parse_decision(reply)
    return DECISIONS[decision], text


async def _print_result(following: "asyncio.Task[AgentResponse]", *, as_json: bool) -> int:
    """Prints the answer. Returns the exit code."""
    try:
        response = await following
    except AgentError as error:
        _print_failure(error, as_json=as_json)
        return 1
    _print_answer(response, as_json=as_json)
    return 0 if response.metadata.get("status") == "complete" else 2


async def _cancel_run(stepgate: "Stepgate", run_id: str) -> bool:
    """Cancels the run durably: it stays cancelled even if this process dies. Returns False if it has just ended."""
    try:
        await stepgate.service.cancel_run(run_id)
    except ConflictError:
        return False
    return True


async def _wait_for_cancel(
    stepgate: "Stepgate", run_id: str, following: "asyncio.Task[AgentResponse]", interrupts: Interrupts
) -> int:
    """Waits for the cancelled run to end, until a second Ctrl-C or a timeout."""
    await _finishes_before(interrupts.second, following, stepgate.settings.drain_seconds)
    await asyncio.wait([following], timeout=CANCEL_WAIT_SECONDS)
    ended = following.done()
    if not ended:
        stepgate.service.worker.begin_drain(0)
        following.cancel()
    await asyncio.gather(following, return_exceptions=True)
    left = "" if ended else "; its work was interrupted, and the next start ends the run"
    print(f"cancelled{left}; see `stepgate runs show {run_id}`", file=sys.stderr)
    return INTERRUPTED_EXIT_CODE


async def _finishes_before(
    event: asyncio.Event, task: "asyncio.Task[AgentResponse]", seconds: float | None = None
) -> bool:
    """Whether the task ended before the event was set and before the timeout."""
    waiting = asyncio.create_task(event.wait())
    try:
        await asyncio.wait((task, waiting), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()
    return task.done()


def _print_answer(response: AgentResponse, *, as_json: bool) -> None:
    if as_json:
        print(response.model_dump_json(indent=2))
        return
    if not sys.stdout.isatty():
        print(response.response)
        _print_sources(response)
        return

    lazy_rich.Console().print(lazy_rich.Markdown(response.response))
    _print_sources(response)


def _print_sources(response: AgentResponse) -> None:
    """Prints the cited sources on stderr; stdout holds only the answer, for other programs."""
    cited = {citation["source_id"] for citation in response.metadata["citations"]}
    for source in response.metadata["sources"]:
        if source["id"] in cited:
            place = f"{source['name']}  {source['url'] or ''}".rstrip()
            print("".join(char if char.isprintable() else " " for char in f"[{source['id']}] {place}"), file=sys.stderr)


def _print_failure(error: AgentError, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"error": error.to_failure().model_dump(mode="json")}, indent=2))
    else:
        print(f"stepgate: {error.message}", file=sys.stderr)
