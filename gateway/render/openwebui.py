"""The rich view, for callers that are Open WebUI: step cards and the live plan. No other client is sent these."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from agent.core import events as ev
from agent.core.models import JsonObject, Outcome, Plan
from agent.core.trace import shorten

CARD_CHARS = 2_000
CARD_PREFIX = "card_"
"""How the ids of cards begin. Open WebUI sends each back with the next message, as a call of a tool and its result."""
NO_TEXT = {"type": "response.output_text.done", "content_index": 0, "text": ""}
"""The text that was sent last is void. Without an index it is the last thing shown; `replace` only reaches the pages
of older versions."""
_TASK_STATUS = {"pending": "pending", "running": "in_progress", "done": "completed", "failed": "completed"}


@dataclass
class _Card:
    """A step card: its place in the output, and what was shown as its input."""

    id: str
    index: int
    name: str
    arguments: str
    closed: bool = False


@dataclass
class RichView:
    """Cards and checklist of one stream, event by event. `run_id` keeps the ids of a chat's cards apart."""

    run_id: str
    _plan: Plan | None = None
    _numbers: dict[str, int] = field(default_factory=dict)
    _cards: dict[tuple[str | None, int | None], _Card] = field(default_factory=dict)
    _states: dict[str, str] = field(default_factory=dict)

    def extras(self, event: ev.Event) -> Iterator[dict[str, Any]]:
        """Lines of their own: `response.output_item.*` pairs, one card a step that is no completion."""
        key = (event.step_id, event.attempt)
        match event.body:
            case ev.StepStarted(args=args) if key not in self._cards:
                yield from self._open(event, args)
            case ev.StepFinished(output=output):
                yield from self._close(key, output)
            case ev.StepDiscarded(reason=reason):
                yield from self._close(key, ev.StepOutput(text=f"Discarded: {reason}"))
            case body if body.terminal:
                yield from self.closed()
            case _:
                return

    def closed(self) -> Iterator[dict[str, Any]]:
        """The end of every card that is still open: a call without its output would be taken as one for the client to
        execute."""
        for key in [key for key, card in self._cards.items() if not card.closed]:
            yield from self._close(key, ev.StepOutput(text="Stopped."))

    def riders(self, event: ev.Event) -> Iterator[dict[str, Any]]:
        """`event` fields on empty chunks: the checklist above the input box."""
        match event.body:
            case ev.PlanProposed(plan=plan):
                self._plan = plan
                for number, step in enumerate(plan.steps, start=1):
                    self._numbers[step.id] = number
                    self._states.setdefault(step.id, "pending")
            case ev.StepStarted() if event.step_id:
                self._states[event.step_id] = "running"
            case ev.StepJudged(verdict=verdict) if event.step_id:
                done = verdict.outcome is Outcome.SUCCESS
                self._states[event.step_id] = "done" if done else "pending"
            case ev.StepDiscarded() if event.step_id:
                self._states[event.step_id] = "pending"
            case body if body.terminal:
                self._states = dict.fromkeys(self._states, "done")
            case _:
                return
        if self._plan is not None and len(self._plan.steps) > 1:
            tasks = [
                {
                    "id": step.id,
                    "content": step.intent or step.title,
                    "status": _TASK_STATUS[self._states[step.id]],
                }
                for step in self._plan.steps
            ]
            yield {"type": "chat:tasks", "data": {"tasks": tasks}}

    def _open(self, event: ev.Event, args: JsonObject) -> Iterator[dict[str, Any]]:
        step = next((s for s in (self._plan.steps if self._plan else ()) if s.id == event.step_id), None)
        if step is None or step.is_completion:
            return
        again = f" (attempt {event.attempt})" if event.attempt and event.attempt > 1 else ""
        name = f"{self._numbers.get(step.id, 0)}. {step.title}{again}"
        card_id = f"{CARD_PREFIX}{self.run_id}_{event.step_id}_{event.attempt}"
        card = _Card(card_id, 2 * len(self._cards), name, json.dumps(args, ensure_ascii=False))
        self._cards[event.step_id, event.attempt] = card
        yield _item("added", card.index, _call(card, "in_progress"))

    def _close(self, key: tuple[str | None, int | None], output: ev.StepOutput) -> Iterator[dict[str, Any]]:
        card = self._cards.get(key)
        if card is None or card.closed:
            return
        card.closed = True
        text = shorten(f"Error: {output.error}" if output.error_code else output.text, CARD_CHARS)
        yield _item("done", card.index, _call(card, "completed"))
        result = {
            "type": "function_call_output",
            "id": f"out_{card.id}",
            "call_id": card.id,
            "output": [{"type": "input_text", "text": text}],
            "status": "completed",
        }
        yield _item("added", card.index + 1, result)


def _item(what: str, index: int, item: dict[str, Any]) -> dict[str, Any]:
    return {"type": f"response.output_item.{what}", "output_index": index, "item": item}


def _call(card: _Card, status: str) -> dict[str, Any]:
    return {
        "type": "function_call",
        "id": f"fc_{card.id}",
        "call_id": card.id,
        "name": card.name,
        "arguments": card.arguments,
        "status": status,
    }
