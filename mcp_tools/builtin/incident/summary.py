"""`summarize`: the sentences that say most of a text, word for word and in their order. No model is asked."""

import asyncio
import math
from collections import Counter
from dataclasses import dataclass

from pydantic import BaseModel, Field

from agent.knowledge.terms import query_terms
from agent.tools import ToolContext, TypedTool
from mcp_tools.builtin.incident.entities import entities_of
from mcp_tools.builtin.incident.text import read, sentences_of

MAX_SENTENCES = 400
"""Sentences that are compared; of a longer text, most of the first and some of the last."""
LAST_SENTENCES = 80
COUNTED_ENTITIES = 20
"""The entities that a summary should name: those the text names most often."""
_FIRST = 0.3
"""What standing first adds to a sentence, falling to nothing over the text: reports say what matters first."""
_ENTITY = 0.5
"""What naming an entity adds that no chosen sentence names, in shares of a usual sentence's worth."""


class SummarizeInput(BaseModel):
    """A text, and how long its summary may be."""

    text: str = Field(max_length=1_000_000, description="the text; its first 100,000 characters count")
    max_words: int = Field(default=80, ge=5, le=1_000, description="words of the summary at most")


class SummarizeOutput(BaseModel):
    """The summary. Its sentences stand in the text; only where none is short enough, the first one is cut."""

    summary: str
    words: int


class SummarizeTool(TypedTool[SummarizeInput, SummarizeOutput]):
    """Shortens a text."""

    name = "summarize"
    description = "Summarize a text in its own sentences, the most important ones in their order, within max_words."
    by_name = True
    keywords = ("summary", "summarize", "shorten", "brief", "tldr", "overview", "incident")
    Input = SummarizeInput
    Output = SummarizeOutput

    async def run(self, args: SummarizeInput, context: ToolContext) -> SummarizeOutput:
        """The summary."""
        summary = await asyncio.to_thread(summary_of, args.text, args.max_words)
        return SummarizeOutput(summary=summary, words=len(summary.split()))

    def text(self, output: SummarizeOutput) -> str:
        """The summary itself."""
        return output.summary or "The text is empty."


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A sentence with what it is judged by."""

    text: str
    words: int
    terms: frozenset[str]
    entities: frozenset[str]
    place: float
    """1 for the first sentence, falling towards 0."""


def summary_of(text: str, max_words: int) -> str:
    """The sentences worth most for their words, as many as fit, in the order of the text; repeated ones once."""
    text = read(text)
    words = text.split()
    if len(words) <= max_words:
        return " ".join(words)
    candidates = _candidates(text)
    chosen = _chosen(candidates, max_words)
    if not chosen:  # no sentence is short enough
        return " ".join(words[:max_words])
    return " ".join(candidates[at].text for at in sorted(chosen))


def _candidates(text: str) -> list[_Candidate]:
    """The distinct sentences, of a long text those at both ends."""
    found = list(dict.fromkeys(" ".join(sentence.text.split()) for sentence in sentences_of(text)))
    if len(found) > MAX_SENTENCES:
        found = [*found[: MAX_SENTENCES - LAST_SENTENCES], *found[-LAST_SENTENCES:]]
    entities = sorted(entities_of(text), key=lambda entity: -entity.count)[:COUNTED_ENTITIES]
    names = {entity.text.casefold() for entity in entities}
    return [
        _Candidate(
            sentence,
            len(sentence.split()),
            frozenset(query_terms(sentence)),
            frozenset(name for name in names if name in sentence.casefold()),
            1 - at / len(found),
        )
        for at, sentence in enumerate(found)
    ]


def _chosen(candidates: list[_Candidate], max_words: int) -> list[int]:
    """Greedy: the best sentence that fits. What it says counts no more for the others, so that the next says more."""
    spread = Counter(term for one in candidates for term in one.terms)
    # A term that several sentences share is what the text is about; one that nearly all share says nothing.
    weights = {term: math.log(1 + count) * math.log(1 + len(candidates) / count) for term, count in spread.items()}
    usual = sum(weights[term] for one in candidates for term in one.terms) / (len(candidates) or 1)
    said, named, left = set[str](), set[str](), max_words
    chosen: list[int] = []
    open_ = set(range(len(candidates)))
    while open_ := {at for at in open_ if candidates[at].words <= left}:
        best = max(open_, key=lambda at: (_worth(candidates[at], weights, usual, said, named), -at))
        one = candidates[best]
        if _worth(one, weights, usual, said, named) <= 0:
            break
        chosen.append(best)
        open_.remove(best)
        said |= one.terms
        named |= one.entities
        left -= one.words
    return chosen


def _worth(one: _Candidate, weights: dict[str, float], usual: float, said: set[str], named: set[str]) -> float:
    """What a sentence adds to what has been said, for the words it takes."""
    new = sum(weights[term] for term in one.terms - said) + _ENTITY * usual * len(one.entities - named)
    return new / math.sqrt(one.words + 3) * (1 + _FIRST * one.place)
