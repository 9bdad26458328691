"""Error messages in results that their tools returned as good ones. Pure functions.

A structured result, also one that is written as JSON text, is judged by its fields alone; any other by its first words.
A field that says whether the call failed (`ok`, `success`, `isError`) is believed whatever stands beside it. What a
tool reads may itself be about errors (logs, tickets, builds), and rules cannot distinguish these. So any other message
is a failure only if the result holds nothing else, or is what a change returned.
"""

import re
from dataclasses import dataclass
from typing import Literal

from pydantic import JsonValue

from agent.core.events import StepOutput
from agent.core.failure_fields import is_blank, is_failure_value
from agent.core.json_texts import read_json_text, write_text
from agent.core.models import JsonObject, PlanStep
from agent.planning.list_steps import FOR_EACH

Certainty = Literal["certain", "likely", "possible"]
"""A field that is there to say so calls the result a failure, or it holds nothing but an error; only its words or its
status say so; the result holds other things as well."""

_ERROR_TEXT = re.compile(
    r"^\W*(?:error|exception|traceback|fatal|unauthorized|forbidden|access denied|permission denied|"
    r"internal server error|bad gateway|service unavailable|too many requests|not authorized|"
    r"(?:request|call|operation|connection) (?:failed|refused|timed out)|http (?:4|5)\d\d)\b|"
    r"\b(?:quota|rate limit|limit) exceeded\b|\binvalid api key\b",
    re.IGNORECASE,
)
_LONGEST_MESSAGE = 300
"""Characters. A long text that begins with "Error handling in Python ..." is a page about errors."""
_FAILURE_FIELDS = ("error", "isError", "is_error")
_SUCCESS_FIELDS = ("success", "ok")
"""Fields that are false in the results of failed calls."""
_MESSAGE_FIELDS = frozenset(
    {*_FAILURE_FIELDS, "errors", "jsonrpc", "code", "message", "description", "reason"}
    | {"type", "title", "status", "detail", "details", "instance"}
)
"""What an error object consists of: JSON-RPC 2.0, problem details (RFC 9457), and what is usual beside these."""
QUOTED_ERROR_CHARS = 60
"""An error message whose first characters, this many, occur in the tool's input is a quotation."""
_STATUS_WORDS = ("error", "failed", "failure", "fail")


@dataclass(frozen=True, slots=True)
class HiddenError:
    """An error message in a result, and how certain it is that the call failed."""

    message: str
    certainty: Certainty


def find_hidden_error(step: PlanStep, output: StepOutput) -> HiddenError | None:
    """The error message in a result that its tool returned as a good one; None without one."""
    value = read_json_text(output.text if output.value is None else output.unwrapped_value)
    if isinstance(value, dict):
        return _find_in_fields(value, step, output.text)
    if isinstance(value, list) and FOR_EACH in step.args:
        errors = (find_hidden_error(step, StepOutput(value=item, text=write_text(item))) for item in value)
        first = next((one for one in errors if one is not None), None)
        return HiddenError(first.message, "possible") if first is not None else None
    return _find_in_text(value, step) if isinstance(value, str) else None


def find_failure_of_item(step: PlanStep, output: StepOutput) -> str:
    """The error message by which one call of a list step failed; "" if it did not, or if that is only a doubt."""
    hidden = find_hidden_error(step, output)
    is_failed = hidden is not None and hidden.certainty in ("certain", "likely" if step.effect == "effect" else "")
    return hidden.message if hidden is not None and is_failed else ""


def _find_in_fields(value: JsonObject, step: PlanStep, text: str) -> HiddenError | None:
    others = [one for name, one in value.items() if _adds_more(name, one, value)]
    status = value.get("status")
    is_error_code = isinstance(status, int) and not isinstance(status, bool) and 400 <= status <= 599
    error = next((value[name] for name in _FAILURE_FIELDS if is_failure_value(value.get(name))), None)
    says_failed = any(value.get(name) is False for name in _SUCCESS_FIELDS)
    if says_failed or error is not None:
        message = text if error is None or isinstance(error, bool) else error
        is_own_word = says_failed or any(value.get(name) is True for name in _FAILURE_FIELDS) or is_error_code
        if is_own_word or all(one in step.args.values() for one in others):
            return HiddenError(_shorten(message), "certain")
        return HiddenError(_shorten(message), "likely" if _is_failed_change(error, value, step) else "possible")
    if is_failure_value(value.get("errors")):  # what a build or a document has: the call itself went well
        return HiddenError(_shorten(value["errors"]), "possible" if others else "likely")
    if is_error_code:
        return HiddenError(f"status {status}", "possible" if others else "certain")
    if isinstance(status, str) and status.lower() in _STATUS_WORDS:
        is_failed = not others or _is_failed_change(status, value, step)
        return HiddenError(f"status {status}", "likely" if is_failed else "possible")
    return None


def _is_failed_change(said: JsonValue, value: JsonObject, step: PlanStep) -> bool:
    """Whether a change failed that returned these words of an error: it names nothing that it made, and they are not
    the call's own input, as in the record of an error."""
    has_made = value.get("id") is not None or any(value.get(name) is True for name in _SUCCESS_FIELDS)
    return step.effect == "effect" and not has_made and said not in step.args.values()


def _adds_more(name: str, value: JsonValue, result: JsonObject) -> bool:
    """Whether a field of a result says something beside an error message."""
    if name in _SUCCESS_FIELDS:
        return value is True
    is_of_message = name in _MESSAGE_FIELDS or (name == "id" and "jsonrpc" in result)
    return not is_of_message and not is_blank(value)


def _find_in_text(text: str, step: PlanStep) -> HiddenError | None:
    """The message in a text. What a change returns is its receipt; what is read may go on after its first line."""
    text = text.strip()
    if len(text) > _LONGEST_MESSAGE:
        return None
    quotable = _list_input_texts(step)
    is_long = "\n" in text and step.effect != "effect"
    for quoted in quotable:
        match = _ERROR_TEXT.search(quoted)
        if match is not None and re.search(r"\w", quoted[match.end() :]):  # more than the word "error"
            text = " ".join(text.split()).replace(quoted, "")
    match = _ERROR_TEXT.search(text)
    message = " ".join(text[match.start() :].split()) if match is not None else ""
    if not message or any(message[:QUOTED_ERROR_CHARS] in quoted for quoted in quotable):
        return None
    return HiddenError(_shorten(message), "possible" if is_long else "likely")


def _list_input_texts(step: PlanStep) -> list[str]:
    """The texts in a tool's arguments, each as one line: they may describe errors, and the result may repeat them. None
    for a skill, whose output a model writes."""
    if step.action == "skill":
        return []
    values = [value.get("$literal", "") if isinstance(value, dict) else value for value in step.args.values()]
    return [" ".join(value.split()) for value in values if isinstance(value, str)]


def _shorten(message: JsonValue, limit: int = 200) -> str:
    text = " ".join(write_text(message).split())
    return text if len(text) <= limit else text[:limit] + "…"
