"""The sources of a brief, the sentences that stand in them, and the numbers they are cited by."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from agent.knowledge.models import RetrievedContext
from agent.knowledge.terms import query_terms, terms
from mcp_tools.builtin.incident.actions import is_instruction
from mcp_tools.builtin.incident.evidence import is_policy, said_of, title_of
from mcp_tools.builtin.incident.text import sentences_of

LINE_WORDS = 4
"""Shorter lines are headings and cells of tables."""
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
class Cited:
    """A source, and the words that were taken from it. Its number is 0 until something is."""

    name: str
    kind: str
    score: float
    passages: list[RetrievedContext]
    number: int = 0
    quotes: list[str] = field(default_factory=list)

    @property
    def title(self) -> str:
        """What people see of it."""
        return title_of(self.passages[0])


@dataclass(frozen=True, slots=True)
class Line:
    """A sentence of a source, and the label before it (`Root cause`). `raw` is as it is written there."""

    text: str
    raw: str
    label: str
    source: Cited
    order: int

    @property
    def is_of_ticket(self) -> bool:
        """Whether it tells what was, not what is to be done."""
        return self.source.kind in _TICKETS

    @property
    def cause_worth(self) -> float | None:
        """What speaks for its naming a cause; None when nothing does."""
        if self.label:
            return 1.0 if _CAUSE_LABEL.fullmatch(self.label) else None
        return 0.5 if _CAUSE.search(self.text) else None

    @property
    def action_worth(self) -> float | None:
        """What speaks for its saying what to do. What was done in an earlier ticket counts less than a runbook."""
        if self.is_of_ticket:
            return 0.3 if _REMEDY_LABEL.fullmatch(self.label) else None
        if not is_instruction(self.text) or _ESCALATE.search(self.text):
            return None
        return 0.8 if self.source.kind == "runbook" else 0.0

    def escalation_worth(self, codes: frozenset[str]) -> float | None:
        """What speaks for its saying who is called, at a severity that goes by these names."""
        if self.is_of_ticket or not _ESCALATE.search(self.text):
            return None
        named = _SEVERITY.findall(f"{self.label} {self.text}".lower())
        if named and not codes & set(named):
            return None
        return (2.0 if named else 0.0) + (0.5 if is_policy(self.source.kind) else 0.0)


class Book:
    """The sources of a brief under way. A source gets its number when something is taken from it."""

    def __init__(self, query: str) -> None:
        self._asked = frozenset(query_terms(query))
        self._sources: dict[str, Cited] = {}
        self._count = 0

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to cite."""
        return not self._sources

    def add(self, name: str, kind: str, score: float, passages: Sequence[RetrievedContext]) -> None:
        """A source, or more passages of it."""
        source = self._sources.setdefault(name, Cited(name, kind, score, []))
        known = {one.chunk_id for one in source.passages}
        source.passages += [one for one in passages if one.chunk_id not in known]

    def cite(self, name: str, quote: str) -> tuple[int, ...]:
        """The number of the source these words are from."""
        source = self._sources[name]
        if not source.number:
            self._count += 1
            source.number = self._count
        if quote not in source.quotes:
            source.quotes.append(quote)
        return (source.number,)

    def cited(self) -> list[Cited]:
        """The sources that were cited, by number."""
        return sorted((one for one in self._sources.values() if one.number), key=lambda one: one.number)

    def best(self, count: int, worth: Callable[[Line], float | None]) -> list[tuple[str, int]]:
        """The lines that are worth most and nearest to the incident, each said once, with their citations."""
        ranked: list[tuple[float, Line]] = []
        for line in self._lines():
            found = worth(line)
            if found is not None:
                ranked.append((found + self._near(line), line))
        ranked.sort(key=lambda one: (-one[0], one[1].source.name, one[1].order))
        chosen: dict[str, tuple[str, int]] = {}
        for _, line in ranked:
            if len(chosen) < count:
                key = " ".join(line.text.lower().split())
                if key not in chosen:
                    chosen[key] = (_told(line), self.cite(line.source.name, line.raw)[0])
        return list(chosen.values())

    def _lines(self) -> Iterator[Line]:
        """Every sentence of every source, once."""
        for source in self._sources.values():
            order = 0
            for passage in source.passages:
                for sentence in sentences_of(passage.content):
                    label = _LABEL.match(sentence.text)
                    said = sentence.text[label.end() :] if label is not None else sentence.text
                    order += 1
                    if len(said.split()) >= LINE_WORDS:
                        yield Line(said, sentence.raw, label["label"] if label else "", source, order)

    def _near(self, line: Line) -> float:
        """The share of the incident's terms that the line holds, and how near its source is."""
        own = len(self._asked & frozenset(terms(line.text))) / (len(self._asked) or 1)
        return own + line.source.score


def _told(line: Line) -> str:
    """The line as the brief tells it: what a ticket says is told as its own."""
    if not line.is_of_ticket:
        return f"{line.label}: {line.text}" if line.label else line.text
    ticket = said_of(line.source.passages[0], "ticket") or line.source.name
    return f"{ticket}: {line.text}"
