"""`stepgate ask`: a request from the terminal, its steps live on stderr, its answer on stdout."""

import asyncio
import json
import sys
from typing import TYPE_CHECKING, Annotated

import typer
from pydantic import ValidationError

from agent.core.errors import AgentError, BadRequestError, ConflictError
from agent.core.models import AgentRequest, AgentResponse
from gateway.cli import screen
from gateway.cli.indexing import indexed
from gateway.cli.interrupts import Interrupts
from gateway.cli.progress import follow
from gateway.cli.session import operator, with_stepgate
from gateway.loading import INTERRUPTED

if TYPE_CHECKING:
    from agent.core.service import Decision
    from gateway.bootstrap import Stepgate

WAITING = "awaiting_approval"
DECISIONS: "dict[str, Decision]" = {"approved": "approve", "rejected": "reject", "answered": "answer"}
LAST_MOMENT_S = 1.0
"""How long an impatient person still waits: most runs end within milliseconds of being cancelled."""


def ask(
    prompt: Annotated[list[str], typer.Argument(help="What you want; `-` reads it from stdin.")],
    room: Annotated[str | None, typer.Option(help="The room to ask.")] = None,
    conversation: Annotated[str | None, typer.Option(help="Continue the conversation of this id.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole response as JSON.")] = False,
) -> None:
    """Ask for something; watch the steps; get the answer. Ctrl-C cancels it."""
    text = sys.stdin.read() if prompt == ["-"] else " ".join(prompt)
    try:
        request = AgentRequest(prompt=text, room=room, conversation_id=conversation)
    except ValidationError as error:
        fault = error.errors()[0]
        option = {"conversation_id": "--conversation"}.get(str(fault["loc"][0]), str(fault["loc"][0]))
        raise BadRequestError(f"{option}: {fault['msg']}", param=option) from error

    async def work(stepgate: "Stepgate") -> int:
        with Interrupts() as interrupts:
            run_id, heard = await _begun(stepgate, request)
            while True:
                following = asyncio.create_task(follow(stepgate.service, run_id, quiet=as_json, heard=heard))
                if not await _before(interrupts.first, following) and await _cancelled(stepgate, run_id):
                    return await _given_up(stepgate, run_id, following, interrupts)
                reply = await _replied(following, run_id, as_json=as_json)
                if reply is None:
                    code = await _answered(following, as_json=as_json)
                    row = await stepgate.service.get(run_id)
                    read = await indexed(stepgate, row.conversation_id or run_id, interrupts.first)
                    return code if read else code or 1
                heard = await stepgate.service.decide(run_id, reply[0], by=operator(), reason=reply[1])

    raise SystemExit(with_stepgate(work, foreign="started"))


async def _begun(stepgate: "Stepgate", request: AgentRequest) -> tuple[str, int]:
    """The run that answers, and the seq it had come to, as the doors begin it: a message of a builder's conversation is
    one of its messages here too."""
    from gateway.doors.beginning import begun  # noqa: PLC0415 - loaded with the engine
    from gateway.gatekeeper import Caller  # noqa: PLC0415

    return await begun(stepgate, Caller(told_as=operator()), request)


async def _replied(
    following: "asyncio.Task[AgentResponse]", run_id: str, *, as_json: bool
) -> "tuple[Decision, str] | None":
    """What the person at the terminal says to the question a run waits with; None when there is none, or nobody."""
    if following.exception() is not None or following.result().metadata.get("status") != WAITING:
        return None
    if as_json or not (sys.stdin.isatty() and sys.stderr.isatty()):
        print(f"waiting: `stepgate runs approve {run_id}`, or `runs reject`", file=sys.stderr)
        return None

    from agent.core.approval import decision_of  # noqa: PLC0415 - loaded with the engine

    screen.Console(stderr=True).print(screen.Markdown(following.result().response))
    said = ""
    while not said.strip():
        said = await asyncio.to_thread(input, "approve, reject, or what should be different: ")
    decision, text = decision_of(said)
    return DECISIONS[decision], text


async def _answered(following: "asyncio.Task[AgentResponse]", *, as_json: bool) -> int:
    """Print the answer; the exit code."""
    try:
        response = await following
    except AgentError as error:
        _print_failure(error, as_json=as_json)
        return 1
    _print_answer(response, as_json=as_json)
    return 0 if response.metadata.get("status") == "complete" else 2


async def _cancelled(stepgate: "Stepgate", run_id: str) -> bool:
    """Cancel the run, so that it stays cancelled whatever happens to this process; False when it has just ended."""
    try:
        await stepgate.service.cancel(run_id)
    except ConflictError:
        return False
    return True


async def _given_up(
    stepgate: "Stepgate", run_id: str, following: "asyncio.Task[AgentResponse]", interrupts: Interrupts
) -> int:
    """Let the cancelled run come to its end, unless a second Ctrl-C or the time says to go now."""
    await _before(interrupts.second, following, stepgate.settings.drain_seconds)
    await asyncio.wait([following], timeout=LAST_MOMENT_S)
    ended = following.done()
    if not ended:
        stepgate.service.custody.begin_drain(0)
        following.cancel()
    await asyncio.gather(following, return_exceptions=True)
    left = "" if ended else "; what was under way is left behind, and the next start closes the run"
    print(f"cancelled{left}; see `stepgate runs show {run_id}`", file=sys.stderr)
    return INTERRUPTED


async def _before(event: asyncio.Event, task: "asyncio.Task[AgentResponse]", seconds: float | None = None) -> bool:
    """Whether the task ended before the event was set and before the time was over."""
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

    screen.Console().print(screen.Markdown(response.response))
    _print_sources(response)


def _print_sources(response: AgentResponse) -> None:
    """What the answer cites, on stderr: the answer alone is what another program reads."""
    cited = {citation["source_id"] for citation in response.metadata["citations"]}
    for source in response.metadata["sources"]:
        if source["id"] in cited:
            place = f"{source['name']}  {source['url'] or ''}".rstrip()
            print("".join(char if char.isprintable() else " " for char in f"[{source['id']}] {place}"), file=sys.stderr)


def _print_failure(error: AgentError, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"error": error.failure().model_dump(mode="json")}, indent=2))
    else:
        print(f"stepgate: {error.message}", file=sys.stderr)
