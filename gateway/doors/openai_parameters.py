"""Parameters of chat completions: which ones a room refuses, and which ones have no effect."""

from collections.abc import Callable, Iterable

from pydantic import JsonValue

from agent.core.models import Room
from gateway.doors.openai_wire import ChatCompletionRequest, WireMessage, WireModel
from gateway.errors import RequestFormatError

_ANSWER_FIELDS = frozenset({"metadata", "annotations"})
"""Fields of our answers that clients send back within the conversation. They ask for nothing."""
_UNSET: tuple[JsonValue, ...] = (None, False, "", [], {}, "auto")
"""Values that ask for nothing, under any name."""
MAX_IGNORED_NAMES = 20
MAX_IGNORED_NAME_CHARS = 64


def refuse_unsupported(
    body: ChatCompletionRequest, room: Room, list_rooms: Callable[[], Iterable[Room]], *, has_model: bool
) -> None:
    """Raises `RequestFormatError` for a parameter that this room would have to ignore, although the sender would count
    on it.
    """
    _refuse_unsupported_anywhere(body)
    if body.web_search_options is not None and (room.planning or not has_model):
        message = "web_search_options: a search by the provider needs a configured model and a room that does not plan."
        raise RequestFormatError(message, "web_search_options", "unsupported_parameter")
    if body.tool_choice not in (None, "none", "auto"):
        if room.planning:
            plain = ", ".join(repr(other.id) for other in list_rooms() if not other.planning)
            message = f"tool_choice: the room {room.id!r} plans with its own tools; the client's reach the model in "
            raise RequestFormatError(message + f"{plain}.", "tool_choice", "unsupported_parameter")
        if not body.tools:
            raise RequestFormatError(
                "tool_choice is only allowed when 'tools' are given.", "tool_choice", "invalid_value"
            )
    if body.response_format is None or body.response_format.get("type") == "text":
        return
    kind = str(body.response_format.get("type"))[:40]
    if kind not in ("json_object", "json_schema"):
        message = f"response_format: {kind!r} is unknown; the types are 'text', 'json_object' and 'json_schema'."
        raise RequestFormatError(message, "response_format.type", "invalid_value")
    if not has_model:
        message = f"response_format: {kind!r} needs a model, and none is configured (AGENT_MODEL_FAST)."
        raise RequestFormatError(message, "response_format", "unsupported_parameter")


def _refuse_unsupported_anywhere(body: ChatCompletionRequest) -> None:
    """Raises `RequestFormatError` for a parameter that no room supports."""
    for name, requested, reason in (
        ("n", body.n not in (None, 1), "only n=1 is supported: a run has one answer"),
        ("logprobs", body.logprobs, "answers have no token probabilities"),
        ("top_logprobs", body.top_logprobs, "answers have no token probabilities"),
        ("functions", body.functions, "send 'tools' in place of 'functions'"),
        ("function_call", body.function_call not in (None, "none", "auto"), "send 'tool_choice' in its place"),
        ("modalities", set(body.modalities or ()) - {"text"}, "answers are text"),
        ("audio", body.audio, "answers are text"),
        ("moderation", body.moderation, "the room's guardrails check requests and answers (guard_input, guard_output)"),
    ):
        if requested:
            raise RequestFormatError(f"{name}: {reason}.", name, "unsupported_parameter")
    for index, message in enumerate(body.messages):
        if message.function_call:
            param = f"messages[{index}].function_call"
            raise RequestFormatError(f"{param}: send 'tool_calls' in its place.", param, "unsupported_parameter")
        if message.audio:
            param = f"messages[{index}].audio"
            raise RequestFormatError(f"{param}: send the text as 'content'.", param, "unsupported_parameter")


def list_ignored(body: ChatCompletionRequest) -> tuple[str, ...]:
    """The names of the fields that have a value and no effect, sorted; at most `MAX_IGNORED_NAMES` of them."""
    names = list_unknown_fields("", body)
    if body.stream_options is not None:
        names |= list_unknown_fields("stream_options.", body.stream_options)
    for message in body.messages:
        names |= list_unknown_fields("messages.", message)
        if isinstance(message.content, list):
            for part in message.content:
                names |= list_unknown_fields("messages.content.", part)
                if part.image_url is not None:
                    names |= list_unknown_fields("messages.content.image_url.", part.image_url)
    return tuple(sorted(names)[:MAX_IGNORED_NAMES])


def list_unknown_fields(prefix: str, given: WireModel) -> set[str]:
    """The names of an object's unknown fields that have a value."""
    unknown = given.model_extra
    if not unknown:
        return set()
    return {
        f"{prefix}{name[:MAX_IGNORED_NAME_CHARS]}"
        for name, value in unknown.items()
        if value not in _UNSET and not (isinstance(given, WireMessage) and name in _ANSWER_FIELDS)
    }
