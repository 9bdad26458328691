"""The studio's closed set of commands: what an exact command asks for, without a model.

The router reads free text. Where it cannot be used, or is not sure, these commands are still understood. A message that
says anything beside one command is none of them.
"""

import re
from dataclasses import dataclass, field

from agent.core.models import IntentCategory

MAX_NAME_WORDS = 6
"""Words of a name without quotes; more of them are a sentence."""
_SENTENCE = frozenset(
    {"and", "that", "which", "with", "for", "to", "from", "who", "where", "when", "then", "so", "can", "could"}
    | {"should", "but", "or", "if", "it", "its", "please", "using"}
)
"""Words that turn a bare name into a request of its own."""
_MARKERS = frozenset({"called", "named"})
_ID = r"[\w][\w.:/-]*"


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


_FORMS = (
    _form(r"(?:(?:list|show)\s+)?(?:the\s+|all\s+)?rooms", "room_management", "rooms_list"),
    _form(rf"(?:show|inspect)\s+room\s+(?P<room_id>{_ID})", "room_management", "room_show"),
    _form(rf"(?:delete|remove)\s+(?:the\s+)?room\s+(?P<room_id>{_ID})", "room_management", "room_delete"),
    _form(
        rf"edit\s+(?:the\s+)?room\s+(?P<room_id>{_ID})\s+(?P<field>[a-z_]+(?:\.[\w-]+)*)"
        r"(?:\s+to\s+|\s*[=:]\s*|\s+)(?P<value>\S.*)",
        "room_management",
        "room_edit",
    ),
    _form(r"(?:(?:list|show)\s+)?(?:the\s+|all\s+)?tools", "tool_generation", "tools_list"),
    _form(rf"generate\s+tool\s+(?P<name>{_ID}?)\s*:\s*(?P<description>.+)", "tool_generation", "tool_generate"),
    _form(rf"apply\s+(?:the\s+)?tool\s+(?P<name>{_ID})", "tool_generation", "tool_apply"),
    _form(rf"discard\s+(?:the\s+)?tool\s+(?P<name>{_ID})", "tool_generation", "tool_discard"),
    _form(r"(?:find|search)\s+(?:for\s+)?(?P<query>\S.*)", "query", "search_entities"),
    _form(rf"(?:inspect|show)\s+(?P<entity_id>{_ID})", "query", "get_entity_details"),
    _form(r"(?:(?:list|show)\s+)?(?:the\s+|all\s+)?secrets", "config", "list_secrets"),
    _form(r"(?:(?:list|show)\s+)?(?:the\s+|all\s+)?mcp(?:\s+servers)?", "config", "mcp_servers_list"),
    _form(r"(?:(?:list|show)\s+)?(?:the\s+|all\s+)?prompts", "config", "prompts_list"),
)
FORMS = (
    "rooms", "show room ID", "create room NAME", "edit room ID FIELD VALUE", "delete room ID", "tools",
    "generate tool NAME: DESCRIPTION", "apply tool NAME", "discard tool NAME", "find WORDS", "inspect NAME", "secrets",
    "mcp", "prompts",
)  # fmt: skip
"""How people write them."""


def read_command(message: str) -> Command | None:
    """Reads a message that is a command as a whole; None if it is free text."""
    text = message.strip().rstrip(".!").strip()
    if not text or "\n" in text:
        return None
    if (name := _read_new_room(text)) is not None:
        return Command("room_management", "room_create", {"name": name})
    for form in _FORMS:
        if (matched := form.pattern.fullmatch(text)) is not None:
            inputs = {name: _unquote(value) for name, value in matched.groupdict().items() if value}
            is_sentence = "query" in inputs and _read_name(matched["query"]) is None
            return None if is_sentence else Command(form.category, form.tool, inputs)
    return None


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
    if after and after[0].casefold() in _MARKERS:
        after = after[1:]
    if bool(before) == bool(after):  # no name, or one on either side
        return None
    return _read_name(" ".join(before or after))


def _read_name(text: str) -> str | None:
    unquoted = _unquote(text)
    words = unquoted.split()
    if unquoted == text and (len(words) > MAX_NAME_WORDS or any(_is_of_sentence(word) for word in words)):
        return None
    return unquoted or None


def _is_of_sentence(word: str) -> bool:
    return word.casefold() in _SENTENCE or word.endswith((",", ";"))


def _unquote(text: str) -> str:
    text = text.strip()
    for opening, closing in (('"', '"'), ("'", "'"), ("“", "”"), ("«", "»")):
        if len(text) > 2 and text.startswith(opening) and text.endswith(closing) and opening not in text[1:-1]:
            return text[1:-1].strip()
    return text
