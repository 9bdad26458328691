"""Questions the passages could answer next: their headings and names that the answer has not used."""

import re
from collections.abc import Iterator, Sequence
from itertools import chain

from agent.grounded_answers.grounding import Ground
from agent.grounded_answers.models import headings_of
from agent.grounded_answers.names import names
from agent.grounded_answers.passages import Quote
from agent.text.terms import extract_terms, fold

MAX_FOLLOW_UPS = 3
HEADING_CHARS = 80
_NUMBERING = re.compile(r"^[\s#*_]*(?:\d+(?:\.\d+)*[.)]?\s+)?|[\s#*_:]+$")


def follow_ups(question: str, quotes: Sequence[Quote], ground: Ground) -> tuple[str, ...]:
    """At most three questions, those of the better passages first; none where everything was used."""
    used = {quote.number for quote in quotes}
    said = set(extract_terms(question)) | {
        term
        for number in used
        for heading in headings_of(ground.chunks[number - 1])[-1:]
        for term in extract_terms(heading)
    }
    found: dict[str, str] = {}
    for subject in chain(_headings(ground, used), _names(ground, used)):
        key = fold(subject)
        if key not in found and not set(extract_terms(subject)) <= said:
            found[key] = f"What do the documents say about {subject}?"
        if len(found) == MAX_FOLLOW_UPS:
            break
    return tuple(found.values())


def _headings(ground: Ground, used: set[int]) -> Iterator[str]:
    for passage in ground.passages:
        heading = _NUMBERING.sub("", next(reversed(headings_of(passage.chunk)), ""))
        if passage.number not in used and 2 < len(heading) <= HEADING_CHARS:
            yield heading


def _names(ground: Ground, used: set[int]) -> Iterator[str]:
    for passage in ground.passages:
        if passage.number not in used:
            yield from (name.text for name in names(passage.chunk.content, ground.common) if len(name.words) > 1)
