"""Routes a request by its structure, before any model call. It does not interpret the text."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from agent.core.models import Room, RouteKind
from agent.tools.catalogue import Catalogue

TASK_PREFIX = "### Task:"

_GREETINGS = frozenset({
    "hi", "hello", "hey", "hiya", "howdy", "good morning", "good afternoon", "good evening", "good day", "greetings",
    "thanks", "thank you", "thx", "cheers", "bye", "goodbye",
    "hej", "hejsan", "hallå", "tjena", "god morgon", "god kväll", "god dag", "tack", "tack så mycket",
    "hallo", "guten tag", "guten morgen", "guten abend", "danke", "bonjour", "salut", "bonsoir", "merci",
    "hola", "buenos días", "gracias",
})  # fmt: skip
"""Whole messages that need no plan: they need no model in rules mode, and no search in a room of documents."""
_AFTER_GREETINGS = (
    " there", " all", " everyone", " stepgate", " again", " so much", " very much", " a lot", " då", " på dig"
)  # fmt: skip
"""What may follow a greeting. With any other word the message is a request."""
_GREETING_CHARS = 60
_SLASH = re.compile(r"^/(?P<name>[a-zA-Z][\w-]{0,63})(?:\s+(?P<rest>.*))?$", re.DOTALL)
LISTINGS = frozenset({"help", "skills", "tools"})


@dataclass(frozen=True, slots=True)
class Route:
    """A route and its reason. `question` is the request without its command word."""

    kind: RouteKind
    reason: str
    question: str
    skill: str | None = None


@dataclass(frozen=True, slots=True)
class RunCommand:
    """A `/name` of a feature beside the skills, such as a recipe. `usage` is how it is called."""

    name: str
    usage: str
    description: str
    route: RouteKind
    noun: str
    """What it is called in the trace."""


def route_request(
    question: str,
    *,
    room: Room,
    catalogue: Catalogue,
    tool_calls: bool,
    has_model: bool,
    commands: Sequence[RunCommand] = (),
) -> Route:
    """The route of a request from its structure; the planner interprets the topic. Pure.

    `commands` are what features offer the caller beside the skills."""
    text = question.strip()
    if text.startswith(TASK_PREFIX):
        return Route("task", "a background prompt of the client", question)
    if tool_calls:
        return Route("tool_calls", "the request names its tool calls", question)
    if (slash := _route_slash_command(text, catalogue, commands, has_model=has_model)) is not None:
        return slash
    if room.skill is not None and room.planning:
        return Route("skill", f"the skill of the room {room.id!r} handles every request", question, room.skill)
    if _is_greeting(text):
        return Route("greeting", "a greeting needs no plan", question)
    if not room.planning:
        return Route("direct", f"the room {room.id!r} does not plan", question)
    return Route("plan", "the planner decides", question)


def _is_greeting(text: str) -> bool:
    if len(text) > _GREETING_CHARS:
        return False
    words = " ".join(re.findall(r"\w+", text.casefold()))
    return words in _GREETINGS or (
        words.endswith(_AFTER_GREETINGS) and any(words.removesuffix(after) in _GREETINGS for after in _AFTER_GREETINGS)
    )


def _route_slash_command(
    text: str, catalogue: Catalogue, commands: Sequence[RunCommand], *, has_model: bool
) -> Route | None:
    match = _SLASH.match(text)
    if match is None:
        return None
    name, rest = match["name"].lower(), (match["rest"] or "").strip()
    if name in LISTINGS and not rest:
        return Route("command", f"the command /{name}", text)
    for card in catalogue.skills:
        if card.name.lower().replace("-", "_") == name.replace("-", "_"):
            return Route("skill", f"the request calls the skill {card.name!r}", rest or card.description, card.name)
    for one in commands:
        if one.name.replace("-", "_") == name.replace("-", "_"):
            return Route(one.route, f"the request calls the {one.noun} {one.name!r}", rest, one.name)
    # A model may know what "/etc" means; the rules only know that no skill and no recipe has this name.
    return None if has_model else Route("command", f"there is no skill or recipe /{name}", text)
