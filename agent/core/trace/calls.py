"""The model calls behind a line of the trace: which model was asked last, and what they came to."""

from typing import Final

from agent.core import events as ev
from agent.core.models import Usage

LineKey = tuple[str, str | None, int | None]
"""What a line is about: its kind, then a step's id and attempt, or the id of a call, approval or span and None."""

_ONE_AT_A_TIME: Final = {"planner": "plan", "translator": "translation"}


class ModelCalls:
    """Filled while a log is read; asked when a line is made or completed."""

    def __init__(self) -> None:
        self._asked: dict[LineKey, tuple[str, Usage]] = {}

    def note(self, event: ev.Event, body: ev.ModelReturned) -> None:
        """A model call belongs to a line that is made of it later, or is open."""
        key = _line_of(event, body)
        if key is not None:
            self._asked[key] = (body.model, (self.usage(key) or Usage()) + body.usage)

    def usage(self, key: LineKey) -> Usage | None:
        """What the calls behind a line came to so far; None where there were none."""
        asked = self._asked.get(key)
        return None if asked is None else asked[1]

    def model(self, kind: str, step_id: str | None, attempt: int | None, span: str | None) -> str | None:
        """The model asked last for a line; None where none was. Calls behind a line that is made once, when they are
        over, are done with then."""
        match kind:
            case "plan" | "translation":
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


def _line_of(event: ev.Event, body: ev.ModelReturned) -> LineKey | None:
    kind = _ONE_AT_A_TIME.get(body.purpose)
    if kind is not None:
        return (kind, None, None)
    if body.span:
        return ("subagent", body.span, None)
    if event.step_id is None:
        return None
    return ("supervision" if body.purpose == "supervisor" else "step", event.step_id, event.attempt)
