"""One task's conversation with the gateway, and what is known of it afterwards: the `Outcome` that is graded."""

from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Any, Literal

import httpx
from pydantic import BaseModel, JsonValue

from gateway.features.evaluation.task_files import EvalTask
from gateway.features.evaluation.world import Snapshot, World, compare_snapshots

SEED = 0
"""The seed of every model call of an evaluation."""
TURN_SECONDS = 900
"""Time limit of one turn; a room's own time limit ends a run before it."""
MAX_REPLIES = 6
"""Approval questions that the simulated user answers in one turn."""
READ_SECONDS = 30.0
WAITING = "awaiting_approval"


class ChatTurn(BaseModel):
    """A message of the conversation."""

    role: Literal["user", "assistant"]
    content: str


class ToolUse(BaseModel):
    """A tool call of the gateway, and whether it succeeded."""

    tool: str
    ok: bool


class Outcome(BaseModel):
    """What a task led to. Counts and seconds cover all turns; `answer`, `status` and `trace` are the last run's."""

    answer: str = ""
    status: str = ""
    changes: dict[str, JsonValue] = {}
    tool_uses: list[ToolUse] = []
    approvals: int = 0
    model_calls: int = 0
    least_model_calls: int = 0
    """The fewest model calls with which the gateway can carry out plans like those that it made."""
    tokens: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    """Tokens of the prompts that the endpoint had in its cache, where it reports them."""
    seconds: float = 0.0
    trace: dict[str, Any] = {}
    error: str = ""


Send = Callable[[list[ChatTurn]], Awaitable[str]]
"""Sends a conversation to `/v1/chat/completions` and returns the answer. Raises `SendError`."""


class SendError(Exception):
    """The gateway answered with an error instead of a completion. The run's trace says more."""


async def hold_conversation(task: EvalTask, world: World, send: Send) -> Outcome:
    """Sends the task's turns in order, answers approval questions as the task says, and returns the outcome.

    A failed run is an outcome too: its answer is the error's message.
    """
    before = world.take_snapshot()
    started = monotonic()
    messages: list[ChatTurn] = []
    outcome = Outcome()
    async with httpx.AsyncClient(base_url=world.url, timeout=READ_SECONDS) as client:
        for turn in task.turns:
            messages.append(ChatTurn(role="user", content=world.fill_in(turn)))
            for reply in range(MAX_REPLIES + 1):
                try:
                    outcome.answer, outcome.error = await send(messages), ""
                except SendError as error:
                    outcome.answer, outcome.error = "", str(error)
                messages.append(ChatTurn(role="assistant", content=outcome.answer))
                detail = await _read_latest_run(client)
                outcome.status = str(detail.get("status", "failed"))
                outcome.trace = detail.get("response", {})
                if outcome.status != WAITING or reply == MAX_REPLIES:
                    break
                outcome.approvals += 1
                messages.append(ChatTurn(role="user", content=task.reply))
            outcome.answer = outcome.answer or str(outcome.trace.get("response", ""))
        for run in await _list_runs(client):
            add_run(outcome, run)
    outcome.seconds = round(monotonic() - started, 3)
    outcome.changes = compare_snapshots(before, world.take_snapshot())
    return outcome


def add_run(outcome: Outcome, response: dict[str, Any]) -> None:
    """Adds the calls and tokens of one run's response to the outcome."""
    metadata = response.get("metadata", {})
    usage = metadata.get("usage", {})
    outcome.model_calls += usage.get("model_calls", 0)
    outcome.least_model_calls += count_least_calls(metadata)
    outcome.tokens += usage.get("total_tokens", 0)
    outcome.prompt_tokens += usage.get("prompt_tokens", 0)
    outcome.cached_tokens += usage.get("cached_tokens", 0)
    outcome.tool_uses += [
        ToolUse(tool=str(result.get("tool", "")), ok=bool(result.get("ok", not result.get("error"))))
        for result in metadata.get("tool_results", [])
    ]


def count_least_calls(metadata: dict[str, Any]) -> int:
    """The fewest model calls of a run with this plan: one that plans or answers, one that writes the answer
    from results, and for a skill one, or two if it calls tools. Judges, repetitions and new plans come on top."""
    plan = metadata.get("plan") or {}
    steps = plan.get("steps", [])
    if not metadata.get("usage", {}).get("model_calls"):
        return 0
    work = [step for step in steps if step.get("action") != "completion"]
    called = {result.get("step_id") for result in metadata.get("tool_results", [])}
    skills = sum(1 + (step.get("id") in called) for step in work if step.get("action") == "skill")
    planned = plan.get("origin") == "llm"
    return max(1, planned + skills + (len(work) < len(steps) and bool(work or not planned)))


async def _list_runs(client: httpx.AsyncClient) -> list[dict[str, Any]]:
    """The responses of all runs of this gateway, oldest first. A world's gateway serves one task only."""
    rows = (await client.get("/v1/runs", params={"limit": 200})).raise_for_status().json()["data"]
    return [(await client.get(f"/v1/runs/{row['id']}")).raise_for_status().json()["response"] for row in reversed(rows)]


async def _read_latest_run(client: httpx.AsyncClient) -> dict[str, Any]:
    """The newest run, empty if the request was refused before a run existed."""
    rows: list[Snapshot] = (await client.get("/v1/runs", params={"limit": 1})).raise_for_status().json()["data"]
    if not rows:
        return {}
    detail: dict[str, Any] = (await client.get(f"/v1/runs/{rows[0]['id']}")).raise_for_status().json()
    return detail
