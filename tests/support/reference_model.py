"""A scripted model that knows the evaluation's tasks: `python -m tests.support.reference_model` prints its port.

It plans with the calls of a task's reference solution and gives the reference answer only if the figures and names of
that answer stand in the results it is shown. It says nothing about a real model: it measures what the gateway makes of
damaged replies.
"""

import asyncio
import json
import re
import sys
from functools import cache
from typing import Any, NamedTuple, Self

from aiohttp import web

from agent.text.numbers import find_numbers
from gateway.features.evaluation.task_files import SITE_PLACEHOLDER, EvalTask, load_tasks
from gateway.features.evaluation.task_sets import SETS
from tests.support.processes import Process, start

SITE = r"http://127\.0\.0\.1:\d+"
ADDRESS = r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+"
NOTED = "Noted."
NOTHING_FOUND = "I could not find that out."
TOKENS_PER_CHARACTER = 0.25


class Request(NamedTuple):
    """The task that a request belongs to, its turn, and the address of the web site in it."""

    task: EvalTask
    is_last_turn: bool
    site: str


class ReferenceModel:
    """The server as a context manager: `.url` is its base URL."""

    def __init__(self) -> None:
        self._process: Process | None = None
        self.url = ""

    def __enter__(self) -> Self:
        self._process = start([sys.executable, "-m", "tests.support.reference_model"])
        self.url = f"http://127.0.0.1:{self._process.line_with('listening on ').rsplit(' ', 1)[1]}/v1"
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.kill()


@cache
def turn_pattern(turn: str) -> re.Pattern[str]:
    """Matches a turn's text, whatever the port of its web site is, and with a placeholder in place of each address."""
    return re.compile(f"({SITE})".join(_escape(part) for part in turn.split(SITE_PLACEHOLDER)))


def _escape(text: str) -> str:
    pieces = re.split(f"({ADDRESS})", text)
    return "".join(
        rf"(?:{re.escape(piece)}|<EMAIL_\d+>)" if number % 2 else re.escape(piece)
        for number, piece in enumerate(pieces)
    )


def find_request(text: str) -> Request | None:
    """The task whose turn the text holds; the longest turn if several do, a last turn before an earlier one."""
    candidates = []
    for task in (task for name in SETS for task in load_tasks(name)):
        for number, turn in enumerate(task.turns, start=1):
            match = turn_pattern(turn).search(text)
            if match is not None:
                is_last = number == len(task.turns)
                site = match[1] if match.groups() else next(iter(re.findall(SITE, text)), "")
                candidates.append((is_last, len(turn), Request(task, is_last, site)))
    return max(candidates, key=lambda one: one[:2])[2] if candidates else None


def write_reply(purpose: str, text: str) -> str:
    """The reply to a request of this purpose whose messages hold this text."""
    request = find_request(text)
    if purpose == "supervisor":
        return json.dumps({"reason": "it serves the intent", "evidence": "", "outcome": "SUCCESS", "suggested_fix": ""})
    if purpose == "planner":
        return write_plan(request)
    if request is None or not request.is_last_turn or not holds_evidence(request.task, text):
        return NOTHING_FOUND
    return request.task.solution.answer


def write_plan(request: Request | None) -> str:
    """The calls of the reference solution as a plan with a completion at its end; an answer without calls."""
    steps: list[dict[str, Any]] = []
    known = request.task.solution.steps if request is not None and request.is_last_turn else ()
    for number, step in enumerate(known, start=1):
        inputs = [
            {"name": name, "value": fill_in(value, request.site if request else "")}
            for name, value in step.inputs.items()
        ]
        steps.append(build_step(f"s{number}", step.tool, inputs, list(step.depends_on)))
    if not steps:
        answer = request.task.solution.answer if request is not None and request.is_last_turn else ""
        return f"ANSWER\n{answer or NOTED}"
    steps.append(build_step("answer", "completion", [], [str(step["id"]) for step in steps]))
    return json.dumps(
        {"reasoning": "as scripted", "goal": "the task", "language": "en", "answer_tier": "fast", "steps": steps},
        ensure_ascii=False,
    )


def build_step(step_id: str, tool: str, inputs: list[dict[str, Any]], depends_on: list[str]) -> dict[str, Any]:
    """A step in the form of the planner's replies."""
    return {"id": step_id, "tool": tool, "inputs": inputs, "depends_on": depends_on, "intent": f"use {tool}"}


def fill_in(value: Any, site: str) -> Any:
    """An argument with the address of the web site."""
    return value.replace(SITE_PLACEHOLDER, site) if isinstance(value, str) else value


def holds_evidence(task: EvalTask, text: str) -> bool:
    """Whether what the answer must name stands in the text, besides in the prompt itself."""
    rest = turn_pattern(task.turns[-1]).sub(" ", text)
    if not task.solution.steps:
        return True
    values = {float(reading.value) for mention in find_numbers(rest) for reading in mention.readings}
    values |= {float(part) for mention in find_numbers(rest) for part in mention.parts}
    prompt = task.turns[-1].casefold()
    names = [name for name in task.checks.answer.names if name.casefold() not in prompt]
    return set(task.checks.answer.numbers) <= values and all(name.casefold() in rest.casefold() for name in names)


async def _complete(request: web.Request) -> web.StreamResponse:
    body = await request.json()
    # The texts as a reader sees them: quotes and line breaks are not escaped.
    text = "\n".join(str(message.get("content")) for message in body["messages"])
    reply = write_reply(request.headers.get("x-stepgate-purpose", ""), text)
    prompt_tokens, reply_tokens = (int(len(one) * TOKENS_PER_CHARACTER) for one in (text, reply))
    usage = {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": reply_tokens,
        "total_tokens": prompt_tokens + reply_tokens,
    }
    base = {"id": "cmpl-1", "created": 1, "model": body["model"]}
    message = {"role": "assistant", "content": reply}
    if not body.get("stream"):
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return web.json_response({**base, "object": "chat.completion", "choices": [choice], "usage": usage})
    response = web.StreamResponse(headers={"content-type": "text/event-stream"})
    await response.prepare(request)
    chunk = {**base, "object": "chat.completion.chunk"}
    for choices, extra in (
        ([{"index": 0, "delta": message, "finish_reason": None}], {}),
        ([{"index": 0, "delta": {}, "finish_reason": "stop"}], {}),
        ([], {"usage": usage}),
    ):
        await response.write(f"data: {json.dumps({**chunk, 'choices': choices, **extra})}\n\n".encode())
    await response.write(b"data: [DONE]\n\n")
    return response


async def _list_models(_: web.Request) -> web.Response:
    return web.json_response({"object": "list", "data": [{"id": "reference", "object": "model"}]})


async def serve() -> None:
    """Serves until ended."""
    app = web.Application(client_max_size=50_000_000)
    app.router.add_post("/v1/chat/completions", _complete)
    app.router.add_get("/v1/models", _list_models)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(f"listening on {runner.addresses[0][1]}", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve())
