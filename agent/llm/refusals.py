"""Reads off an endpoint's error which part of a request it refuses: a parameter, a value, the schema, the roles of the
messages, or the limit of the reply.

`ParameterSupport` asks, and sends the next request without it.
"""

import re
from collections.abc import Collection
from typing import NamedTuple

from agent.core.errors import ModelDownError, ModelError, ModelRequestError

_UNSUPPORTED_CODES = frozenset({"unsupported_parameter", "unsupported_value", "extra_forbidden", "unknown_parameter"})
_UNSUPPORTED = re.compile(
    r"unsupported|unrecogni[sz]ed|\bunknown\b|\bunexpected (?:keyword|argument|parameter|field)|\bdeprecated\b|"
    r"extra inputs|cannot both be specified|"
    r"(?:\bnot\b|n't\b|\bcannot\b)[^.]{0,30}(?:support|permit|allow|recogni[sz]|accept|implement|available)",
    re.IGNORECASE,
)
_BAD_VALUE = re.compile(
    r"must be (?:at|between|less|greater|smaller|larger|in|within|strictly|positive|a|an|one of|[<>])|"
    r"\bat (?:most|least)\b|\btoo (?:large|small|high|low)\b|\brange\b|\bbetween\b|"
    r"(?:less|greater|larger|smaller) than|\bexceed",
    re.IGNORECASE,
)
"""How an error says that another value of the same parameter would be taken."""
_QUOTED = re.compile(r"['\"`]([A-Za-z_][\w.\[\]]*)['\"`]")
"""How most providers name a parameter in their messages."""
_COMMON_WORDS = frozenset({"user", "name", "store", "prediction"})
"""Parameters that are words of messages, too: without quotes they do not name the parameter."""
_INVALID = re.compile(r"invalid[ _](?:argument|request|input)|bad request", re.IGNORECASE)
_EMPTY = re.compile(r"answered \d{3}(?:: *(?:\{\}|null|\"\")?)?$")
"""How the message of an error ends that came without a word."""
_SCHEMA = re.compile(
    r"response[_ ]?format|structured output|grammar|guided|schema|\b(?:any|all|one)Of\b|"
    r"\b(?:min|max)(?:Items|Length)\b|additional_?Properties|\benum\b|\bconst\b|\$(?:ref|defs)\b",
    re.IGNORECASE,
)
_SCHEMA_FAULT = re.compile(
    r"response[_ ]?format|structured output|grammar|guided.decoding|json.?schema|required for format", re.IGNORECASE
)
"""What a fault of the server says if it is about the schema: other schemas are those of databases."""
_ROLES = re.compile(
    r"\broles?\b|must alternate|\bjinja\b|chat.?template|(?:system|developer) (?:message|prompt|instruction)|"
    r"(?:multiple|consecutive) (?:system|user|assistant)",
    re.IGNORECASE,
)
_SYSTEM = re.compile(
    r"\b(?:system|developer) (?:role|message|prompt|instruction)|role\W{1,3}(?:system|developer)\b|"
    r"only (?:the )?user and assistant",
    re.IGNORECASE,
)
_CALL_ID = re.compile(
    r"(?:tool[ _]?use|tool[ _]?calls?|tool_calls\W{0,2}\d+\W{0,2})[ _.]?id\b.{0,200}"
    r"(?:\blength\b|\blong\b|\bpattern\b|\bcharacters\b|a-z)",
    re.IGNORECASE | re.DOTALL,
)
"""How an error says that the id of a call has not the form of the endpoint's own."""
_STREAM = re.compile(
    r"\bstream(?:s|ing)?\b (?:\w+ ){0,3}(?:not|n't|never|un)[^.]{0,12}(?:support|available|allowed|enabled)"
    r"|(?:not|n't|cannot) (?:\w+ )?(?:support|allow|do) (?:\w+ )?stream(?:s|ing)?\b|\bverified to stream\b"
    r"|\bset ['\"`]?stream['\"`]? to false",
    re.IGNORECASE,
)
"""How an error says that the model does not stream; that something else may not be streamed is another matter."""
_WHERE = re.compile(r"https?://\S+(?: answered \d{3})?")
"""What our own messages say of the endpoint before its words."""
_NUMBER = re.compile(r"(?<![\w.,-])\d[\d,]*(?![\w-]|\.\d)")

_WITH_DIGITS = re.compile(r"(?<![\w-])[\w-]*\d[\w-]*")
"""Figures, times, and the ids of requests."""


class ContextSizes(NamedTuple):
    """What an error says of a context: its size, and how much of it the prompt takes, in tokens."""

    context: int
    prompt: int

    @property
    def reply_tokens(self) -> int:
        """The tokens that the prompt leaves for the reply."""
        return self.context - self.prompt


def list_refused_parameters(error: ModelError) -> tuple[str, ...]:
    """The parameters, or message fields, that the model does not accept in any form.

    That is the one the provider names, else every name its message quotes. Empty where the provider refuses something
    else, such as a value out of range.
    """
    if not isinstance(error, ModelRequestError) or not _is_unsupported(error):
        return ()
    return _list_names(error)


def find_bare_parameter(error: ModelError, names: Collection[str]) -> str | None:
    """The one of these parameters that the model does not accept, where the message names exactly one of them without
    quotes, as Azure, Anthropic and LiteLLM do."""
    if not isinstance(error, ModelRequestError) or not _is_unsupported(error):
        return None
    return _find_bare(error.message, names)


