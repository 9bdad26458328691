"""Routing: which way a request goes, decided by rules before any model is asked. Cheap turns stay cheap."""

import re
from dataclasses import dataclass

from agent.core.models import Room, RouteKind
from agent.planning.rules import is_expression, read_calls
from agent.tools.catalogue import Catalogue

TASK_PREFIX = "### Task:"
RELATED = 2.4
"""A question scores this much when about two of its content words, not the commonest, speak of one entry."""
LONG_CHARS = 1_500
"""A longer request is work, not a question: the planner looks at it."""

_GREETING = re.compile(
    r"^\W*(?:hi|hello|hey|hiya|howdy|yo|good (?:morning|afternoon|evening|day)|greetings|thanks?|thank you|thx|cheers|"
    r"bye|goodbye|ok|okay|hej|hejsan|hallå|tjena|god (?:morgon|kväll|dag)|tack(?: så mycket)?|"
    r"hallo|guten (?:tag|morgen|abend)|danke|bonjour|salut|bonsoir|merci|hola|buenos días|gracias)"
    r"(?:[\s,!.]+(?:there|all|everyone|stepgate|again|so much|very much|a lot|då|på dig))?\W*$",
    re.IGNORECASE,
)
_SLASH = re.compile(r"^/(?P<name>[a-zA-Z][\w-]{0,63})(?:\s+(?P<rest>.*))?$", re.DOTALL)
LISTINGS = frozenset({"help", "skills", "tools"})
_CUE = re.compile(
    r"\b(?:search|look up|find out|fetch|download|browse|website|web ?page|web ?site|online|internet|latest|newest|"
    r"current|currently|today|tonight|yesterday|tomorrow|this (?:week|month|year)|news|price of|weather|"
    r"my (?:files?|notes|documents?|folders?)|the (?:files?|documents?|folder|attached)|remember|compare|research|"
    r"plan (?:a|an|the|my|our)|step by step|then)\b",
    re.IGNORECASE,
)
_TIME_ONLY = re.compile(
    r"^\W*(?:what(?:'s| is)? the (?:time|date)|what time is it|what day is (?:it|today))(?: now| today)?"
    r"(?: in [\w /]+)?\W*$",
    re.IGNORECASE,
)


_LISTING = re.compile(
    r"^\W*(?:please\s+)?(?:(?:can|could) you\s+)?(?:"
    r"(?:what|which)\s+(?:kinds? of\s+)?(?:documents?|collections?|files?)\s+(?:do (?:you|we|i) have|"
    r"are (?:there|here|available|indexed|stored)|can i ask (?:you )?about|(?:do )?you know)"
    r"|(?:list|show(?: me)?)\s+(?:all\s+)?(?:(?:of\s+)?(?:the|my|your|our)\s+)?(?:documents|collections|files))"
    r"(?:\s+(?:here|there|now|in (?:here|total|all)|do you have|you have))?\W*$",
    re.IGNORECASE,
)


def asks_for_listing(question: str) -> bool:
    """Whether a question asks which documents there are, and nothing else."""
    return len(question) <= 200 and _LISTING.match(question) is not None


@dataclass(frozen=True, slots=True)
class Route:
    """Which way, and why. `question` is the request without its command word."""

    kind: RouteKind
    reason: str
    question: str
    skill: str | None = None


def route(question: str, *, room: Room, catalogue: Catalogue, tool_calls: bool, has_model: bool) -> Route:
    """The way of a request. Pure."""
    text = question.strip()
    if text.startswith(TASK_PREFIX):
        return Route("task", "a background prompt of the client", question)
    if tool_calls:
        return Route("tool_calls", "the request names its tool calls", question)
    if (slash := _slash(text, catalogue, has_model=has_model)) is not None:
        return slash
    if room.skill is not None and room.planning:
        return Route("skill", f"every request of the room {room.id!r} is its skill's", question, room.skill)
    if _GREETING.match(text):
        return Route("greeting", "a greeting needs no plan", question)
    if not room.planning:
        return Route("direct", f"the room {room.id!r} does not plan", question)
    if len(text) <= LONG_CHARS and _is_command(text, catalogue):
        return Route("command", "an exact command that one tool answers", question)
    if has_model and not _calls_for_tools(text, catalogue):
        return Route("direct", "nothing in the question calls for a skill or tool", question)
    return Route("plan", "the request may need skills or tools", question)


def _slash(text: str, catalogue: Catalogue, *, has_model: bool) -> Route | None:
    match = _SLASH.match(text)
    if match is None:
        return None
    name, rest = match["name"].lower(), (match["rest"] or "").strip()
    if name in LISTINGS and not rest:
        return Route("command", f"the command /{name}", text)
    for card in catalogue.skills:
        if card.name.lower().replace("-", "_") == name.replace("-", "_"):
            return Route("skill", f"the request calls the skill {card.name!r}", rest or card.description, card.name)
    # A model may know what "/etc" is; the rules only know that it is none of the skills.
    return None if has_model else Route("command", f"there is no skill /{name}", text)


def _is_command(text: str, catalogue: Catalogue) -> bool:
    """Whether a text is a sum or asks for the time, and nothing else. Takes time with the square of its length."""
    if catalogue.tool("calculator") and is_expression(text):
        return True
    return catalogue.tool("current_time") is not None and _TIME_ONLY.match(text) is not None


def _calls_for_tools(text: str, catalogue: Catalogue) -> bool:
    """Whether anything speaks for a tool: a link, a file, a sum, a cue, or words in common with an entry."""
    if not catalogue.skills and not catalogue.tools:
        return False
    if len(text) > LONG_CHARS or read_calls(text, {spec.name: spec for spec in catalogue.tools}):
        return True
    if _CUE.search(text):
        return True
    return max(catalogue.scores(text).values(), default=0.0) >= RELATED
