"""The model calls behind each line of the trace: the model used last, and their usage."""

from typing import Final

from agent.core import events as ev
from agent.core.models import Usage

LineKey = tuple[str, str | None, int | None]
"""Identifies a line: its type, then a step's id and attempt, or the id of a call, approval or span and None."""

_LINE_OF_PURPOSE: Final = {"planner": "plan", "translator": "translation", "router": "route"}


class ModelCalls:
    """Filled while a log is read; queried when a line is added or completed."""

    def __init__(self) -> None:
        self._asked: dict[LineKey, tuple[str, Usage]] = {}

    def record(self, event: ev.Event, body: ev.ModelReturned) -> None:
        """Records a model call for the line it belongs to, which is open or added later."""
        key = _build_line_key(event, body)
        if key is not None:
            # The line shows the model that wrote the answer, not the one that checked its claims.
            known = self._asked.get(key)
            model = known[0] if known is not None and body.purpose == "entailment" else body.model
            self._asked[key] = (model, body.usage if known is None else known[1] + body.usage)

    def get_usage(self, key: LineKey) -> Usage | None:
        """The usage of the calls behind a line so far, or None without calls."""
        asked = self._asked.get(key)
        return None if asked is None else asked[1]

    def take_model(self, kind: str, step_id: str | None, attempt: int | None, span: str | None) -> str | None:
        """The model used last for a line, or None. Forgets the calls of lines that are added once, after their
        calls.
        """
        match kind:
            case "plan" | "translation" | "route":
                asked = self._asked.pop((kind, None, None), None)
            case "supervision":
                asked = self._asked.pop((kind, step_id, attempt), None)
            case "step" | "completion":
                asked = self._asked.get(("step", step_id, attempt))
            case "subagent":
                asked = self._asked.get((kind, span, None))
            case _:
                asked = None
        return None if asked is None else asked[0]


def _build_line_key(event: ev.Event, body: ev.ModelReturned) -> LineKey | None:
    kind = _LINE_OF_PURPOSE.get(body.purpose)
    if kind is not None:
        return (kind, None, None)
    if body.span:
        return ("subagent", body.span, None)
    if event.step_id is None:
        return None
    return ("supervision" if body.purpose == "supervisor" else "step", event.step_id, event.attempt)
