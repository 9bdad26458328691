"""`stepgate ask`: a request from the terminal, its steps live on stderr, its answer on stdout."""

import asyncio
import json
import sys
from typing import Annotated

import typer
from rich.console import Console
from rich.markdown import Markdown

from agent.core.errors import AgentError
from agent.core.models import AgentRequest, AgentResponse
from gateway.bootstrap import Stepgate
from gateway.cli.progress import Progress
from gateway.cli.session import with_stepgate


def ask(
    prompt: Annotated[list[str], typer.Argument(help="What you want; `-` reads it from stdin.")],
    room: Annotated[str | None, typer.Option(help="The room to ask.")] = None,
    conversation: Annotated[str | None, typer.Option(help="Continue the conversation of this id.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole response as JSON.")] = False,
) -> None:
    """Ask for something; watch the steps; get the answer."""
    text = sys.stdin.read() if prompt == ["-"] else " ".join(prompt)
    request = AgentRequest(prompt=text, room=room, conversation_id=conversation)

    async def work(stepgate: Stepgate) -> int:
        run_id = await stepgate.service.start(request)
        try:
            response = await _follow(stepgate, run_id, quiet=as_json)
        except asyncio.CancelledError:
            await stepgate.service.cancel(run_id)
            print(f"cancelled; see `stepgate runs show {run_id}`", file=sys.stderr)
            return 130
        except AgentError as error:
            _print_failure(error, as_json=as_json)
            return 1
        _print_answer(response, as_json=as_json)
        return 0 if response.metadata.get("status") == "complete" else 2

    raise SystemExit(with_stepgate(work))


async def _follow(stepgate: Stepgate, run_id: str, *, quiet: bool) -> AgentResponse:
    """Show the events as they come; the response at the end."""
    if not quiet:
        with Progress(Console(stderr=True)) as progress:
            async for event in stepgate.service.events(run_id):
                progress.show(event)
    return await stepgate.service.response(run_id)


def _print_answer(response: AgentResponse, *, as_json: bool) -> None:
    if as_json:
        print(response.model_dump_json(indent=2))
        return
    console = Console()
    if console.is_terminal:
        console.print(Markdown(response.response))
    else:
        print(response.response)


def _print_failure(error: AgentError, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"error": error.failure().model_dump(mode="json")}, indent=2))
    else:
        print(f"stepgate: {error.message}", file=sys.stderr)
