"""Units that passed their checks as the answer people read: renumbered citations, sources, nothing left hanging.

What is rendered of the first units is always the beginning of what is rendered of all: that is what may be streamed.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from agent.core.models import Source
from agent.grounded_answers.claims import Segment
from agent.grounded_answers.grounding import Ground, Verdict
from agent.grounded_answers.locate import citation
from agent.grounded_answers.models import SourceCitation, document_name
from agent.grounded_answers.passages import Quote
from agent.text.terms import fold


@dataclass(frozen=True, slots=True)
class Rendered:
    """An answer with its evidence. `sources[n - 1]` is what `[n]` cites, its quotes the cited words."""

    text: str
    citations: tuple[SourceCitation, ...] = ()
    sources: tuple[Source, ...] = ()


def kept(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """What stays of an answer: what passed, once each, without headings and openings that nothing follows.

    Nothing stays where nothing is left that rests on a passage or a known result."""
    seen: set[str] = set()
    passed: list[Verdict] = []
    for verdict in verdicts:
        said = " ".join(fold(verdict.unit.text).split())
        if verdict.problem or (verdict.unit.kind == "sentence" and said in seen):
            continue
        seen.add(said)
        passed.append(verdict)
    rows = {verdict.unit.block for verdict in passed if verdict.unit.kind == "row"}
    passed = [one for one in passed if one.unit.kind not in ("head", "rule") or one.unit.block in rows]
    stated = [verdict.states for verdict in passed]
    if not any(stated):
        return []
    last = max(at for at, states in enumerate(stated) if states)
    return [verdict for at, verdict in enumerate(passed) if stated[at] or verdict.aside or not _hangs(passed, at, last)]


def presentable(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """The part of an unfinished answer that may be shown: up to the first unit that failed, and not beyond the last
    one that states something; whole tables only."""
    ahead: list[Verdict] = []
    for verdict in verdicts:
        if verdict.problem:
            break
        ahead.append(verdict)
    while ahead and (not ahead[-1].states or ahead[-1].unit.kind == "row"):
        ahead.pop()
    shown = kept(ahead)
    while shown and not shown[-1].states:  # the statement behind it had been made before, and what follows may differ
        shown.pop()
    return shown


def render(verdicts: Sequence[Verdict], ground: Ground, run_id: str = "", shown: Sequence[Source] = ()) -> Rendered:
    """The text with its citations, numbered in the order in which the sources are first cited. `shown` are sources that
    readers have seen already, of an attempt that broke off: they keep their numbers."""
    numbers = {(source.name, _bare(source.url)): source.id for source in shown}
    citations: dict[tuple[int, int, int], SourceCitation] = {}
    for quote in (quote for verdict in verdicts for quotes in verdict.quotes for quote in quotes):
        chunk = ground.chunks[quote.number - 1]
        number = numbers.setdefault(_source_key(quote, ground), len(numbers) + 1)
        citations.setdefault(quote_key(quote), citation(chunk, quote.start, quote.end, number=number, run_id=run_id))
    parts: list[str] = []
    for at, verdict in enumerate(verdicts):
        parts.append(_gap(verdicts[at - 1], verdict) if at else "")
        parts.append(_shown(verdict, lambda quote: numbers[_source_key(quote, ground)]))
    found = tuple(citations.values())
    return Rendered("".join(parts), found, _sources(found, numbers, shown))


def quote_key(quote: Quote) -> tuple[int, int, int]:
    """What tells a quote from all others of the answer."""
    return quote.number, quote.start, quote.end


def _sources(
    citations: Sequence[SourceCitation], numbers: dict[tuple[str, str | None], int], shown: Sequence[Source]
) -> tuple[Source, ...]:
    found = []
    for (name, _), number in numbers.items():
        own = [one for one in citations if one.number == number]
        if not own:
            found += [source for source in shown if source.id == number]
            continue
        quotes = tuple(dict.fromkeys(one.text_snippet for one in own))
        found.append(Source(id=number, name=name, url=own[0].url, quotes=quotes))
    return tuple(found)


def _hangs(passed: Sequence[Verdict], at: int, last: int) -> bool:
    """Whether a heading or an opening ("These are the rules:") has lost what it opened."""
    unit = passed[at].unit
    opens = unit.kind == "heading" or unit.text.rstrip().endswith(":")
    if not opens or at > last:
        return opens
    if unit.kind != "heading":
        return passed[at + 1].unit.block > unit.block + 2
    for later in passed[at + 1 :]:
        if later.states:
            return False
        if later.unit.kind == "heading" and _level(later.unit.text) <= _level(unit.text):
            return True
    return True


def _level(heading: str) -> int:
    marks = len(heading) - len(heading.lstrip("#"))
    return marks or 7


def _gap(before: Verdict, after: Verdict) -> str:
    """What stands between two units: a space in a paragraph, a line end in a list or table, else a blank line."""
    if before.unit.block != after.unit.block:
        return "\n\n"
    return " " if after.unit.kind == "sentence" and not after.unit.marker else "\n"


def _shown(verdict: Verdict, number_of: Callable[[Quote], int]) -> str:
    unit = verdict.unit
    if not verdict.quotes:
        return f"{unit.marker}{unit.text}"
    marked = [
        (segment, "".join(f"[{n}]" for n in dict.fromkeys(map(number_of, quotes))))
        for segment, quotes in zip(unit.segments, verdict.quotes, strict=True)
    ]
    if unit.kind == "row":
        text = unit.text.rstrip()
        return f"{text[:-1].rstrip()} {marked[-1][1]} |" if text.endswith("|") else f"{text} {marked[-1][1]}"
    if unit.kind == "code":
        return f"{unit.text}\n{marked[-1][1]}"
    parts = [f"{segment.text} {marks}{segment.tail}" for segment, marks in _merged(marked)]
    return f"{unit.marker}{' '.join(parts)}"


def _merged(marked: Sequence[tuple[Segment, str]]) -> list[tuple[Segment, str]]:
    """Neighbouring segments with the same citations as one: "Both have it [1]." and not "Both [1] have it [1]."."""
    joined: list[tuple[Segment, str]] = []
    for segment, marks in marked:
        if joined and joined[-1][1] == marks:
            before = joined[-1][0]
            text = f"{before.text}{before.tail} {segment.text}".strip()
            joined[-1] = (Segment(text, segment.cites, segment.tail), marks)
        else:
            joined.append((segment, marks))
    return joined


def _source_key(quote: Quote, ground: Ground) -> tuple[str, str | None]:
    """A source is a page of a document."""
    chunk = ground.chunks[quote.number - 1]
    page = citation(chunk, quote.start, quote.end, number=1).page
    name = document_name(chunk)
    return f"{name}, page {page}" if page is not None else name, _bare(chunk.source_url)


def _bare(url: str | None) -> str | None:
    """An address without its page."""
    return url.partition("#")[0] if url else None
