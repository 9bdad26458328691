"""Formatting instructions that can be obeyed by rule, and the shapes they ask for. What else they say goes to the
model alone."""

import json
from collections.abc import Sequence
from dataclasses import replace

from agent.core.models import FrozenModel
from agent.grounded_answers.claims import Segment, Unit
from agent.grounded_answers.form_patterns import LIMIT, SHAPES, SMALL, Shape, is_order
from agent.grounded_answers.grounding import Verdict
from agent.grounded_answers.no_answer_text import get_no_answer_text
from agent.grounded_answers.render import Rendered


class Format(FrozenModel):
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
    words = sentences = 0
    for verdict in verdicts:
        if verdict.aside:
            kept.append(verdict)
            continue
        opens = verdict.unit.kind != "sentence" or verdict.unit.text.endswith(":")
        if opens and not verdict.states:
            continue
        count = len(verdict.unit.text.split())
        if limits.max_sentences is not None and sentences >= limits.max_sentences:
            continue
        if limits.max_words is not None and words + count > limits.max_words:
            if not words:
                kept.append(_cut(verdict, limits.max_words))
            words = limits.max_words
            continue
        kept.append(verdict)
        words, sentences = words + count, sentences + 1
    return kept


def shaped(verdicts: Sequence[Verdict], shape: Shape) -> list[Verdict]:
    """The units as bullet points or as the rows of a table; as they are where nothing is asked for."""
    if shape not in ("bullets", "table"):
        return list(verdicts)
    asides = [replace(one, unit=replace(one.unit, block=-1 - at)) for at, one in enumerate(verdicts) if one.aside]
    told = [
        one
        for one in verdicts
        if not one.aside and (one.states or (one.unit.kind == "sentence" and not one.unit.text.endswith(":")))
    ]
    if shape == "bullets":
        return asides + [replace(one, unit=_one_line(one.unit, 0, "- ")) for one in told]
    headed = {one.unit.block for one in verdicts if one.unit.kind == "head"}
    tables = [one for one in verdicts if one.unit.block in headed]  # they are what is asked for already
    others = [one for one in told if one.unit.block not in headed]
    if not others:
        return asides + tables
    head = [
        Verdict(Unit("head", 0, (Segment("| Statement | Source |"),))),
        Verdict(Unit("rule", 0, (Segment("| --- | --- |"),))),
    ]
    return asides + head + [_as_row(one) for one in others] + tables


def as_json(rendered: Rendered, statements: Sequence[tuple[str, Sequence[int]]], question: str = "") -> str:
    """The answer as a JSON object: whole, and statement by statement with the numbers of its sources. One that holds
    nothing says so in the question's language."""
    sources = [{"id": source.id, "name": source.name, "url": source.url} for source in rendered.sources]
    claims = [{"text": text, "citations": list(numbers)} for text, numbers in statements]
    body = {"answer": rendered.text or get_no_answer_text(question), "statements": claims, "sources": sources}
    return json.dumps(body, ensure_ascii=False, indent=2)


def _read(text: str, *, asked: bool) -> Format:
    shape: Shape = next((s for s, word, order in SHAPES if (order if asked else word).search(text)), "plain")
    sentences = words = None
    for match in LIMIT.finditer(text):
        if asked and not is_order(match[0]):
            continue
        count = max(1, SMALL.get(match["count"].lower()) or int(match["count"]))
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
