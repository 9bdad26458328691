"""The studio's closed set of commands: what an exact command asks for, without a model.

The router reads free text. Where it cannot be used, or is not sure, these commands are still understood. A message that
says anything beside one command is none of them.
"""

import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from agent.core.models import IntentCategory
from gateway.features.studio.engine.field_values import holds_text

MAX_NAME_WORDS = 6
"""Words of a name without quotes; more of them are a sentence."""
_SENTENCE = frozenset(
    {"and", "that", "which", "with", "for", "to", "from", "who", "where", "when", "then", "so", "can", "could"}
    | {"should", "but", "or", "if", "it", "its", "please", "using"}
)
"""Words that turn a bare name into a request of its own."""
_MARKERS = frozenset({"called", "named"})
_WITHIN_MARKED_NAMES = frozenset({"for", "to", "from"})
"""Such words that a name after a marker may hold: `called Tool room for tools`."""
_ID = r"(?!(?:a|all|an|it|me|room|that|the|this|tool|prompt)(?![\w.:/-]))\w(?:[\w.:/-]*\w)?"
"""An id; an article or a pronoun alone is none."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command as read: the tool that carries it out, and its inputs."""

    category: IntentCategory
    tool: str
    inputs: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Form:
    """A form of a command. The named groups of `pattern` are the tool's inputs."""

    pattern: re.Pattern[str]
    category: IntentCategory
    tool: str


def _form(pattern: str, category: IntentCategory, tool: str) -> _Form:
    return _Form(re.compile(pattern, re.IGNORECASE | re.DOTALL), category, tool)


_LIST = r"(?:(?:list|show)\s+(?:me\s+)?)?(?:all\s+)?(?:the\s+)?"
_SHOW = r"(?:inspect|show)\s+(?:me\s+)?(?:the\s+)?"
_DELETE = r"(?:delete|remove)\s+(?:the\s+)?"
_FORMS = (
    _form(f"{_LIST}rooms", "room_management", "rooms_list"),
    _form(rf"{_SHOW}room\s+(?P<room_id>{_ID})", "room_management", "room_show"),
    _form(rf"{_SHOW}(?P<room_id>{_ID})\s+room", "room_management", "room_show"),
    _form(rf"{_DELETE}room\s+(?P<room_id>{_ID})", "room_management", "room_delete"),
    _form(rf"{_DELETE}(?P<room_id>{_ID})\s+room", "room_management", "room_delete"),
    _form(
        rf"edit\s+(?:the\s+)?room\s+(?P<room_id>{_ID}):?\s+(?:set\s+)?(?P<field>[a-z_]+(?:\.[\w-]+)*)"
        r"(?:\s+to\s+|\s*[=:]\s*|\s+)(?P<value>\S.*)",
        "room_management",
        "room_edit",
    ),
    _form(f"{_LIST}tools", "tool_generation", "tools_list"),
    _form(
        rf"generate\s+(?:a\s+)?tool\s+(?P<name>{_ID}?)\s*:\s*(?P<description>.+)", "tool_generation", "tool_generate"
    ),
    _form(rf"apply\s+(?:the\s+)?tool\s+(?P<name>{_ID})", "tool_generation", "tool_apply"),
    _form(rf"discard\s+(?:the\s+)?tool\s+(?P<name>{_ID})", "tool_generation", "tool_discard"),
    _form(rf"show\s+(?:me\s+)?(?:the\s+)?tool\s+(?P<name>{_ID})", "tool_generation", "tool_show"),
    # Before the forms of the graph, in which `secrets` would be the name of something.
    _form(f"{_LIST}secrets", "config", "list_secrets"),
    _form(rf"{_LIST}mcp(?:\s+servers)?", "config", "mcp_servers_list"),
    _form(f"{_LIST}prompts", "config", "prompts_list"),
    _form(rf"{_SHOW}prompt\s+(?P<name>{_ID})", "config", "prompt_show"),
    _form(r"(?:find|search)\s+(?:for\s+)?(?P<query>\S.*)", "query", "search_entities"),
    _form(rf"{_SHOW}(?:tool\s+|skill\s+|collection\s+)?(?P<entity_id>{_ID})", "query", "get_entity_details"),
)
FORMS = (
    "rooms", "show room ID", "create room NAME", "edit room ID FIELD VALUE", "delete room ID", "tools",
    "generate tool NAME: DESCRIPTION", "show tool NAME", "apply tool NAME", "discard tool NAME", "find WORDS",
    "inspect NAME", "secrets", "mcp", "prompts", "show prompt NAME",
)  # fmt: skip
"""How people write them."""


def read_command(message: str) -> Command | None:
    """Reads a message that is a command as a whole; None if it is free text."""
    exact = message.strip()
    text = exact.rstrip(".!").strip()
    if not text or "\n" in text:
        return None
    if (name := _read_new_room(text)) is not None:
        return Command("room_management", "room_create", {"name": name})
    for form in _FORMS:
        if (matched := form.pattern.fullmatch(text)) is not None:
            inputs = {name: _unquote(value) for name, value in matched.groupdict().items() if value}
            if (ending := exact[len(text) :]) and (last := _find_text_input(form, inputs)):
                quoted = inputs[last] != matched[last].strip()
                inputs[last] += "" if quoted else ending
            if form.tool == "room_edit":
                inputs["change"] = "set"
            is_sentence = "query" in inputs and _read_name(matched["query"]) is None
            return None if is_sentence else Command(form.category, form.tool, inputs)
    return None


def _find_text_input(form: _Form, inputs: Mapping[str, str]) -> str:
    """The input that ends a command and is a text of its own, whose last mark belongs to it; "" if there is none."""
    if form.tool == "room_edit":
        return "value" if holds_text(inputs["field"]) else ""
    return "description" if "description" in inputs else ""


def _read_new_room(text: str) -> str | None:
    """The name in "create room NAME", "make a room called NAME" or "new NAME room"; None for anything else.

    Word by word: the name follows the word `room`, or precedes it.
    """
    words = text.split()
    if words[0].casefold() not in ("create", "make", "new"):
        return None
    rest = words[1:]
    while rest and rest[0].casefold() in ("me", "a", "an", "the", "new"):
        rest = rest[1:]
    at = next((place for place, word in enumerate(rest) if word.casefold().rstrip(":") == "room"), None)
    if at is None:
        return None
    before, after = rest[:at], rest[at + 1 :]
    is_marked = bool(after) and after[0].casefold() in _MARKERS
    if is_marked:
        after = after[1:]
    if bool(before) == bool(after):  # no name, or one on either side
        return None
    return _read_name(" ".join(before or after), is_marked=is_marked)


def _read_name(text: str, *, is_marked: bool = False) -> str | None:
    unquoted = _unquote(text)
    words = unquoted.split()
    ending = _SENTENCE - _WITHIN_MARKED_NAMES if is_marked else _SENTENCE
    if unquoted == text and (len(words) > MAX_NAME_WORDS or any(_is_of_sentence(word, ending) for word in words)):
        return None
    return unquoted or None


def _is_of_sentence(word: str, sentence_words: AbstractSet[str]) -> bool:
    return word.casefold() in sentence_words or word.endswith((",", ";"))


def _unquote(text: str) -> str:
    text = text.strip()
    for opening, closing in (('"', '"'), ("'", "'"), ("“", "”"), ("«", "»")):
        if len(text) > 2 and text.startswith(opening) and text.endswith(closing) and opening not in text[1:-1]:
            return text[1:-1].strip()
    return text
