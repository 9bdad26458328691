"""Shared by the two incident searches: queries a collection, and reads metadata of passages."""

import re
from collections.abc import Sequence

from agent.core.errors import BadRequestError, ToolSetupError
from agent.core.models import JsonObject
from agent.text.terms import extract_query_terms, extract_terms
from gateway.features.documents.engine.ingest.library import Library
from gateway.features.documents.engine.search.errors import MemoryNoResultsError
from gateway.features.documents.engine.search.models import MemoryQuery, RetrievedContext
from gateway.features.documents.engine.search.severity import normalize_name, parse_severity
from gateway.features.incident.engine.collection_names import EXAMPLE_COLLECTIONS, OWN_COLLECTIONS, IncidentCollections

SNIPPET_CHARS = 400
MIN_RELEVANCE = 0.35
"""The lowest relevance of a hit that shares few words with the report. Measured: one common word scores 0.16 to 0.34,
an issue about the same subject 0.4 to 0.9."""
MIN_RELEVANCE_LONG_REPORT, MIN_COMMON_TERMS = 0.12, 3
"""A long report has many words that no document has, so its relevance is low. This relevance suffices if so many
telling words are common."""
MIN_RELEVANCE_BY_VECTOR = 0.5
"""The lowest vector relevance of a passage without a common telling word: other words, or another language."""
_GENERIC_WORDS = """
0 1 2 3 4 5 affected alert alerts broken bug cause caused causes causing crash critical customer customers degradation
degraded down emergency error errors escalate escalation event fail failed failing fails failure failures fault faults
fix high impact incident incidents interruption issue issues low major medium minor moderate normal not outage outages
p0 p1 p2 p3 p4 p5 page paged priority problem problems production report reported response sev sev0 sev1 sev2 sev3
sev4 sev5 severe severity since status system systems ticket tickets today trivial trouble unavailable urgent user
users
"""
"""Words that every incident report uses. Having only these in common proves nothing."""
TICKET_FIELDS = ("ticket", "issue_key", "incident_number")
"""The metadata fields that hold a ticket's key: in the shipped mappings, and in the fifth document."""
_LINE = re.compile(r"[^\n]+")
_RATED = re.compile(r"\b(?:priority|severity)\s?:\s?([^\n.,;]{1,40})", re.IGNORECASE)
_CODE = re.compile(r"\b(?:P|SEV[\s-]?)[0-5]\b")
_POLICY = re.compile(r"\b(?:polic(?:y|ies)|runbooks?|playbooks?|procedures?)\b", re.IGNORECASE)


async def search_evidence(
    library: Library,
    owner: str,
    collection: str,
    query: str,
    *,
    top_k: int,
    filters: JsonObject | None = None,
    min_relevance: float = MIN_RELEVANCE,
) -> tuple[Sequence[RetrievedContext], str]:
    """Relevant passages in order of relevance, and a note of the search.

    Returns none if nothing is relevant or no passage has a field of the filters. A `min_relevance` of 0 returns
    every passage that shares a word with the query.
    """
    memory_query = MemoryQuery(
        query_text=query,
        top_k=top_k,
        min_relevance_score=min(min_relevance, MIN_RELEVANCE_LONG_REPORT),
        filters=filters,
    )
    try:
        passages = await library.search(owner, collection, memory_query)
    except MemoryNoResultsError:
        return (), ""
    except BadRequestError:
        if filters:
            return (), ""
        raise
    if not min_relevance:
        return passages.results, passages.note
    telling_terms = frozenset(extract_query_terms(query)) - _GENERIC_TERMS
    return [one for one in passages.results if _is_evidence(one, telling_terms, min_relevance)], passages.note


async def choose_collections(library: Library, owner: str, of_room: Sequence[str] | None) -> IncidentCollections:
    """The collections that a room names, documents first and tickets last; else `company` and `issues`.

    While neither of these two exists, those of the example company are used, if they were made.
    """
    if of_room:
        return IncidentCollections(of_room[0], of_room[-1])
    existing = {*await library.list_collections(owner)}
    if existing.isdisjoint(OWN_COLLECTIONS) and existing.issuperset(EXAMPLE_COLLECTIONS):
        return EXAMPLE_COLLECTIONS
    return OWN_COLLECTIONS


async def require_collection(library: Library, owner: str, collection: str, make: str) -> None:
    """Raises `ToolSetupError` with the command that creates the collection if it does not exist."""
    collections = await library.list_collections(owner)
    if collection not in collections:
        raise ToolSetupError(
            f"there is no collection {collection!r} to search; `{make}` creates it, `stepgate corpus example` creates "
            "an example in collections of its own, as does “Load the example company” in a new chat on the web page, "
            "and `collections` of the room names others"
        )


