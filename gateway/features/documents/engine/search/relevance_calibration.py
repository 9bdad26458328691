"""Measures from which relevance a passage of a collection has to do with a query.

Queries are made of words of sampled passages. The relevance that they reach in other documents is that of passages
which share words with a query by chance; the threshold is above nine tenths of it. It depends on the collection, on the
language of the query and on the search mode: in a collection about one subject, most passages share words.
"""

import logging
import re
from collections.abc import Sequence
from time import monotonic

from agent.core.models import RetrievalMode
from agent.text.stop_words import detect_language, detect_question_language
from agent.text.terms import is_keywords, map_query_terms
from gateway.features.documents.engine.search.errors import MemoryNoResultsError
from gateway.features.documents.engine.search.lexical import LexicalIndex, Passage
from gateway.features.documents.engine.search.measured_values import MeasuredValues
from gateway.features.documents.engine.search.models import MemoryQuery
from gateway.features.documents.engine.search.retriever import Retriever

log = logging.getLogger(__name__)

DEFAULT_THRESHOLD = 0.4
"""Keeps 96 to 100 % of the answerable questions of three labelled sets, and refuses two thirds of foreign ones."""
KEYWORDS_EASE = 0.1
"""How much lower the threshold of a query without small words is: "hotel price limit" is a search, whose words are
alternatives, so that a passage with a third of them is worth showing."""
MIN_THRESHOLD, MAX_THRESHOLD = DEFAULT_THRESHOLD, 0.5
QUANTILE = 0.9
PRIOR_SAMPLES = 8.0
"""The number of samples that the default threshold counts for."""
MIN_SAMPLES, MAX_SAMPLES = 6, 16
QUERY_TERMS = 4
"""Words of a query: those that a question has besides its small words."""
MIN_QUERY_TERMS = 3
MIN_SENTENCE_WORDS = 6
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n\s*\n")


class RelevanceCalibration:
    """Calibrates the relevance threshold, once per hour for each collection, language and search mode."""

    def __init__(self, retriever: Retriever, lexical: LexicalIndex) -> None:
        self._retriever = retriever
        self._lexical = lexical
        self._thresholds = MeasuredValues[tuple[str, str, str, RetrievalMode], float](monotonic)

    async def get_threshold(self, owner: str, collection: str, query: str, mode: RetrievalMode) -> float:
        """The least relevance for a query; the default if too few passages are in its language, if it has one.

        Raises `BadRequestError` and `StoreError` as a search does."""
        language = detect_question_language(query)

        async def measure() -> float:
            threshold = compute_threshold(await self._measure(owner, collection, language, mode))
            log.info("relevance threshold of %s, language %r, %s: %.2f", collection, language, mode, threshold)
            return threshold

        threshold = await self._thresholds.get((owner, collection, language, mode), measure)
        return threshold - (KEYWORDS_EASE if is_keywords(query) else 0.0)

    async def _measure(self, owner: str, collection: str, language: str, mode: RetrievalMode) -> list[float]:
        """For each sampled passage the best relevance of its words in another document."""
        passages = await self._lexical.sample(collection, owner=owner, limit=20 * MAX_SAMPLES)
        alike = [one for one in passages if not language or detect_language(one.text) == language]
        chance: list[float] = []
        for passage in alike[:: max(1, len(alike) // MAX_SAMPLES)][:MAX_SAMPLES]:
            query = _make_query(passage)
            if not query or len(alike) < MIN_SAMPLES:
                continue
            wanted = MemoryQuery(query_text=query, top_k=10, min_relevance_score=0)
            try:
                output = await self._retriever.search(wanted, collection=collection, owner=owner, mode=mode)
            except MemoryNoResultsError:
                continue
            others = (one.relevance_score for one in output.results if one.source_id != passage.document_id)
            chance.append(max(others, default=0.0))
        return chance


def compute_threshold(chance: Sequence[float]) -> float:
    """The threshold above `QUANTILE` of the relevances by chance, drawn towards the default by few samples."""
    if len(chance) < MIN_SAMPLES:
        return DEFAULT_THRESHOLD
    quantile = sorted(chance)[min(len(chance) - 1, int(QUANTILE * len(chance)))]
    threshold = (len(chance) * quantile + PRIOR_SAMPLES * DEFAULT_THRESHOLD) / (len(chance) + PRIOR_SAMPLES)
    return min(MAX_THRESHOLD, max(MIN_THRESHOLD, threshold))


def _make_query(passage: Passage) -> str:
    """Every other word of a sentence from the middle of a passage, or an empty string if it has too few."""
    sentences = [one for one in _SENTENCE_END.split(passage.text) if len(one.split()) >= MIN_SENTENCE_WORDS]
    if not sentences:
        return ""
    chosen = list(map_query_terms(sentences[len(sentences) // 2]).values())[::2][:QUERY_TERMS]
    return " ".join(chosen) if len(chosen) >= MIN_QUERY_TERMS else ""
