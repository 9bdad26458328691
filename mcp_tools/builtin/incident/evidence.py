"""What the two searches of incidents have in common: asking a collection, and what a passage says of itself."""

import re
from collections.abc import Sequence

from agent.core.errors import BadRequestError, ToolInputError
from agent.core.models import JsonObject
from agent.knowledge.errors_retrieval import MemoryNoResultsError
from agent.knowledge.levels import level_of, plain
from agent.knowledge.library import Library
from agent.knowledge.models import MemoryQuery, RetrievedContext
from agent.knowledge.terms import query_terms, terms

SNIPPET_CHARS = 400
LEAST = 0.35
"""The least relevance of a hit that shares few words with the report: one word in common reaches 0.16 to 0.34, an issue
that is about the same 0.4 to 0.9."""
LEAST_OF_LONG, TELLING = 0.12, 3
"""A long report names much that no document holds, so the share it finds is small. So many telling words in common are
enough all the same, from this relevance on."""
LEAST_BY_VECTOR = 0.5
"""From here on a vector speaks for a passage that shares no telling word: in other words, or in another language."""
_GENERIC = """
0 1 2 3 4 5 affected alert alerts broken bug cause caused causes causing crash critical customer customers degradation
degraded down emergency error errors escalate escalation event fail failed failing fails failure failures fault faults
fix high impact incident incidents interruption issue issues low major medium minor moderate normal not outage outages
p0 p1 p2 p3 p4 p5 page paged priority problem problems production report reported response sev sev0 sev1 sev2 sev3
sev4 sev5 severe severity since status system systems ticket tickets today trivial trouble unavailable urgent user
users
"""
"""What every incident is told in. Having only these in common says nothing."""
_FOOTNOTE = re.compile(r"\[\d{1,3}\](?!\()")
_LINE = re.compile(r"[^\n]+")
_RATED = re.compile(r"\b(?:priority|severity)\s?:\s?([^\n.,;]{1,40})", re.IGNORECASE)
_CODE = re.compile(r"\b(?:P|SEV[\s-]?)[0-5]\b")
_POLICY = re.compile(r"\b(?:polic(?:y|ies)|runbooks?|playbooks?|procedures?)\b", re.IGNORECASE)


async def ask(
    library: Library,
    owner: str,
    collection: str,
    query: str,
    *,
    top_k: int,
    filters: JsonObject | None = None,
    least: float = LEAST,
) -> tuple[Sequence[RetrievedContext], str]:
    """Passages, best first, and what the search has to note. Nothing where nothing is relevant, or where no passage
    has a field that is filtered by. With a `least` of 0 whatever shares any word."""
    asked = MemoryQuery(query_text=query, top_k=top_k, min_relevance_score=min(least, LEAST_OF_LONG), filters=filters)
    try:
        found = await library.search(owner, collection, asked)
    except MemoryNoResultsError:
        return (), ""
    except BadRequestError:
        if filters:
            return (), ""
        raise
    if not least:
        return found.results, found.note
    telling = frozenset(query_terms(query)) - _GENERIC_TERMS
    return [one for one in found.results if _is_evidence(one, telling, least)], found.note


async def require(library: Library, owner: str, collection: str, setting: str, make: str) -> None:
    """`ToolInputError` that says how to make the collection, where it is not there."""
    there = await library.collections(owner)
    if collection not in there:
        raise ToolInputError(
            f"there is no collection {collection!r} to search; `{make}` makes it, `stepgate corpus example` makes an "
            f"example of it, and {setting} names another"
        )


def kind_of(found: RetrievedContext) -> str:
    """What a passage is from: `policy`, `runbook`, `ticket`, `incident`, `doc`. By its own word, else by its name."""
    said = plain(said_of(found, "kind"))
    if said or said_of(found, "ticket"):
        return said or "ticket"
    by_path = kind_by_name(said_of(found, "source"))
    return by_path if by_path != "doc" else kind_by_name(said_of(found, "title"))


