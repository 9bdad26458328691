"""Logs built by hand: a run's events in a few words, for tests of what is made from events."""

from collections.abc import Sequence
from typing import Any

from agent.core import events as ev
from agent.core.models import (
    AgentRequest,
    Effect,
    Outcome,
    Plan,
    PlanStep,
    Room,
    Source,
    StepOutcome,
    Usage,
)

RUN_ID = "run_" + "0" * 32
Placed = tuple[ev.EventBody, str | None, int | None]


def log(*bodies: ev.EventBody | Placed) -> list[ev.Event]:
    """Events with consecutive seqs, one second apart."""
    placed = (body if isinstance(body, tuple) else (body, None, None) for body in bodies)
    return [
        ev.Event(RUN_ID, seq, 1, 1000.0 + seq, body, step_id, attempt)
        for seq, (body, step_id, attempt) in enumerate(placed, start=1)
    ]


def created(prompt: str = "the question", room: Room | None = None, **request: Any) -> ev.RunCreated:
    """A request was accepted."""
    return ev.RunCreated(request=AgentRequest(prompt=prompt, **request), room=room or Room(id="r"), owner="local")


def tool_step(step_id: str, tool: str = "search", *depends_on: str, effect: Effect = "read") -> PlanStep:
    """A step that calls one tool."""
    return PlanStep(
        id=step_id, executor="agent", action="tool", tool=tool, depends_on=depends_on, intent=f"use {tool}",
        effect=effect,
    )  # fmt: skip


def completion_step(step_id: str, *depends_on: str) -> PlanStep:
    """The step that writes the answer."""
    return PlanStep(
        id=step_id, executor="litellm", action="completion", tool="completion", depends_on=depends_on, tier="fast"
    )


def planned(*steps: PlanStep, version: int = 0, **proposal: Any) -> ev.PlanProposed:
    """A plan of these steps is in force."""
    fields = {"requested": "llm", "effective": "llm", **proposal}
    return ev.PlanProposed(plan=Plan(goal="the goal", steps=steps, version=version), **fields)


def started(step_id: str, attempt: int = 1, **fields: Any) -> Placed:
    """An attempt begins."""
    return ev.StepStarted(**fields), step_id, attempt


def called(step_id: str, tool: str = "search", number: int = 1, *, attempt: int = 1, effect: Effect = "read") -> Placed:
    """The intent of a call."""
    call_id = f"{step_id}.{attempt}.{number}"
    body = ev.ToolCalled(call_id=call_id, tool=tool, args={"q": "x"}, effect=effect, key=f"k:{call_id}")
    return body, step_id, attempt


def returned(step_id: str, tool: str = "search", number: int = 1, *, attempt: int = 1, **fields: Any) -> Placed:
    """The return of that call."""
    body = ev.ToolReturned(call_id=f"{step_id}.{attempt}.{number}", tool=tool, **{"text": "found", **fields})
    return body, step_id, attempt


def finished(step_id: str, text: str = "found", attempt: int = 1, *, duration: float = 0.5, **output: Any) -> Placed:
    """An attempt ended with this output."""
    return ev.StepFinished(output=ev.StepOutput(text=text, value=text, **output), duration=duration), step_id, attempt


def judged(step_id: str, outcome: Outcome = Outcome.SUCCESS, attempt: int = 1, **fields: Any) -> Placed:
    """The verdict on an attempt."""
    return ev.StepJudged(verdict=StepOutcome(outcome=outcome, reason="because"), **fields), step_id, attempt


def make_model_call(
    purpose: ev.Purpose, tokens: int = 10, step_id: str | None = None, attempt: int | None = None
) -> Placed:
    """A model call of so many prompt tokens and half as many completion tokens ended."""
    usage = Usage(model_calls=1, prompt_tokens=tokens, completion_tokens=tokens // 2)
    return ev.ModelReturned(purpose=purpose, tier="fast", model="small", usage=usage, duration=0.1), step_id, attempt


def done_step(step_id: str, text: str = "found", **output: Any) -> Sequence[Placed]:
    """A tool step from its start to its good verdict."""
    return (
        started(step_id), called(step_id), returned(step_id, text=text), finished(step_id, text, **output),
        judged(step_id),
    )  # fmt: skip


def answered(*deltas: str, step_id: str = "s9", **started_fields: Any) -> Sequence[Placed]:
    """An answer is streamed in these pieces."""
    fields = {"tier": "fast", "model": "small", "reason": "the plan asks for the fast tier", **started_fields}
    return (
        (ev.AnswerStarted(**fields), step_id, 1),
        *((ev.AnswerDelta(text=text), step_id, 1) for text in deltas),
    )


def source(number: int = 1, name: str = "handbook.pdf", *quotes: str, url: str | None = None) -> Source:
    """A source with quoted words."""
    return Source(id=number, name=name, url=url, quotes=quotes)
