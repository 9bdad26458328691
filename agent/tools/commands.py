"""`ToolCommands`: the exact commands by which a tool is called without a model, declared in its `PlanHints`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from agent.core.models import JsonObject

COMMAND_CHARS: Final = 1_000
"""The longest command, in characters."""
QUOTE = "\"'\u201c\u201d\u2018\u2019"
_WORD = rf"(?!(?:and|och|then)\b)[^\s,;{QUOTE}]+"
QUERY = rf"(?:[{QUOTE}](?P<quoted>[^{QUOTE}]{{1,200}})[{QUOTE}]|(?P<query>{_WORD}(?: {_WORD}){{0,5}}))"
"""A search query: quoted, or a few words. A longer text might contain another command."""
MINE = r"(?:(?:in|through|all|of|my|the|our|your|local)\s+)*"
"""Words between a verb and what it is about."""


@dataclass(frozen=True, slots=True)
class CommandCall:
    """A call that a command asks for."""

    args: JsonObject
    intent: str


@dataclass(frozen=True, slots=True)
class CommandExample:
    """A command as people see it: what it is good for, and a text. `place` orders the list of examples."""

    purpose: str
    text: str
    place: int = 1_000


@dataclass(frozen=True, slots=True)
class ToolCommands:
    """The commands of one tool. `read` returns the calls that a text asks for; [] for any other text.

    The text has no greeting, no "please" and no closing punctuation."""

    read: Callable[[str], Sequence[CommandCall]]
    place: int = 1_000
    """Tools are asked in this order; the first whose command it is gets the call."""
    longest: int = COMMAND_CHARS
    """The longest command in characters."""
    takes_whole: bool = False
    """Whether every request of a room with this tool is one command, which is read as it was written."""
    example: CommandExample | None = None
    knowledge_example: CommandExample | None = None
    """The example in a room with `knowledge`, which answers every question from documents."""
