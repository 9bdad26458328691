"""What was written of an answer before its model failed."""

from collections.abc import Iterable

from agent.core.events import AnswerDelta, AnswerStarted, Event, StepFinished

MODEL_ERROR_PREFIXES = ("ERR_MODEL", "ERR_QUOTA", "ERR_RATE_LIMIT")
"""Prefixes of the error codes of failed model calls."""


def find_broken_off_text(events: Iterable[Event]) -> str:
    """The longest text that reached readers before its model failed; "" if none did. A text that was declared void,
    or that a check refused, is not among them.
    """
    text, broken_off = "", [""]
    for event in events:
        match event.body:
            case AnswerStarted():
                text = ""
            case AnswerDelta(kind="text", text=piece):
                text += piece
            case StepFinished(output=output) if (output.error_code or "").startswith(MODEL_ERROR_PREFIXES):
                broken_off.append(text.rstrip())
    return max(broken_off, key=len)
