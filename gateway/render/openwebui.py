"""The rich view for Open WebUI: step cards and the live task list. Other clients do not get these frames."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from agent.core import events as ev
from agent.core.models import JsonObject, Outcome, Plan
from agent.runs.trace_details import shorten

MAX_CARD_CHARS = 2_000
CARD_PREFIX = "card_"
"""Prefix of card ids. Open WebUI returns each card with the next message, as a tool call and its result."""
EMPTY_TEXT_EVENT = {"type": "response.output_text.done", "content_index": 0, "text": ""}
"""Replaces the text sent last with nothing. Without an index it applies to the last item; `replace` works only in older
versions."""
_TASK_STATUS = {"pending": "pending", "running": "in_progress", "done": "completed", "failed": "completed"}


@dataclass
class _StepCard:
    """A step card: its place in the output, and its input as shown."""

    id: str
    index: int
    name: str
    arguments: str
    is_closed: bool = False


@dataclass
class RichView:
    """The cards and the task list of one stream, event by event. `run_id` makes the card ids of a chat unique."""

    run_id: str
    _plan: Plan | None = None
    _numbers: dict[str, int] = field(default_factory=dict)
    _cards: dict[tuple[str | None, int | None], _StepCard] = field(default_factory=dict)
    _states: dict[str, str] = field(default_factory=dict)

    def build_card_events(self, event: ev.Event) -> Iterator[dict[str, Any]]:
        """Yields the card frames for an event: pairs of `response.output_item.*`, one card for each step but
        completions.
        """
        key = (event.step_id, event.attempt)
        match event.body:
            case ev.StepStarted(args=args) if key not in self._cards:
                yield from self._open_card(event, args)
            case ev.StepFinished(output=output):
                yield from self._close_card(key, output)
            case ev.StepDiscarded(reason=reason):
                yield from self._close_card(key, ev.StepOutput(text=f"Discarded: {reason}"))
            case body if body.terminal:
                yield from self.close_cards()
            case _:
                return

    def close_cards(self) -> Iterator[dict[str, Any]]:
        """Yields the end of every open card. Open WebUI would take a call without output as one that it must
        execute.
        """
        for key in [key for key, card in self._cards.items() if not card.is_closed]:
            yield from self._close_card(key, ev.StepOutput(text="Stopped."))

    def build_task_events(self, event: ev.Event) -> Iterator[dict[str, Any]]:
        """Yields the task list above the input box, as `event` fields on empty chunks."""
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

    def _open_card(self, event: ev.Event, args: JsonObject) -> Iterator[dict[str, Any]]:
        step = next((s for s in (self._plan.steps if self._plan else ()) if s.id == event.step_id), None)
        if step is None or step.is_completion:
            return
        again = f" (attempt {event.attempt})" if event.attempt and event.attempt > 1 else ""
        name = f"{self._numbers.get(step.id, 0)}. {step.title}{again}"
        card_id = f"{CARD_PREFIX}{self.run_id}_{event.step_id}_{event.attempt}"
        card = _StepCard(card_id, 2 * len(self._cards), name, json.dumps(args, ensure_ascii=False))
        self._cards[event.step_id, event.attempt] = card
        yield _build_output_item_event("added", card.index, _build_function_call_item(card, "in_progress"))

    def _close_card(self, key: tuple[str | None, int | None], output: ev.StepOutput) -> Iterator[dict[str, Any]]:
        card = self._cards.get(key)
        if card is None or card.is_closed:
            return
        card.is_closed = True
        text = shorten(f"Error: {output.error}" if output.error_code else output.text, MAX_CARD_CHARS)
        yield _build_output_item_event("done", card.index, _build_function_call_item(card, "completed"))
        result = {
            "type": "function_call_output",
            "id": f"out_{card.id}",
            "call_id": card.id,
            "output": [{"type": "input_text", "text": text}],
            "status": "completed",
        }
        yield _build_output_item_event("added", card.index + 1, result)


def _build_output_item_event(what: str, index: int, item: dict[str, Any]) -> dict[str, Any]:
    return {"type": f"response.output_item.{what}", "output_index": index, "item": item}


def _build_function_call_item(card: _StepCard, status: str) -> dict[str, Any]:
    return {
        "type": "function_call",
        "id": f"fc_{card.id}",
        "call_id": card.id,
        "name": card.name,
        "arguments": card.arguments,
        "status": status,
    }
