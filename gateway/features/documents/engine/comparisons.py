"""Parses questions that compare topics, so that each topic gets a search of its own."""

import re
from dataclasses import dataclass

from pydantic import JsonValue

from agent.core.models import JsonObject

MAX_TOPICS = 4
TOPIC_CHARS = 200
READ_CHARS = 1_000
"""Characters. A longer text is not parsed: a comparison is a short question."""

_LEAD = r"(?:(?:please|can you|could you|kan du)\s+)*"
_AND = r"\s+(?:and|och|und)\s+"
_WITH = r"\s+(?:and|with|to|against|versus|vs\.?|och|med|mot|und|mit)\s+"
_PATTERNS = (
    re.compile(
        rf"^\W*{_LEAD}(?:compare|contrast|j\u00e4mf\u00f6r|vergleiche?)\s+(?P<all>.+)$", re.IGNORECASE | re.DOTALL
    ),
    re.compile(
        r"\b(?:differences?|comparison|similarities|skillnad(?:en|erna)?|unterschiede?)\s+(?:is\s+|are\s+)?"
        rf"(?:between|of|mellan|zwischen)\s+(?P<one>.+?){_AND}(?P<other>.+)$",
        re.IGNORECASE | re.DOTALL,
    ),
    re.compile(
        r"\bhow\s+(?:do(?:es)?|is|are)\s+(?P<one>.+?)\s+(?:differ(?:ent)?|compared?)\s+(?:from|to|with)\s+(?P<other>.+)$",
        re.IGNORECASE | re.DOTALL,
    ),
    re.compile(r"^\W*(?P<one>[^?.!]{2,80}?)\s+(?:vs\.?|versus)\s+(?P<other>[^?.!]{2,80})\W*$", re.IGNORECASE),
)
_SHARED = re.compile(
    r"^(?P<what>.+?\s+(?:of|for|in|between|at|on|from|f\u00f6r|i|mellan|av|von|f\u00fcr))\s+(?P<things>.+)$",
    re.IGNORECASE | re.DOTALL,
)
_SPLIT = re.compile(rf"\s*,\s*(?:(?:and|och|und)\s+)?|{_WITH}", re.IGNORECASE)
_ARTICLE = re.compile(r"^(?:the|a|an|our|their|den|det|de|vår|die|der|das)\s+", re.IGNORECASE)
_TAIL = re.compile(
    r"(?:[,;.]?\s+(?:as|in)\s+(?:json|an?\s+(?:table|list)|a?\s*bullet.*|at most .*|.{0,20}(?:words|sentences)))?"
    r"[\s?.!,;:\"']*$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Topic:
    """One side of a comparison: its name and its search query."""

    name: str
    query: str


def parse_comparison(question: str) -> tuple[Topic, ...]:
    """The topics that a question compares, in order; () without a comparison or with more than `MAX_TOPICS`."""
    text = question.strip()
    if len(text) > READ_CHARS:
        return ()
    for pattern in _PATTERNS:
        match = pattern.search(text)
        if match is None:
            continue
        sides = match["all"] if "all" in match.groupdict() else f"{match['one']} and {match['other']}"
        topics = _parse_topics(_TAIL.sub("", sides, count=1))
        if topics:
            return topics
    return ()


def build_search_args(metadata: JsonObject, query: JsonValue) -> JsonObject:
    """The arguments of a search, limited to the collection in `metadata.collection` if the request has one."""
    collection = metadata.get("collection")
    args: JsonObject = {"query": query}
    return args | {"collection": collection} if isinstance(collection, str) and collection else args


def _parse_topics(sides: str) -> tuple[Topic, ...]:
    """The topics of the compared text, or () unless it has 2 to `MAX_TOPICS`.

    Shared words go to every topic: "the holidays of Sweden and Norway" gives the queries "the holidays of Sweden" and
    "the holidays of Norway"."""
    things = _split_things(sides)
    what = ""
    shared = _SHARED.match(sides)
    if shared is not None:
        inner = _split_things(shared["things"])
        apart = any(map(_SHARED.match, inner)) or not _are_alike(inner)
        if len(inner) > 1 and not apart and not _SPLIT.search(shared["what"]):
            what = shared["what"]
            repeated = f"{what.rpartition(' ')[2].casefold()} "  # "a berth for members and for guests"
            things = [one[len(repeated) :] if one.casefold().startswith(repeated) else one for one in inner]
    if not 2 <= len(things) <= MAX_TOPICS:
        return ()
    return tuple(Topic(thing, f"{what} {thing}".strip()) for thing in things)


def _are_alike(things: list[str]) -> bool:
    """Whether all are proper names ("Atlas 300", "Norway") or none is. In a mixed list the shared words belong
    to the first thing only."""
    return len({any(letter.isupper() or letter.isdigit() for letter in thing) for thing in things}) == 1


def _split_things(text: str) -> list[str]:
    parts = [part.strip(" \t\n\"'\u201c\u201d?.!,;:") for part in _SPLIT.split(text)]
    named = [_ARTICLE.sub("", part) for part in parts if part]
    return list(dict.fromkeys(named)) if all(len(part) <= TOPIC_CHARS for part in named) else []