def find_refused_value(error: ModelError, names: Collection[str]) -> str | None:
    """The one of these parameters whose value is refused: another value would be taken."""
    if not isinstance(error, ModelRequestError) or not _BAD_VALUE.search(error.message):
        return None
    named = next((name for name in _list_names(error) if name in names), None)
    return named or _find_bare(error.message, names)


def _is_unsupported(error: ModelError) -> bool:
    if error.details.get("code") in _UNSUPPORTED_CODES:
        return True
    return _UNSUPPORTED.search(error.message) is not None and _BAD_VALUE.search(error.message) is None


def _list_names(error: ModelError) -> tuple[str, ...]:
    param = error.details.get("param")
    names = (param,) if isinstance(param, str) and param else _QUOTED.findall(error.message)
    return tuple(name.rsplit(".", 1)[-1].strip("[]") for name in names)  # `messages[2].reasoning` names a field


def _find_bare(message: str, names: Collection[str]) -> str | None:
    named = [name for name in names if name not in _COMMON_WORDS and re.search(rf"(?<![\w./]){name}(?![\w/])", message)]
    return named[0] if len(named) == 1 else None


def is_schema_refusal(error: ModelError) -> bool:
    """Whether the endpoint refused the request because of its response schema. Some report that as a fault of their
    own, with 500 or within a stream (Ollama, LM Studio)."""
    if isinstance(error, ModelRequestError):
        return error.details.get("status") in (400, 404, 422) and _SCHEMA.search(error.message) is not None
    return _has_answered(error) and _SCHEMA_FAULT.search(error.message) is not None


def is_role_refusal(error: ModelError) -> bool:
    """Whether the model's template takes these messages in another order or without their roles only. llama.cpp reports
    that as a fault of its own."""
    is_refused = isinstance(error, ModelRequestError) and error.details.get("status") in (400, 422)
    return (is_refused or _has_answered(error)) and _ROLES.search(error.message) is not None


def is_stream_refusal(error: ModelError) -> bool:
    """Whether the endpoint takes the request, but not as a stream."""
    if not isinstance(error, ModelRequestError):
        return False
    is_named = error.details.get("param") == "stream" and _is_unsupported(error)
    return is_named or _STREAM.search(_WHERE.sub("", error.message)) is not None


def is_call_id_refusal(error: ModelError) -> bool:
    """Whether the endpoint takes ids of tool calls in another form only. vLLM reports that as a fault of its own."""
    is_refused = isinstance(error, ModelRequestError) and error.details.get("status") in (400, 422)
    return (is_refused or _has_answered(error)) and _CALL_ID.search(error.message) is not None


def names_system_role(error: ModelError) -> bool:
    """Whether a refusal of roles is about the system's."""
    return _SYSTEM.search(error.message) is not None


def is_unexplained_refusal(error: ModelError, *, in_any_words: bool) -> bool:
    """Whether the endpoint refused the request and names nothing of it: it may be the schema (Gemini), a parameter, or
    the template. `in_any_words` counts words that are about something else, too, such as llama.cpp's "Failed to
    initialize samplers" for a grammar."""
    if not isinstance(error, ModelRequestError) or error.details.get("status") not in (400, 422):
        return False
    if error.details.get("param") or error.details.get("code"):
        return False
    return in_any_words or _INVALID.search(error.message) is not None or _EMPTY.search(error.message) is not None


def strip_numbers(message: str) -> str:
    """An error's message without its figures and the ids of requests, which differ each time."""
    return _WITH_DIGITS.sub("", message)


def is_unexplained_fault(error: ModelError) -> bool:
    """Whether the endpoint failed by itself (500), and not a proxy before it."""
    return isinstance(error, ModelDownError) and error.details.get("status") in (500, 501)


def counts_limit(message: str, limit: int) -> bool:
    """Whether the refusal of a prompt as too long may come from this limit of the reply: its figures, if there are any,
    have the limit among them or in their sum."""
    numbers = _list_numbers(message)
    return len(numbers) < 2 or limit in numbers or any(number + limit in numbers for number in numbers)


def read_context_sizes(message: str, limit: int) -> ContextSizes | None:
    """What the refusal of a prompt with this limit of the reply says of the context; None if it has no such figures.

    vLLM, SGLang and TGI write the size of the context, the tokens of the prompt, the limit, and some their sum.
    """
    numbers = _list_numbers(message)
    prompts = {number for number in numbers if number + limit in numbers and number != limit}
    others = numbers - {prompt + limit for prompt in prompts} - {limit}
    if len(others) != 2:
        return None
    if len(prompts) == 1:
        (prompt,) = prompts
        (context,) = others - prompts
    else:
        prompt, context = sorted(others)
    return ContextSizes(context, prompt)


def _list_numbers(message: str) -> set[int]:
    own_words = _WHERE.sub("", message)
    return {int(number.replace(",", "")) for number in _NUMBER.findall(own_words)}


def _has_answered(error: ModelError) -> bool:
    """Whether a fault is one of the model's server, and not of the connection."""
    has_answered = error.details.get("status") is not None or "reported" in error.details
    return isinstance(error, ModelDownError) and has_answered
