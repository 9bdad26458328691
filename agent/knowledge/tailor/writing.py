"""From checked units to a `TailorOutput`: disagreements added, shape and limits kept, everything computed.

`write_by_rules` is the whole way without a model; `Tailoring.finish` the end of the way with one.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from agent.core.models import Source
from agent.knowledge.models import NOT_IN_DOCUMENTS
from agent.knowledge.tailor.claims import Segment, Unit
from agent.knowledge.tailor.confidence import confidence
from agent.knowledge.tailor.conflicts import Conflict, conflicts
from agent.knowledge.tailor.follow_ups import follow_ups
from agent.knowledge.tailor.formats import Format, as_json, asked_format, joined, limited, read_format, shaped
from agent.knowledge.tailor.grounding import Ground, Verdict
from agent.knowledge.tailor.models import TailorInput, TailorOutput, place_name
from agent.knowledge.tailor.passages import Quote
from agent.knowledge.tailor.personas import SENTENCES, extract, shown
from agent.knowledge.tailor.render import Rendered, render
from agent.knowledge.tailor.render import kept as standing

DISAGREE = "The sources disagree:"
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
        units = extract(self.wanted, self.ground)
        sides = {side for one in conflicts(self.ground.passages) for side in (one.first, one.second)}
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
        stated = [verdict for verdict in kept if verdict.states]
        if not stated:
            return self.nothing()
        quotes = [quote for verdict in kept for quote in _quotes(verdict)]
        disagreeing = self._disagreements(stated, quotes)
        units = self._formatted(kept if instead is None else standing(instead), disagreeing)
        rendered = self.rendered(units)
        content = rendered.text
        if self.format.shape == "json":
            content = as_json(rendered, [(unit_text(verdict), self._numbers(verdict, rendered)) for verdict in units])
        output = TailorOutput(
            content=content,
            citations=rendered.citations,
            tone_used=self.wanted.persona,
            follow_up_suggestions=follow_ups(self.wanted.user_query, quotes, self.ground),
            confidence_score=confidence(
                self.wanted.user_query, units, self.ground, disagree=bool(disagreeing), kept=share
            ),
        )
        return Tailored(output, rendered.sources)

    def rendered(self, units: Sequence[Verdict]) -> Rendered:
        """The units as text with citations."""
        return render(units, self.ground, self.run_id, self.seen)

    def nothing(self) -> Tailored:
        """The honest answer where the documents don't say."""
        content = as_json(Rendered(""), []) if self.format.shape == "json" else NOT_IN_DOCUMENTS
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
        for number, conflict in enumerate(conflicts(self.ground.passages)):
            sides = [any(_overlap(quote, side) for quote in quotes) for side in (conflict.first, conflict.second)]
            if any(sides) and not any(_shows_both(verdict, conflict) for verdict in stated):
                found.append(self._disagreement(conflict, 10_000 + number))
        return found

    def _disagreement(self, conflict: Conflict, block: int) -> Verdict:
        first, second = (self._words(quote) for quote in (conflict.first, conflict.second))
        opening = DISAGREE_IN_SHORT if self.wanted.persona == "Executive" else DISAGREE
        segments = (
            Segment(f"{opening} {first}", (conflict.first.number,), ","),
            Segment(f"but {second}", (conflict.second.number,), "."),
        )
        return Verdict(Unit("sentence", block, segments), ((conflict.first,), (conflict.second,)))

    def _words(self, quote: Quote) -> str:
        """One side of a disagreement; the technical reader is told where it stands."""
        chunk = self.ground.chunks[quote.number - 1]
        said = f"\u201c{shown(chunk.content[quote.start : quote.end]).rstrip('. ')}\u201d"
        return f"{said} ({place_name(chunk)})" if self.wanted.persona == "Technical" else said

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
