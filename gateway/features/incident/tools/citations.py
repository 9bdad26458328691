"""The sources of a brief: their sentences, and the numbers under which they are cited."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from agent.text.terms import extract_query_terms, extract_terms
from gateway.features.documents.engine.search.models import RetrievedContext
from gateway.features.incident.engine.evidence import TICKET_FIELDS, format_title, get_metadata_text, is_policy
from gateway.features.incident.engine.instructions import is_instruction
from gateway.features.incident.engine.text import split_into_sentences

MIN_SENTENCE_WORDS = 4
"""Shorter lines are headings and table cells."""
_TICKETS = frozenset({"ticket", "incident"})
_LABEL = re.compile(r"(?P<label>[A-Z][A-Za-z ]{1,30}):\s+")
_CAUSE = re.compile(
    r"\b(?:root\scause|caused?\sby|causes?\s(?:is|was|seen)|due\sto|because|triggered\sby|result(?:ed|s)?\s(?:of|from)|led\sto|"
    r"traced\s(?:back\s)?to|(?:frequent|usual)\scause)\b",
    re.IGNORECASE,
)
_CAUSE_LABEL = re.compile(r"(?:root |probable )?causes?", re.IGNORECASE)
_REMEDY_LABEL = re.compile(r"(?:resolution|workaround|fix|mitigation|solution|close notes)", re.IGNORECASE)
_ESCALATE = re.compile(
    r"\b(?:escalat(?:e|ed|es|ion)|(?:page|notify|call|inform)\s(?:the|both|every|head|\w+\s(?:primary|on-?call))|is\spaged|"
    r"goes\sto\sthe\s(?:secondary|primary))",
    re.IGNORECASE,
)
_SEVERITY = re.compile(r"\b(?:sev[0-5]|p[0-5])\b")


@dataclass(slots=True)
class CitedSource:
    """A source and the quotes taken from it. Its number is 0 until something is quoted."""

    name: str
    kind: str
    score: float
    passages: list[RetrievedContext]
    number: int = 0
    quotes: list[str] = field(default_factory=list)

    @property
    def title(self) -> str:
        """The title for people."""
        return format_title(self.passages[0])


@dataclass(frozen=True, slots=True)
class SourceSentence:
    """A sentence of a source, and the label before it (`Root cause`). `raw` is the original text."""

    text: str
    raw: str
    label: str
    source: CitedSource
    order: int

    @property
    def is_from_ticket(self) -> bool:
        """Whether it says what was done, not what has to be done."""
        return self.source.kind in _TICKETS

    @property
    def cause_score(self) -> float | None:
        """How likely it names a cause; None if it does not."""
        if self.label:
            return 1.0 if _CAUSE_LABEL.fullmatch(self.label) else None
        return 0.5 if _CAUSE.search(self.text) else None

    @property
    def action_score(self) -> float | None:
        """How likely it says what to do; None if it does not. An earlier ticket's remedy scores less than a
        runbook's."""
        if self.is_from_ticket:
            return 0.3 if _REMEDY_LABEL.fullmatch(self.label) else None
        if not is_instruction(self.text) or _ESCALATE.search(self.text):
            return None
        return 0.8 if self.source.kind == "runbook" else 0.0

    def score_escalation(self, codes: frozenset[str]) -> float | None:
        """Scores how likely it says whom to call at a severity with these names; None if it does not."""
        if self.is_from_ticket or not _ESCALATE.search(self.text):
            return None
        named = _SEVERITY.findall(f"{self.label} {self.text}".lower())
        if named and not codes & set(named):
            return None
        return (2.0 if named else 0.0) + (0.5 if is_policy(self.source.kind) else 0.0)


class SourceCitations:
    """The sources of one brief. A source gets its number when it is first cited."""

    def __init__(self, query: str) -> None:
        self._query_terms = frozenset(extract_query_terms(query))
        self._sources: dict[str, CitedSource] = {}
        self._count = 0

    @property
    def is_empty(self) -> bool:
        """Whether there are no sources."""
        return not self._sources

    def add(self, name: str, kind: str, score: float, passages: Sequence[RetrievedContext]) -> None:
        """Adds a source, or more passages of a known one."""
        source = self._sources.setdefault(name, CitedSource(name, kind, score, []))
        known_chunk_ids = {one.chunk_id for one in source.passages}
        source.passages += [one for one in passages if one.chunk_id not in known_chunk_ids]

    def cite(self, name: str, quote: str) -> tuple[int, ...]:
        """The number of the source of this quote."""
        source = self._sources[name]
        if not source.number:
            self._count += 1
            source.number = self._count
        if quote not in source.quotes:
            source.quotes.append(quote)
        return (source.number,)

    def list_cited(self) -> list[CitedSource]:
        """The cited sources in order of their numbers."""
        return sorted((one for one in self._sources.values() if one.number), key=lambda one: one.number)

    def select_best(
        self, count: int, score_sentence: Callable[[SourceSentence], float | None]
    ) -> list[tuple[str, int]]:
        """The best sentences without duplicates, each with its citation number."""
        ranked: list[tuple[float, SourceSentence]] = []
        for line in self._iterate_sentences():
            score = score_sentence(line)
            if score is not None:
                ranked.append((score + self._score_proximity(line), line))
        ranked.sort(key=lambda one: (-one[0], one[1].source.name, one[1].order))
        chosen: dict[str, tuple[str, int]] = {}
        for _, line in ranked:
            if len(chosen) < count:
                key = " ".join(line.text.lower().split())
                if key not in chosen:
                    chosen[key] = (_format_sentence(line), self.cite(line.source.name, line.raw)[0])
        return list(chosen.values())

    def _iterate_sentences(self) -> Iterator[SourceSentence]:
        """Yields every sentence of every source."""
        for source in self._sources.values():
            order = 0
            for passage in source.passages:
                for sentence in split_into_sentences(passage.content):
                    label = _LABEL.match(sentence.text)
                    sentence_text = sentence.text[label.end() :] if label is not None else sentence.text
                    order += 1
                    if len(sentence_text.split()) >= MIN_SENTENCE_WORDS:
                        yield SourceSentence(
                            sentence_text, sentence.raw, label["label"] if label else "", source, order
                        )

    def _score_proximity(self, line: SourceSentence) -> float:
        """The share of the incident's terms in the sentence plus the score of its source."""
        own = len(self._query_terms & frozenset(extract_terms(line.text))) / (len(self._query_terms) or 1)
        return own + line.source.score


def _format_sentence(line: SourceSentence) -> str:
    """The sentence for the brief. A ticket's sentence is prefixed with the ticket."""
    if not line.is_from_ticket:
        return f"{line.label}: {line.text}" if line.label else line.text
    ticket = get_metadata_text(line.source.passages[0], *TICKET_FIELDS) or line.source.name
    return f"{ticket}: {line.text}"