def classify_passage(found: RetrievedContext) -> str:
    """The kind of a passage: `policy`, `runbook`, `ticket`, `incident` or `doc`; by its metadata, else its
    name."""
    kind = normalize_name(get_metadata_text(found, "kind"))
    if kind or get_metadata_text(found, *TICKET_FIELDS):
        return kind or "ticket"
    by_path = classify_name(get_metadata_text(found, "source"))
    return by_path if by_path != "doc" else classify_name(get_metadata_text(found, "title"))


def classify_name(name: str) -> str:
    """`policy`, `runbook` or `doc`, by the words of a path or title."""
    match = _POLICY.search(re.sub(r"[\W_]+", " ", name))
    if match is None:
        return "doc"
    return "policy" if match[0].lower().startswith("polic") else "runbook"


def is_policy(kind: str) -> bool:
    """Whether documents of this kind say what to do."""
    return _POLICY.search(kind) is not None


def get_metadata_text(found: RetrievedContext, *names: str) -> str:
    """The first of these metadata fields that is not empty, as text."""
    for name in names:
        value = found.metadata.get(name)
        if isinstance(value, str | int | float) and not isinstance(value, bool) and str(value).strip():
            return str(value).strip()
    return ""


def format_source_name(found: RetrievedContext) -> str:
    """The name under which a passage is cited, as `search_knowledge` does."""
    name = get_metadata_text(found, "source", "title") or found.source_id
    pages = found.metadata.get("pages")
    page = pages[0] if isinstance(pages, list) and pages else 0
    return f"{name}, page {page}" if page else name


def matches_service(found: RetrievedContext, service: str) -> bool:
    """Whether a passage's metadata or text names this service."""
    wanted = f" {normalize_name(service)} "
    names = [get_metadata_text(found, field) for field in ("project", "service", "component")]
    return (
        any(wanted == f" {normalize_name(name)} " for name in names) or wanted in f" {normalize_name(found.content)} "
    )


def matches_severity(found: RetrievedContext, severity: str) -> bool:
    """Whether a passage's metadata or text has this severity or priority."""
    if f" {normalize_name(severity)} " in f" {normalize_name(found.content)} ":
        return True
    given = [get_metadata_text(found, field) for field in ("priority", "severity")]
    given += _RATED.findall(found.content) + _CODE.findall(found.content)
    level = parse_severity(severity)
    return any(
        normalize_name(one) == normalize_name(severity) or (level is not None and parse_severity(one) == level)
        for one in given
        if one
    )


def extract_snippet(text: str, query: str, limit: int = SNIPPET_CHARS) -> str:
    """The part of a passage with most words of the query, unchanged; whole lines if they fit."""
    wanted = frozenset(extract_query_terms(query))
    lines = [match.span() for match in _LINE.finditer(text) if match[0].strip()]
    if not lines:
        return text.strip()[:limit]
    covered = [wanted & frozenset(extract_terms(text[start : min(end, start + limit)])) for start, end in lines]
    best, most = (0, 0), -1
    for first, (start, _) in enumerate(lines):
        last = first
        while last + 1 < len(lines) and lines[last + 1][1] - start <= limit:
            last += 1
        count = len(frozenset().union(*covered[first : last + 1]))
        if count > most:
            best, most = (first, last), count
    first, last = best
    while first < last and covered[first] <= frozenset().union(*covered[first + 1 : last + 1]):
        first += 1
    return text[lines[first][0] : min(lines[last][1], lines[first][0] + limit)].strip()


def format_title(found: RetrievedContext) -> str:
    """A passage's title: the document's and the headings above the passage, without duplicates."""
    title = get_metadata_text(found, "title") or format_source_name(found)
    return " / ".join(dict.fromkeys(part.strip() for part in title.split(" / ")))


def _is_evidence(found: RetrievedContext, telling_terms: frozenset[str], min_relevance: float) -> bool:
    """Whether a passage is about the same subject as a report with these telling terms."""
    score = found.relevance_score
    common = len(telling_terms & frozenset(extract_terms(f"{get_metadata_text(found, 'title')}\n{found.content}")))
    if common:
        return score >= min_relevance or common >= MIN_COMMON_TERMS
    scores = found.metadata.get("scores")
    return score >= MIN_RELEVANCE_BY_VECTOR and isinstance(scores, dict) and "vector" in scores


_GENERIC_TERMS = frozenset(extract_terms(_GENERIC_WORDS))
