"""`summarize`: returns the most important sentences of a text, unchanged and in order. Uses no model."""

import asyncio
import math
from collections import Counter
from dataclasses import dataclass

from pydantic import Field

from agent.core.models import DeferredModel, JsonObject
from agent.text.terms import extract_query_terms
from agent.tools import CompleteMessages, PlanHints, ToolContext, ToolResult, TypedTool
from gateway.features.incident.engine.summary_rewriting import rewrite_summary
from gateway.features.incident.engine.text import cut_text, split_into_sentences
from gateway.features.incident.tools.entities import extract_entities

MAX_SENTENCES = 400
"""Sentences that are compared; of a longer text the first and the last ones."""
LAST_SENTENCES = 80
MAX_ENTITIES_COUNTED = 20
"""The number of entities that a summary should name: the most frequent ones."""
_POSITION_WEIGHT = 0.3
"""The bonus of the first sentence, falling to zero over the text: reports start with what matters."""
_ENTITY_WEIGHT = 0.5
"""The bonus for each entity that no selected sentence names, relative to an average sentence's score."""


class SummarizeInput(DeferredModel):
    """Arguments of `summarize`."""

    text: str = Field(max_length=1_000_000, description="the text; its first 100,000 characters count")
    max_words: int = Field(default=80, ge=5, le=1_000, description="words of the summary at most")


class SummarizeOutput(DeferredModel):
    """The summary. Its sentences are from the text; if none is short enough, the first one is cut."""

    summary: str
    words: int


class SummarizeTool(TypedTool[SummarizeInput, SummarizeOutput]):
    name = "summarize"
    description = "Summarize a text in its own sentences, the most important ones in their order, within max_words."
    is_opt_in = True
    keywords = ("summary", "summarize", "shorten", "brief", "tldr", "overview", "incident")
    hints = PlanHints(intent="summarize the request", heading="Summary", reads_request=True)

    async def run(self, args: SummarizeInput, context: ToolContext) -> SummarizeOutput:
        summary = await asyncio.to_thread(summarize, args.text, args.max_words)
        return SummarizeOutput(summary=summary, words=len(summary.split()))

    async def refine(
        self, value: JsonObject, args: JsonObject, complete: CompleteMessages
    ) -> tuple[ToolResult | None, str | None]:
        changed, problem = await rewrite_summary(value, args, complete)
        return None if changed is None else self.make_result(self.Output.model_validate(changed)), problem

    def format_text(self, output: SummarizeOutput) -> str:
        return output.summary or "The text is empty."


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A sentence and the features by which it is scored."""

    text: str
    words: int
    terms: frozenset[str]
    entities: frozenset[str]
    position_weight: float
    """1 for the first sentence, falling towards 0."""


def summarize(text: str, max_words: int) -> str:
    """The sentences with the best score for their length, as many as fit, in the order of the text."""
    text = cut_text(text)
    words = text.split()
    if len(words) <= max_words:
        return " ".join(words)
    candidates = _list_candidates(text)
    chosen = _select(candidates, max_words)
    if not chosen:  # no sentence is short enough
        return " ".join(words[:max_words])
    return " ".join(candidates[at].text for at in sorted(chosen))


def _list_candidates(text: str) -> list[_Candidate]:
    """The distinct sentences; of a long text those at both ends."""
    sentences = list(dict.fromkeys(" ".join(sentence.text.split()) for sentence in split_into_sentences(text)))
    if len(sentences) > MAX_SENTENCES:
        sentences = [*sentences[: MAX_SENTENCES - LAST_SENTENCES], *sentences[-LAST_SENTENCES:]]
    entities = sorted(extract_entities(text), key=lambda entity: -entity.count)[:MAX_ENTITIES_COUNTED]
    names = {entity.text.casefold() for entity in entities}
    return [
        _Candidate(
            sentence,
            len(sentence.split()),
            frozenset(extract_query_terms(sentence)),
            frozenset(name for name in names if name in sentence.casefold()),
            1 - at / len(sentences),
        )
        for at, sentence in enumerate(sentences)
    ]


def _select(candidates: list[_Candidate], max_words: int) -> list[int]:
    """Selects greedily the best sentence that fits. Terms that are already covered no longer count."""
    spread = Counter(term for one in candidates for term in one.terms)
    # A term of several sentences is the text's subject; a term of nearly all sentences says nothing.
    weights = {term: math.log(1 + count) * math.log(1 + len(candidates) / count) for term, count in spread.items()}
    average_weight = sum(weights[term] for one in candidates for term in one.terms) / (len(candidates) or 1)
    covered_terms, covered_entities, words_left = set[str](), set[str](), max_words
    chosen: list[int] = []
    remaining = set(range(len(candidates)))
    while remaining := {at for at in remaining if candidates[at].words <= words_left}:
        best = max(
            remaining,
            key=lambda at: (
                _score_candidate(candidates[at], weights, average_weight, covered_terms, covered_entities),
                -at,
            ),
        )
        one = candidates[best]
        if _score_candidate(one, weights, average_weight, covered_terms, covered_entities) <= 0:
            break
        chosen.append(best)
        remaining.remove(best)
        covered_terms |= one.terms
        covered_entities |= one.entities
        words_left -= one.words
    return chosen


def _score_candidate(
    one: _Candidate,
    weights: dict[str, float],
    average_weight: float,
    covered_terms: set[str],
    covered_entities: set[str],
) -> float:
    """The gain of a sentence over the selected ones, relative to its length."""
    new = sum(weights[term] for term in one.terms - covered_terms) + _ENTITY_WEIGHT * average_weight * len(
        one.entities - covered_entities
    )
    return new / math.sqrt(one.words + 3) * (1 + _POSITION_WEIGHT * one.position_weight)
