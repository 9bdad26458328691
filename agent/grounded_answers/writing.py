"""From checked units to a `TailorOutput`: disagreements added, shape and limits kept, everything computed.

`write_by_rules` is the whole way without a model; `Tailoring.finish` the end of the way with one.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from agent.core.models import Source
from agent.grounded_answers.claims import Segment, Unit, says_absent
from agent.grounded_answers.confidence import confidence
from agent.grounded_answers.conflicts import Conflict, conflicts, differing
from agent.grounded_answers.follow_ups import follow_ups
from agent.grounded_answers.formats import Format, as_json, asked_format, joined, limited, read_format, shaped
from agent.grounded_answers.grounding import Ground, Verdict
from agent.grounded_answers.models import TailorInput, TailorOutput, document_name, place_name
from agent.grounded_answers.no_answer_text import get_no_answer_text, not_as_written
from agent.grounded_answers.passages import Quote
from agent.grounded_answers.personas import SENTENCES, extract, shown
from agent.grounded_answers.render import Rendered, render
from agent.grounded_answers.render import kept as standing

DISAGREE = "The sources disagree:"
NEAREST_SHARE = 0.5
"""Of the confidence in an answer that is only the nearest the documents say, or lacks a part."""
DATED = "It differs by year:"
DISAGREE_IN_SHORT = "In short, the sources disagree:"


@dataclass(frozen=True, slots=True)
class Tailored:
    """An answer, and the sources its numbers stand for."""

    output: TailorOutput
    sources: tuple[Source, ...] = ()


class Tailoring:
    """One answer in the making: its input, its ground, its format."""

    def __init__(
        self, wanted: TailorInput, *, run_id: str = "", known: Sequence[str] = (), seen: Sequence[Source] = ()
    ) -> None:
        self.wanted = wanted
        self.run_id = run_id
        self.seen = tuple(seen)
        self.ground = Ground(wanted.context_chunks, wanted.user_query, known)
        self.format = joined(read_format(wanted.formatting_instructions), asked_format(wanted.user_query))
        if wanted.persona == "Executive":
            self.format = joined(self.format, Format(max_sentences=SENTENCES["Executive"]))

    def by_rules(self) -> Tailored:
        """The answer from the passages' own sentences."""
        return self._told_by_rules(self._extracted())

    def instead(self) -> Tailored | None:
        """The passages' own sentences, opened with that nothing stands of what a model wrote; None where they do not
        answer all of the question without reserve."""
        units = self._extracted()
        if not units or any(unit.aside or says_absent(unit.unit.text) for unit in units):
            return None
        opening = Verdict(Unit("sentence", -1, (Segment(not_as_written(self.wanted.user_query)),)), aside=True)
        return self._told_by_rules([opening, *units])

    def _extracted(self) -> list[Verdict]:
        return extract(self.wanted, self.ground, whole_rows=self.format.shape == "table")

    def _told_by_rules(self, units: Sequence[Verdict]) -> Tailored:
        told = tuple(quote for unit in units for quote in _quotes(unit))
        sides = {side for one in self._conflicts(told) for side in (one.first, one.second)}
        if not self.wanted.topics and {quote for unit in units for quote in _quotes(unit)} & sides:
            # Said as a disagreement, they are not said once more each.
            others = [unit for unit in units if not set(_quotes(unit)) & sides]
            return self.finish(units, instead=others)
        return self.finish(units)

    def finish(
        self, kept: Sequence[Verdict], *, share: float = 1.0, instead: Sequence[Verdict] | None = None
    ) -> Tailored:
        """The answer of units that passed their checks; `share` is how much of what was written they are. `instead` is
        what is said of them beside the disagreements they touch."""
        stated = [verdict for verdict in kept if verdict.states and not verdict.aside]
        if not stated:
            return self.nothing()
        quotes = [quote for verdict in kept for quote in _quotes(verdict)]
        disagreeing = self._disagreements(stated, quotes)
        disagree = any(not one.unit.text.startswith(DATED) for one in disagreeing)
        units = self._formatted(kept if instead is None else standing(instead), disagreeing)
        rendered = self.rendered(units)
        content = rendered.text
        if self.format.shape == "json":
            content = as_json(rendered, [(unit_text(verdict), self._numbers(verdict, rendered)) for verdict in units])
        if any(verdict.aside for verdict in kept):
            share *= NEAREST_SHARE
        output = TailorOutput(
            content=content,
            citations=rendered.citations,
            tone_used=self.wanted.persona,
            follow_up_suggestions=follow_ups(self.wanted.user_query, quotes, self.ground),
            confidence_score=confidence(self.wanted.user_query, units, self.ground, disagree=disagree, kept=share),
        )
        return Tailored(output, rendered.sources)

    def rendered(self, units: Sequence[Verdict]) -> Rendered:
        """The units as text with citations."""
        return render(units, self.ground, self.run_id, self.seen)

    def nothing(self) -> Tailored:
        """The honest answer where the documents don't say."""
        clarify = self.wanted.clarify
        said = get_no_answer_text(self.wanted.user_query)
        said = f"{said} {clarify}" if clarify else said
        content = as_json(Rendered(""), [], self.wanted.user_query) if self.format.shape == "json" else said
        suggestions = follow_ups(self.wanted.user_query, [], self.ground)
        return Tailored(TailorOutput(content=content, tone_used=self.wanted.persona, follow_up_suggestions=suggestions))

    def _formatted(self, kept: Sequence[Verdict], disagreeing: Sequence[Verdict]) -> list[Verdict]:
        """The units and what the sources disagree about, within the limits: a disagreement is not what is left out."""
        limits = self.format
        if limits.max_words is not None:
            return shaped(limited([*disagreeing, *kept], limits), limits.shape)
        if limits.max_sentences is None or not disagreeing:
            return shaped([*limited(kept, limits), *disagreeing], limits.shape)
        room = limits.max_sentences - len(disagreeing)
        units = limited(kept, Format(max_sentences=room)) if room > 0 else []
        return shaped([*units, *disagreeing][: max(limits.max_sentences, 1)], limits.shape)

    def _disagreements(self, stated: Sequence[Verdict], quotes: Sequence[Quote]) -> list[Verdict]:
        """A sentence for each disagreement the answer touches and does not show itself."""
        found = []
        for number, conflict in enumerate(self._conflicts(quotes)):
            sides = [any(_overlap(quote, side) for quote in quotes) for side in (conflict.first, conflict.second)]
            if any(sides) and not any(_shows_both(verdict, conflict) for verdict in stated):
                found.append(self._disagreement(conflict, 10_000 + number))
        return found

    def _conflicts(self, quotes: Sequence[Quote]) -> list[Conflict]:
        """The disagreements among the passages, and those among what is said."""
        found = conflicts(self.ground.passages)
        known = {side for one in found for side in (one.first, one.second)}
        return found + [one for one in differing(self.ground.passages, quotes) if not {one.first, one.second} <= known]

    def _disagreement(self, conflict: Conflict, block: int) -> Verdict:
        first, second = (self._words(quote) for quote in (conflict.first, conflict.second))
        opening = DISAGREE_IN_SHORT if self.wanted.persona == "Executive" else DISAGREE
        opening = DATED if conflict.dated else opening
        segments = (
            Segment(f"{opening} {first}", (conflict.first.number,), ","),
            Segment(f"{'and' if conflict.dated else 'but'} {second}", (conflict.second.number,), "."),
        )
        return Verdict(Unit("sentence", block, segments), ((conflict.first,), (conflict.second,)))

    def _words(self, quote: Quote) -> str:
        """One side of a disagreement, with the document that says so; the technical reader is told the page too."""
        chunk = self.ground.chunks[quote.number - 1]
        said = f"\u201c{shown(chunk.content[quote.start : quote.end]).rstrip('. ')}\u201d"
        return f"{place_name(chunk) if self.wanted.persona == 'Technical' else document_name(chunk)}: {said}"

    def _numbers(self, verdict: Verdict, rendered: Rendered) -> list[int]:
        of = {(one.chunk_id, one.offset): one.number for one in rendered.citations}
        chunks = self.ground.chunks
        return list(dict.fromkeys(of[chunks[quote.number - 1].chunk_id, quote.start] for quote in _quotes(verdict)))


def write_by_rules(wanted: TailorInput, *, run_id: str = "") -> Tailored:
    """The answer to a question from its passages, without a model."""
    return Tailoring(wanted, run_id=run_id).by_rules()


def _quotes(verdict: Verdict) -> list[Quote]:
    return [quote for group in verdict.quotes for quote in group]


def unit_text(verdict: Verdict) -> str:
    """What a unit says, in one line."""
    return " ".join(verdict.unit.text.split())


def _overlap(one: Quote, other: Quote) -> bool:
    return one.number == other.number and one.start < other.end and other.start < one.end


def _shows_both(verdict: Verdict, conflict: Conflict) -> bool:
    """Whether one unit cites both sides already."""
    quotes = _quotes(verdict)
    return all(any(_overlap(quote, side) for quote in quotes) for side in (conflict.first, conflict.second))
