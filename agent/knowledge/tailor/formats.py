"""Formatting instructions that can be obeyed by rule, and the shapes they ask for. What else they say goes to the
model alone."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from agent.core.models import Frozen
from agent.knowledge.models import NOT_IN_DOCUMENTS
from agent.knowledge.tailor.claims import Segment, Unit
from agent.knowledge.tailor.grounding import Verdict
from agent.knowledge.tailor.render import Rendered

Shape = Literal["plain", "json", "bullets", "table"]

_SMALL = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10,
          "a": 1, "en": 1, "två": 2, "tre": 3, "fyra": 4, "fem": 5}  # fmt: skip
_COUNT = rf"(?P<count>\d{{1,4}}|{'|'.join(_SMALL)})"
_LIMIT = re.compile(
    rf"(?:(?:at\s+most|no\s+more\s+than|max(?:imum|imalt)?(?:\s+of)?|up\s+to|within|under|h\u00f6gst|in|on|i)\s+)?\b{_COUNT}"
    r"(?:\s+or\s+(?:fewer|less))?[\s-]+(?:\w+\s+)?(?P<what>sentences?|words?|meningar?|ord)\b(?:\s+(?:or\s+(?:fewer|less)|at\s+most|max))?",
    re.IGNORECASE,
)
_ASKS = r"(?:as|in|into|to|with|using|return|output|reply|respond|answer|som|i)\s+(?:(?:an?|valid|pure|en)\s+)*"
_WORDS: tuple[tuple[Shape, str], ...] = (
    ("json", r"\bjson\b"),
    ("bullets", r"\bbullet(?:s|ed|\s*-?points?)?\b|\bbulleted\s+list\b|\blist\b|\bpunktlista\b"),
    ("table", r"\btable\b|\btabell\b"),
)
_SHAPES = tuple(
    (shape, re.compile(word, re.IGNORECASE), re.compile(rf"{_ASKS}(?:\w+\s+)?(?:{word})", re.IGNORECASE))
    for shape, word in _WORDS
)


class Format(Frozen):
    """What an answer is to look like."""

    shape: Shape = "plain"
    max_sentences: int | None = None
    max_words: int | None = None

    @property
    def is_plain(self) -> bool:
        """Whether the answer may be shown as it is written."""
        return self == Format()


def read_format(instructions: str | None) -> Format:
    """What formatting instructions ask for."""
    return _read(instructions or "", asked=False)


def asked_format(question: str) -> Format:
    """What a question asks for besides its answer: "... as JSON", "in at most two sentences". Only plain orders count:
    "what does the table on page 3 list?" is none."""
    return _read(question, asked=True)


def joined(first: Format, second: Format) -> Format:
    """Both; the first wins where they differ."""
    return Format(
        shape=first.shape if first.shape != "plain" else second.shape,
        max_sentences=first.max_sentences or second.max_sentences,
        max_words=first.max_words or second.max_words,
    )


def limited(verdicts: Sequence[Verdict], limits: Format) -> list[Verdict]:
    """The first units that keep to the limits; headings and openings go first. A first sentence of too many words is
    cut, and says so by its dots."""
    if limits.max_sentences is None and limits.max_words is None:
        return list(verdicts)
    kept: list[Verdict] = []
    words = 0
    for verdict in verdicts:
        opens = verdict.unit.kind != "sentence" or verdict.unit.text.endswith(":")
        if opens and not verdict.states:
            continue
        count = len(verdict.unit.text.split())
        if limits.max_sentences is not None and len(kept) >= limits.max_sentences:
            break
        if limits.max_words is not None and words + count > limits.max_words:
            if not kept:
                kept.append(_cut(verdict, limits.max_words))
            break
        kept.append(verdict)
        words += count
    return kept


def shaped(verdicts: Sequence[Verdict], shape: Shape) -> list[Verdict]:
    """The units as bullet points or as the rows of a table; as they are where nothing is asked for."""
    if shape not in ("bullets", "table"):
        return list(verdicts)
    told = [one for one in verdicts if one.states or (one.unit.kind == "sentence" and not one.unit.text.endswith(":"))]
    if shape == "bullets":
        return [replace(one, unit=_one_line(one.unit, 0, "- ")) for one in told]
    head = [
        Verdict(Unit("head", 0, (Segment("| Statement | Source |"),))),
        Verdict(Unit("rule", 0, (Segment("| --- | --- |"),))),
    ]
    return head + [_as_row(one) for one in told]


def as_json(rendered: Rendered, statements: Sequence[tuple[str, Sequence[int]]]) -> str:
    """The answer as a JSON object: whole, and statement by statement with the numbers of its sources."""
    sources = [{"id": source.id, "name": source.name, "url": source.url} for source in rendered.sources]
    claims = [{"text": text, "citations": list(numbers)} for text, numbers in statements]
    body = {"answer": rendered.text or NOT_IN_DOCUMENTS, "statements": claims, "sources": sources}
    return json.dumps(body, ensure_ascii=False, indent=2)


def _read(text: str, *, asked: bool) -> Format:
    shape: Shape = next((s for s, word, order in _SHAPES if (order if asked else word).search(text)), "plain")
    sentences = words = None
    for match in _LIMIT.finditer(text):
        if asked and not re.match(r"\s*(?:at|no|max|up|within|under|h\u00f6gst|in|i)\b", match[0], re.IGNORECASE):
            continue
        count = max(1, _SMALL.get(match["count"].lower()) or int(match["count"]))
        if match["what"].lower().startswith(("sentence", "mening")):
            sentences = min(count, sentences or count)
        else:
            words = min(count, words or count)
    return Format(shape=shape, max_sentences=sentences, max_words=words)


def _cut(verdict: Verdict, words: int) -> Verdict:
    text = " ".join(verdict.unit.text.split()[:words])
    return _as_one(verdict, verdict.unit, f"{text.rstrip('.,;:')}\u2026")


def _as_one(verdict: Verdict, unit: Unit, text: str) -> Verdict:
    """The verdict with all it says as one segment that cites all it cites."""
    quotes = tuple(dict.fromkeys(quote for group in verdict.quotes for quote in group))
    return Verdict(replace(unit, segments=(Segment(text, unit.cites),)), (quotes,) if quotes else ())


def _one_line(unit: Unit, block: int, marker: str) -> Unit:
    if unit.kind == "row":
        cells = [cell.strip() for cell in unit.text.strip().strip("|").split("|")]
        return Unit("sentence", block, (Segment("; ".join(cells), unit.cites),), marker)
    segments = tuple(replace(one, text=" ".join(one.text.split())) for one in unit.segments)
    return Unit("sentence", block, segments, marker)


def _as_row(verdict: Verdict) -> Verdict:
    line = _one_line(verdict.unit, 0, "")
    text = line.text.replace("|", "\\|")
    return _as_one(verdict, Unit("row", 0, (), ""), f"| {text} |  |")
