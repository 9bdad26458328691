"""`AnswerBuilder`: makes a `TailorOutput` from checked units; computes format, citations and confidence."""

from collections.abc import Sequence
from dataclasses import dataclass

from agent.answers.evidence import get_no_answer_text
from agent.core.models import Source, TailorOutput
from gateway.features.documents.engine.grounded_answers.answer_units import Segment, Unit
from gateway.features.documents.engine.grounded_answers.confidence import compute_confidence
from gateway.features.documents.engine.grounded_answers.evidence_checker import CheckedUnit, EvidenceChecker
from gateway.features.documents.engine.grounded_answers.follow_ups import suggest_follow_ups
from gateway.features.documents.engine.grounded_answers.formats import (
    Format,
    format_json,
    limit_units,
    merge_formats,
    read_format,
    shape_units,
)
from gateway.features.documents.engine.grounded_answers.models import TailorInput
from gateway.features.documents.engine.grounded_answers.no_answer_text import (
    get_absent_text,
    get_closest_text,
    get_doubtful_text,
    get_follow_up_text,
    get_left_out_text,
    get_unchecked_text,
)
from gateway.features.documents.engine.grounded_answers.passage_quotes import list_quotations, list_unanswered
from gateway.features.documents.engine.grounded_answers.render import Rendered, render

EXECUTIVE_SENTENCES = 3
NOTICE_BLOCK = 1_000_000_000
"""The block of sentences about the answer, which stand at its end."""
OPENING_BLOCK = -1
"""The block of the sentence that introduces doubtful quotations."""
CERTAIN_RELEVANCE = 0.6
"""With less, half of a question's words are missing in the best passage, and it is about as often beside the question
as it answers it (the labelled company questions)."""


@dataclass(frozen=True, slots=True)
class BuiltAnswer:
    """An answer, and the sources of its citations."""

    output: TailorOutput
    sources: tuple[Source, ...] = ()


class AnswerBuilder:
    """Builds one answer. `known` are tool results without a source, `seen` the sources of an interrupted attempt."""

    def __init__(
        self, request: TailorInput, *, run_id: str = "", known: Sequence[str] = (), seen: Sequence[Source] = ()
    ) -> None:
        self.request = request
        self.checker = EvidenceChecker(request.context_chunks, request.user_query, known)
        self.format = merge_formats(
            read_format(request.formatting_instructions or ""), read_format(request.user_query, is_question=True)
        )
        if request.persona == "Executive":
            self.format = merge_formats(self.format, Format(max_sentences=EXECUTIVE_SENTENCES))
        self._run_id = run_id
        self._seen = tuple(seen)

    def quote_passages(self) -> BuiltAnswer:
        """The answer without a model: the best passages verbatim, or that the documents do not say."""
        by_sentence = self.format.shape != "plain" or self.format.max_words is not None
        by_sentence = by_sentence or (self.format.max_sentences is not None and self.request.persona != "Executive")
        limit = self.format.max_sentences or (1 if self.format.max_words is not None else None)
        units = list_quotations(self.request, self.checker, by_sentence=by_sentence, limit=limit)
        if not units:
            return self.say_not_in_documents()
        units = [*units, *self._list_gaps(units)]
        best = max(chunk.relevance_score for chunk in self.request.context_chunks)
        if best < CERTAIN_RELEVANCE or self.request.is_closest:
            text = get_closest_text(self.request.user_query)
            unknown = get_no_answer_text(self.request.user_query, "unknown")
            text = f"{unknown} {text}" if self.request.is_closest else text
            closest = Unit("sentence", OPENING_BLOCK, (Segment(text),))
            units = [CheckedUnit(closest, is_notice=True), *units]
        if self.request.follows:
            follow_up_text = get_follow_up_text(self.request.user_query, self.request.follows)
            units = [CheckedUnit(Unit("sentence", OPENING_BLOCK, (Segment(follow_up_text),)), is_notice=True), *units]
        return self.build(units)

    def build(
        self, units: Sequence[CheckedUnit], *, left_out: int = 0, written: int = 0, is_unchecked: bool = False
    ) -> BuiltAnswer:
        """The answer of supported units; without any, that the documents do not say.

        `left_out` of `written` claims failed their checks and are mentioned. `is_unchecked` says that the meaning of
        the claims was not checked.
        """
        if not any(one.states_fact for one in units):
            return self.say_not_in_documents()
        question = self.request.user_query
        formatted = self._format_units([*units, *self._make_notices(left_out, is_unchecked=is_unchecked)])
        rendered = self.render(formatted)
        is_json = self.format.shape == "json"
        content = format_json(rendered, formatted, get_no_answer_text(question)) if is_json else rendered.text
        quotes = [quote for one in units for quote in one.list_quotes()]
        kept_share = 1 - left_out / written if written else 1.0
        output = TailorOutput(
            content=content,
            citations=tuple(rendered.citations.values()),
            tone_used=self.request.persona,
            follow_up_suggestions=suggest_follow_ups(question, quotes, self.checker),
            confidence_score=compute_confidence(question, formatted, self.checker, kept=max(0.0, kept_share)),
        )
        return BuiltAnswer(output, rendered.sources)

    def render(self, units: Sequence[CheckedUnit]) -> Rendered:
        """The units as text with citations."""
        return render(units, self.checker, self._run_id, self._seen)

    def say_not_in_documents(self) -> BuiltAnswer:
        """The answer that the documents do not say, with a clarifying question if there is one."""
        text = get_no_answer_text(self.request.user_query)
        return self._build_without_claims(f"{text} {self.request.clarify}" if self.request.clarify else text)

    def say_unknown(self) -> BuiltAnswer:
        """The answer "I don't know": no claim of the model's answer is supported."""
        return self._build_without_claims(get_no_answer_text(self.request.user_query, "unknown"))

    def _build_without_claims(self, text: str) -> BuiltAnswer:
        content = format_json(Rendered(""), [], text) if self.format.shape == "json" else text
        suggestions = suggest_follow_ups(self.request.user_query, [], self.checker)
        return BuiltAnswer(
            TailorOutput(content=content, tone_used=self.request.persona, follow_up_suggestions=suggestions)
        )

    def _list_gaps(self, units: Sequence[CheckedUnit]) -> list[CheckedUnit]:
        """The sentences that name what the message asks for besides and the quotations do not hold."""
        absent, doubtful = list_unanswered(self.request, self.checker, units)
        question = self.request.user_query
        texts = [get_absent_text(question, absent)] if absent else []
        texts += [get_doubtful_text(question, doubtful)] if doubtful else []
        return [CheckedUnit(Unit("sentence", NOTICE_BLOCK, (Segment(text),)), is_notice=True) for text in texts]

    def _make_notices(self, left_out: int, *, is_unchecked: bool) -> list[CheckedUnit]:
        """The sentences about the answer itself: what was left out, and what was not checked."""
        texts = [get_left_out_text(self.request.user_query, left_out)] if left_out else []
        texts += [get_unchecked_text(self.request.user_query)] if is_unchecked else []
        return [CheckedUnit(Unit("sentence", NOTICE_BLOCK, (Segment(text),)), is_notice=True) for text in texts]

    def _format_units(self, units: Sequence[CheckedUnit]) -> list[CheckedUnit]:
        return shape_units(limit_units(units, self.format), self.format.shape)


def quote_passages(request: TailorInput, *, run_id: str = "") -> BuiltAnswer:
    """The answer to a question without a model."""
    return AnswerBuilder(request, run_id=run_id).quote_passages()
