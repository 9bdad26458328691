"""Formats that rules can produce: JSON, lists, tables, and limits of sentences and words.

All other formatting instructions go to the model alone.
"""

import json
from collections.abc import Sequence
from dataclasses import replace

from agent.core.models import FrozenModel
from agent.text.requested_form import LIMIT, SHAPES, SMALL, Shape, is_instruction
from gateway.features.documents.engine.grounded_answers.answer_units import Segment, Unit
from gateway.features.documents.engine.grounded_answers.evidence_checker import CheckedUnit
from gateway.features.documents.engine.grounded_answers.render import Rendered


class Format(FrozenModel):
    """The requested form of an answer."""

    shape: Shape = "plain"
    max_sentences: int | None = None
    max_words: int | None = None

    @property
    def is_plain(self) -> bool:
        """Whether the answer may be streamed as the model writes it."""
        return self == Format()


def merge_formats(first: Format, second: Format) -> Format:
    """Both formats in one; the first wins."""
    return Format(
        shape=first.shape if first.shape != "plain" else second.shape,
        max_sentences=first.max_sentences or second.max_sentences,
        max_words=first.max_words or second.max_words,
    )


def limit_units(units: Sequence[CheckedUnit], limits: Format) -> list[CheckedUnit]:
    """The first units within the limits, without headings and openings. A first sentence of too many words is
    cut, and ends with an ellipsis."""
    if limits.max_sentences is None and limits.max_words is None:
        return list(units)
    kept_units: list[CheckedUnit] = []
    words = sentences = 0
    for checked in units:
        if checked.is_notice:
            kept_units.append(checked)
            continue
        opens = checked.unit.kind != "sentence" or checked.unit.text.endswith(":")
        if opens and not checked.states_fact:
            continue
        count = len(checked.unit.text.split())
        if limits.max_sentences is not None and sentences >= limits.max_sentences:
            continue
        if limits.max_words is not None and words + count > limits.max_words:
            if not words:
                kept_units.append(_cut_unit(checked, limits.max_words))
            words = limits.max_words
            continue
        kept_units.append(checked)
        words, sentences = words + count, sentences + 1
    return kept_units


def shape_units(units: Sequence[CheckedUnit], shape: Shape) -> list[CheckedUnit]:
    """The units as bullet points or table rows; unchanged for other shapes."""
    if shape not in ("bullets", "table"):
        return list(units)
    notices = [replace(one, unit=replace(one.unit, block=-1 - at)) for at, one in enumerate(units) if one.is_notice]
    facts = [
        one
        for one in units
        if not one.is_notice and (one.states_fact or (one.unit.kind == "sentence" and not one.unit.introduces))
    ]
    if shape == "bullets":
        return notices + [replace(one, unit=_flatten_unit(one.unit, "- ")) for one in facts]
    headed = {one.unit.block for one in units if one.unit.kind == "head"}
    tables = [one for one in units if one.unit.block in headed]  # tables stay as they are
    others = [one for one in facts if one.unit.block not in headed]
    if not others:
        return notices + tables
    head = [
        CheckedUnit(Unit("head", 0, (Segment("| Statement | Source |"),))),
        CheckedUnit(Unit("rule", 0, (Segment("| --- | --- |"),))),
    ]
    return notices + head + [_make_row(one) for one in others] + tables


def format_json(rendered: Rendered, units: Sequence[CheckedUnit], no_answer: str) -> str:
    """The answer as a JSON object: whole, and statement by statement with the numbers of its sources.

    `no_answer` is its text if nothing was found."""
    sources = [{"id": source.id, "name": source.name, "url": source.url} for source in rendered.sources]
    claims = [
        {"text": _flatten_unit(one.unit).text, "citations": rendered.list_numbers(one.list_quotes())}
        for one in units
        if one.states_fact
    ]
    body = {"answer": rendered.text or no_answer, "statements": claims, "sources": sources}
    return json.dumps(body, ensure_ascii=False, indent=2)


def read_format(text: str, *, is_question: bool = False) -> Format:
    """The format that instructions ask for, or a question: "... as JSON", "in at most two sentences".

    Of a question, only instructions count: "what does the table on page 3 list?" is none."""
    shape: Shape = next((s for s, word, order in SHAPES if (order if is_question else word).search(text)), "plain")
    sentences = words = None
    for match in LIMIT.finditer(text):
        if is_question and not is_instruction(match[0]):
            continue
        count = max(1, SMALL.get(match["count"].lower()) or int(match["count"]))
        if match["what"].lower().startswith(("sentence", "mening")):
            sentences = min(count, sentences or count)
        else:
            words = min(count, words or count)
    return Format(shape=shape, max_sentences=sentences, max_words=words)


def _cut_unit(checked: CheckedUnit, words: int) -> CheckedUnit:
    text = " ".join(checked.unit.text.split()[:words])
    return _join_segments(checked, checked.unit, f"{text.rstrip('.,;:')}\u2026")


def _join_segments(checked: CheckedUnit, unit: Unit, text: str) -> CheckedUnit:
    """The unit with another text, as one segment with all citations."""
    quotes = tuple(dict.fromkeys(quote for group in checked.quotes for quote in group))
    return CheckedUnit(replace(unit, segments=(Segment(text, unit.cites),)), (quotes,) if quotes else ())


def _flatten_unit(unit: Unit, marker: str = "") -> Unit:
    """The unit in one line; a table row with semicolons between its cells."""
    if unit.kind == "row":
        cells = [cell.strip() for cell in unit.text.strip().strip("|").split("|")]
        return Unit("sentence", 0, (Segment("; ".join(cells), unit.cites),), marker)
    segments = tuple(replace(one, text=" ".join(one.text.split())) for one in unit.segments)
    return Unit("sentence", 0, segments, marker)


def _make_row(checked: CheckedUnit) -> CheckedUnit:
    text = _flatten_unit(checked.unit).text.replace("|", "\\|")
    return _join_segments(checked, Unit("row", 0, ()), f"| {text} |  |")