def kind_by_name(name: str) -> str:
    """`policy`, `runbook` or `doc`, by the words of a path or a title."""
    match = _POLICY.search(re.sub(r"[\W_]+", " ", name))
    if match is None:
        return "doc"
    return "policy" if match[0].lower().startswith("polic") else "runbook"


def is_policy(kind: str) -> bool:
    """Whether this kind says what is to be done."""
    return _POLICY.search(kind) is not None


def said_of(found: RetrievedContext, *names: str) -> str:
    """The first of these metadata fields that says something, as text."""
    for name in names:
        value = found.metadata.get(name)
        if isinstance(value, str | int | float) and not isinstance(value, bool) and str(value).strip():
            return str(value).strip()
    return ""


def unmarked(text: str) -> str:
    """A text as an answer shows it: without its own footnote marks, which would be taken for our citations."""
    return _FOOTNOTE.sub("", text).strip()


def source_name(found: RetrievedContext) -> str:
    """How a passage is cited; the same words as those of `search_knowledge`."""
    name = said_of(found, "source", "title") or found.source_id
    pages = found.metadata.get("pages")
    page = pages[0] if isinstance(pages, list) and pages else 0
    return f"{name}, page {page}" if page else name


def is_of_service(found: RetrievedContext, service: str) -> bool:
    """Whether a passage's project, service or text names this service."""
    wanted = f" {plain(service)} "
    names = [said_of(found, field) for field in ("project", "service", "component")]
    return any(wanted == f" {plain(name)} " for name in names) or wanted in f" {plain(found.content)} "


def is_of_severity(found: RetrievedContext, severity: str) -> bool:
    """Whether a passage's priority or severity is of this level, or its text says so."""
    if f" {plain(severity)} " in f" {plain(found.content)} ":
        return True
    given = [said_of(found, field) for field in ("priority", "severity")]
    given += _RATED.findall(found.content) + _CODE.findall(found.content)
    level = level_of(severity)
    return any(plain(one) == plain(severity) or (level is not None and level_of(one) == level) for one in given if one)


def snippet(text: str, query: str, limit: int = SNIPPET_CHARS) -> str:
    """The part of a passage that holds most of the query, word for word: whole lines where they fit, without those in
    front that add nothing to it."""
    wanted = frozenset(query_terms(query))
    lines = [match.span() for match in _LINE.finditer(text) if match[0].strip()]
    if not lines:
        return text.strip()[:limit]
    held = [wanted & frozenset(terms(text[start : min(end, start + limit)])) for start, end in lines]
    best, most = (0, 0), -1
    for first, (start, _) in enumerate(lines):
        last = first
        while last + 1 < len(lines) and lines[last + 1][1] - start <= limit:
            last += 1
        count = len(frozenset().union(*held[first : last + 1]))
        if count > most:
            best, most = (first, last), count
    first, last = best
    while first < last and held[first] <= frozenset().union(*held[first + 1 : last + 1]):
        first += 1
    return text[lines[first][0] : min(lines[last][1], lines[first][0] + limit)].strip()


def title_of(found: RetrievedContext) -> str:
    """A passage's title: the document's, and the headings above the passage, each once."""
    title = said_of(found, "title") or source_name(found)
    return " / ".join(dict.fromkeys(part.strip() for part in title.split(" / ")))


def _is_evidence(found: RetrievedContext, telling: frozenset[str], least: float) -> bool:
    """Whether a passage is about the same as a report with these telling terms."""
    score = found.relevance_score
    common = len(telling & frozenset(terms(f"{said_of(found, 'title')}\n{found.content}")))
    if common:
        return score >= least or common >= TELLING
    scores = found.metadata.get("scores")
    return score >= LEAST_BY_VECTOR and isinstance(scores, dict) and "vector" in scores


_GENERIC_TERMS = frozenset(terms(_GENERIC))
