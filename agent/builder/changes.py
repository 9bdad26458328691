"""What a message wants to be different in a proposed pipeline, read by a small grammar. Pure.

A wish is a whole clause: one that holds another word besides is not read, for that word may turn it round. What is not
read is told apart, so that nobody is given the half of what they said."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from agent.builder.grammar import Wish, grammar
from agent.knowledge.pipeline import PipelineDAG
from agent.knowledge.pipeline_check import checked

MOST_READ = 1_000
"""Characters of a message in which wishes are looked for; who says more has something else in mind."""


class Reading(NamedTuple):
    """What was read: the wishes in their order, a name for the collection, the clauses that no rule reads."""

    wishes: tuple[Wish, ...]
    name: str
    unread: tuple[str, ...]


_NAME = r"[\"'`\u201c\u2018]?(?P<name>\w[\w.-]{0,198}\w|\w)[\"'`\u201d\u2019]?"
_NO_NAMES = frozenset({"it", "this", "that", "a", "an", "the", "off", "in", "me", "something", "whatever"})
_NAMED = re.compile(
    r"(?:(?:call|name) (?:it|this|that|the collection)(?: as)?|use the (?:collection )?name|the name is|"
    rf"the collection is called) {_NAME}(?!\w)",
    re.IGNORECASE,
)
_FILLER = re.compile(
    r"(?:please|(?:can|could|would|will) you|i(?:'d| would) like(?: you)?(?: to)?|i (?:want|need)(?: you)?(?: to)?|"
    r"let(?:'|\u2019)?s|let us|ok|okay|yes|yeah|well|so|now|just|actually|instead|too|thanks|thank you|hm+|"
    r"for (?:me|now)|(?:because|since|so that|otherwise) [^.,;!?]*)(?!\w)",
    re.IGNORECASE,
)
"""What may stand beside a wish and changes nothing of it."""
_BETWEEN = re.compile(r"(?:\s|[,;.!?:]|(?:and|but|then|also|with|plus)(?!\w))+", re.IGNORECASE)
_ENDS = re.compile(r"(?=\s*$|\s*[,;.!?]|\s+(?:and|but|then|also|with|plus)(?!\w))", re.IGNORECASE)
_UNREAD = re.compile(
    r".+?(?=\s*$|\s*[,;!?\n]|\s*\.(?:\s|$)|\s+(?:and|but|then|with|plus)(?!\w))", re.IGNORECASE | re.DOTALL
)


def read_wishes(request: str) -> Reading:
    """The wishes in a message, and what else it holds."""
    text = " ".join(request.split())
    if len(text) > MOST_READ:
        return Reading((), "", (text,))
    wishes: list[Wish] = []
    unread: list[str] = []
    name, at = "", 0
    while at < len(text):
        between = _BETWEEN.match(text, at) or _FILLER.match(text, at)
        if between is not None and not _wish_at(text, at):
            at = between.end()
            continue
        if (read := _wish_at(text, at)) is not None:
            wish, at = read
            wishes.append(wish)
        elif (named := _NAMED.match(text, at)) is not None and named["name"].lower() not in _NO_NAMES:
            name, at = named["name"], named.end()
        else:
            rest = _UNREAD.match(text, at)
            assert rest is not None, "there is at least one character"
            unread.append(rest[0].strip())
            at = rest.end()
    return Reading(tuple(wishes), name, tuple(unread))


def changed(pipeline: PipelineDAG, request: str) -> tuple[PipelineDAG, str] | None:
    """The proposed pipeline as the message wants it, and why; None where it holds no wish. What it holds besides is
    not looked at, see `read_wishes`. What was set before stays. `PipelineInvalidError` for what cannot be."""
    return made(pipeline, read_wishes(request).wishes)


def made(pipeline: PipelineDAG, wishes: Sequence[Wish]) -> tuple[PipelineDAG, str] | None:
    """The pipeline with these wishes fulfilled in their order, and why; None for none. `PipelineInvalidError`."""
    said = []
    for wish in wishes:
        pipeline, words = wish(pipeline)
        said.append(words)
    if not said:
        return None
    return checked(pipeline), f"you want {', '.join(said)}"


def _wish_at(text: str, at: int) -> tuple[Wish, int] | None:
    """The wish that begins there, if it is a whole clause, and where it ends."""
    for pattern, wish in grammar():
        found = pattern.match(text, at)
        if found is None:
            continue
        end = found.end()
        while (more := _FILLER.match(text, end + 1)) is not None and text[end] == " ":
            end = more.end()
        if _ENDS.match(text, end):
            return wish(found), end
    return None
