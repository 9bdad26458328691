"""What was written of an answer before its model failed."""

from collections.abc import Iterable

from agent.core.events import AnswerDelta, AnswerStarted, Event, StepFinished

MODEL_ERROR_PREFIXES = ("ERR_MODEL", "ERR_QUOTA", "ERR_RATE_LIMIT")
"""Prefixes of the error codes of failed model calls."""


def find_broken_off_text(events: Iterable[Event]) -> str:
    """The longest text that reached readers before its model failed; "" if none did. A text that was declared void,
    or whose attempt ended otherwise, is not among them.
    """
    text, writer, broken_off = "", None, [""]
    for event in events:
        match event.body:
            case AnswerStarted():
                text = ""
            case AnswerDelta(kind="text", text=piece):
                text, writer = text + piece, event.step_id
            case StepFinished(output=output) if event.step_id == writer:
                if (output.error_code or "").startswith(MODEL_ERROR_PREFIXES):
                    broken_off.append(text.rstrip())
                text = ""
    return max(broken_off, key=len)
