"""Renders supported units as text with numbered citations and sources.

The text of the first units is always a prefix of the text of all units, so that it can be streamed.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from agent.core.models import Source, SourceCitation
from gateway.features.documents.engine.grounded_answers.answer_units import Segment
from gateway.features.documents.engine.grounded_answers.evidence_checker import CheckedUnit, EvidenceChecker
from gateway.features.documents.engine.grounded_answers.locate import make_citation
from gateway.features.documents.engine.grounded_answers.models import Quote


@dataclass(frozen=True, slots=True)
class Rendered:
    """An answer with its evidence: `[n]` cites the source with id `n`, whose quotes are the cited words."""

    text: str
    citations: dict[Quote, SourceCitation] = field(default_factory=dict)
    sources: tuple[Source, ...] = ()

    def list_numbers(self, quotes: Iterable[Quote]) -> list[int]:
        """The numbers of the sources of some quotes, each once."""
        return list(dict.fromkeys(self.citations[quote].number for quote in quotes))


def select_supported(checked: Iterable[CheckedUnit]) -> list[CheckedUnit]:
    """The units that passed, each sentence once, without headings and openings that nothing follows.

    Returns none if no unit states a fact."""
    seen: set[str] = set()
    passed: list[CheckedUnit] = []
    for one in checked:
        if one.problem or one.is_open or (one.unit.kind == "sentence" and one.unit.folded in seen):
            continue
        seen.add(one.unit.folded)
        passed.append(one)
    rows = {one.unit.block for one in passed if one.unit.kind == "row"}
    passed = [one for one in passed if one.unit.kind not in ("head", "rule") or one.unit.block in rows]
    facts = [at for at, one in enumerate(passed) if one.states_fact]
    if not facts:
        return []
    return [
        one
        for at, one in enumerate(passed)
        if one.states_fact or one.is_notice or not _introduces_nothing(passed, at, facts[-1])
    ]


def select_presentable(checked: Sequence[CheckedUnit]) -> list[CheckedUnit]:
    """The units of an unfinished answer that may be shown.

    These are the units before the first that failed or is open, up to the last that states a fact. Tables are shown
    whole."""
    ready: list[CheckedUnit] = []
    for one in checked:
        if one.problem or one.is_open:
            break
        ready.append(one)
    while ready and (not ready[-1].states_fact or ready[-1].unit.kind == "row"):
        ready.pop()
    supported = select_supported(ready)
    while (
        supported and not supported[-1].states_fact
    ):  # the fact behind it was a repetition, and what follows may differ
        supported.pop()
    return supported


def render(
    units: Sequence[CheckedUnit], checker: EvidenceChecker, run_id: str = "", shown: Sequence[Source] = ()
) -> Rendered:
    """The text with citations, numbered in the order in which sources are first cited.

    `shown` are sources that readers have seen in an attempt that broke off. They keep their numbers."""
    numbers = {(source.name, _strip_fragment(source.url)): source.id for source in shown}
    citations: dict[Quote, SourceCitation] = {}
    for quote in (quote for one in units for quote in one.list_quotes()):
        cited = make_citation(checker.chunks[quote.number - 1], quote.start, quote.end, run_id=run_id)
        name = cited.source if cited.page is None else f"{cited.source}, page {cited.page}"
        number = numbers.setdefault((name, _strip_fragment(cited.url)), len(numbers) + 1)
        citations[quote] = cited.model_copy(update={"number": number})
    rendered = Rendered("", citations, _list_sources(tuple(citations.values()), numbers, shown))
    parts: list[str] = []
    for at, one in enumerate(units):
        parts.append(_get_separator(units[at - 1], one) if at else "")
        parts.append(_format_unit(one, rendered))
    return replace(rendered, text="".join(parts))


def _list_sources(
    citations: Sequence[SourceCitation], numbers: dict[tuple[str, str | None], int], shown: Sequence[Source]
) -> tuple[Source, ...]:
    sources = []
    for (name, _), number in numbers.items():
        own = [one for one in citations if one.number == number]
        if not own:
            sources += [source for source in shown if source.id == number]
            continue
        quotes = tuple(dict.fromkeys(one.text_snippet for one in own))
        sources.append(Source(id=number, name=name, url=own[0].url, quotes=quotes))
    return tuple(sources)


def _introduces_nothing(passed: Sequence[CheckedUnit], at: int, last: int) -> bool:
    """Whether a heading or an opening ("These are the rules:") has lost what it introduced."""
    unit = passed[at].unit
    introduces = unit.kind == "heading" or unit.text.rstrip().endswith(":")
    if not introduces or at > last:
        return introduces
    if unit.kind != "heading":
        return passed[at + 1].unit.block > unit.block + 2
    for later in passed[at + 1 :]:
        if later.states_fact:
            return False
        if later.unit.kind == "heading" and _get_level(later.unit.text) <= _get_level(unit.text):
            return True
    return True


def _get_level(heading: str) -> int:
    marks = len(heading) - len(heading.lstrip("#"))
    return marks or 7


def _get_separator(before: CheckedUnit, after: CheckedUnit) -> str:
    """A space within a paragraph, a line end within a list or table, else a blank line."""
    if before.unit.block != after.unit.block:
        return "\n\n"
    return " " if after.unit.kind == "sentence" and not after.unit.marker else "\n"


def _format_unit(checked: CheckedUnit, rendered: Rendered) -> str:
    unit = checked.unit
    if not checked.quotes:
        return f"{unit.marker}{unit.text}"
    marked = [
        (segment, "".join(f"[{number}]" for number in rendered.list_numbers(quotes)))
        for segment, quotes in zip(unit.segments, checked.quotes, strict=True)
    ]
    if unit.kind == "row":
        text = unit.marker + unit.text.rstrip()
        return f"{text[:-1].rstrip()} {marked[-1][1]} |" if text.endswith("|") else f"{text} {marked[-1][1]}"
    if unit.kind == "code":
        return f"{unit.text}\n{marked[-1][1]}"
    parts = [f"{segment.text} {marks}{segment.tail}" for segment, marks in _merge_segments(marked)]
    return f"{unit.marker}{' '.join(parts)}"


def _merge_segments(marked: Sequence[tuple[Segment, str]]) -> list[tuple[Segment, str]]:
    """Joins neighbouring segments with the same citations: "Both have it [1]." instead of "Both [1] have it [1]."."""
    joined: list[tuple[Segment, str]] = []
    for segment, marks in marked:
        if joined and joined[-1][1] == marks:
            before = joined[-1][0]
            text = f"{before.text}{before.tail} {segment.text}".strip()
            joined[-1] = (Segment(text, segment.cites, segment.tail), marks)
        else:
            joined.append((segment, marks))
    return joined


def _strip_fragment(url: str | None) -> str | None:
    """An address without its page."""
    return url.partition("#")[0] if url else None
