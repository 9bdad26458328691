"""`search_knowledge`: finds passages of the user's documents, each with its source for citations."""

from collections.abc import Sequence
from itertools import zip_longest
from typing import Literal

from pydantic import Field

from agent.answers.evidence import NOT_IN_DOCUMENTS
from agent.core.errors import BadRequestError, ToolInputError
from agent.core.models import DeferredModel, JsonObject, RetrievalMode, Room, Source
from agent.text.question_parts import is_question, list_sentences
from agent.text.requested_form import list_asked_things, remove_form, split_questions
from agent.tools import READ_ONLY, PlanHints, ToolContext, ToolModel, TypedTool
from gateway.features.documents.engine.grounded_answers.footnote_marks import strip_footnote_marks
from gateway.features.documents.engine.grounded_answers.no_answer_text import make_clarifying_question
from gateway.features.documents.engine.grounded_answers.passage_terms import PassageTerms
from gateway.features.documents.engine.ingest.library import Library
from gateway.features.documents.engine.request_commands import DOCUMENT_SEARCH
from gateway.features.documents.engine.search.errors import MemoryNoResultsError
from gateway.features.documents.engine.search.llm_rerank import MAX_CANDIDATES, rerank_with_model
from gateway.features.documents.engine.search.models import MemoryQuery, RetrievedContext

QUERY_CHARS = 4_000
QUOTE_CHARS = 1_200
BROADER_MIN_RELEVANCE = 0.2
"""The lowest relevance of a subject that the user may have meant: a passage with one common word."""
BROADENED_NOTE = "nothing was relevant enough{least} (ERR_MEMORY_NO_RESULTS), so a broader search followed"
MAX_SUBJECTS, MAX_SUBJECT_CHARS = 3, 80


class SearchKnowledgeInput(DeferredModel):
    """Arguments of `search_knowledge`."""

    query: str = Field(min_length=1, max_length=QUERY_CHARS, description="the question, or the words to look for")
    collection: str = Field(default="", max_length=200, description="where to look; empty for every collection")
    top_k: int = Field(default=5, ge=1, le=20, description="how many passages at most")
    min_relevance_score: float | None = Field(
        default=None, ge=0, le=1, description="least relevance, from 0 to 1; unset: measured for the collection"
    )
    filters: JsonObject | None = Field(
        default=None, description="metadata that must be equal, e.g. source_type: gdrive, web or local"
    )
    mode: RetrievalMode | None = Field(
        default=None, description="how to search; unset: the mode of the room or the settings"
    )
    use_llm_rerank: bool = Field(default=False, description="let a model order the passages, if there is one")


class FoundPassage(DeferredModel):
    """A passage and where it stands."""

    chunk_id: str
    source_id: str
    collection: str
    source: str
    page: int
    text: str
    relevance_score: float
    retrieval_mode: Literal["lexical", "vector", "hybrid", "hybrid_rerank"]
    why_selected: str
    source_url: str | None = None
    metadata: JsonObject = Field(default_factory=dict, description="its place: pages, boxes, headings, checksums")


class SearchKnowledgeOutput(DeferredModel):
    """Passages in order of relevance."""

    results: list[FoundPassage]
    note: str = ""
    clarify: str = Field(default="", description="a question to the user if nothing was relevant enough")


class SearchKnowledgeTool(TypedTool[SearchKnowledgeInput, SearchKnowledgeOutput]):
    name = "search_knowledge"
    description = (
        "Search the user's own documents (collections of PDF, Word, web pages, mail and other files that were read in) "
        "by words and meaning, and return passages to cite. Not for files on disk: use search_files."
    )
    annotations = READ_ONLY
    tainted = True
    keywords = ("document", "documents", "knowledge", "collection", "policy", "manual", "report", "handbook", "files")
    hints = PlanHints(commands=DOCUMENT_SEARCH, source="collections", is_search=True)

    def __init__(self, library: Library) -> None:
        super().__init__()
        self._library = library

    async def run(self, args: SearchKnowledgeInput, context: ToolContext) -> SearchKnowledgeOutput:
        """The best passages of one or all collections."""
        return await search_collections(
            self._library.in_room(context.retrieval_mode, context.collections), args, context.owner, context.model
        )

    def format_text(self, output: SearchKnowledgeOutput) -> str:
        if not output.results:
            return NOT_IN_DOCUMENTS
        numbers = {
            name: number
            for number, name in enumerate(dict.fromkeys(_format_source_name(p) for p in output.results), start=1)
        }
        return "\n\n".join(
            f"{strip_footnote_marks(p.text)} [{numbers[_format_source_name(p)]}]" for p in output.results
        )

    def list_sources(self, output: SearchKnowledgeOutput) -> tuple[Source, ...]:
        """One source for each page, with the words that were found."""
        return tuple(
            Source(id=number, name=_format_source_name(passage), quotes=(passage.text[:QUOTE_CHARS],))
            for number, passage in enumerate(output.results, start=1)
        )


async def search_collections(
    library: Library, args: SearchKnowledgeInput, owner: str, model: ToolModel | None = None
) -> SearchKnowledgeOutput:
    """The best passages of one or all of the owner's collections.

    Raises `ToolInputError` if there are no documents, or no collection has a field of the filters.
    """
    collections = await library.list_collections(owner)
    if not collections:
        raise ToolInputError(
            "there are no documents yet; add some in Documents on the web page, or by `stepgate ingest FOLDER "
            "--collection NAME`"
        )
    names = [args.collection] if args.collection else list(collections)
    if args.collection and args.collection not in collections:
        raise ToolInputError(
            f"there is no collection {args.collection!r} (it may have been deleted); there are "
            f"{', '.join(collections)}. To search all of them, leave the collection out; a chat that is limited to it "
            "has the button “Use all documents”"
        )
    parts, notes = await _search_parts(library, args, owner, names)
    clarify = ""
    if not parts:
        near, noted = await _search_query(
            library, args, owner, names, None, min(BROADER_MIN_RELEVANCE, args.min_relevance_score or 1.0)
        )
        # Results outside the requested filters are no answer, but they can form a question.
        least = f", at least {args.min_relevance_score:g}" if args.min_relevance_score is not None else ""
        notes = [*noted, BROADENED_NOTE.format(least=least)]
        clarify = _make_clarifying_question(args.query, [result for _, result in near])
    if args.use_llm_rerank and parts:
        order, note = await rerank_with_model(
            args.query, [one.content for _, one in parts], model.ask if model else None
        )
        parts = [parts[at] for at in order]
        notes += [note] if note else []
    return SearchKnowledgeOutput(
        results=[_make_passage(*one) for one in parts[: args.top_k]], note="; ".join(notes), clarify=clarify
    )


async def measure_relevance(library: Library, owner: str, room: Room, query: str, collection: str) -> float:
    """The relevance of the best passage for a query in a room; 0 if none is relevant enough.

    Raises `ToolInputError` if there are no documents, or no such collection.
    """
    args = SearchKnowledgeInput(query=query[:QUERY_CHARS], collection=collection, top_k=1)
    hits = await search_collections(library.in_room(room.retrieval_mode, room.collections), args, owner)
    return max((one.relevance_score for one in hits.results), default=0.0)


async def _search_parts(
    library: Library, args: SearchKnowledgeInput, owner: str, names: Sequence[str]
) -> tuple[list[tuple[str, RetrievedContext]], list[str]]:
    """Searches each part of the query separately, without words about the answer's form.

    The best passages of each part come first, so that no part is crowded out. A thing that a question asks for besides
    others is searched by itself if no passage under a heading of its name holds it.
    """

    async def search(part: str) -> tuple[list[tuple[str, RetrievedContext]], list[str]]:
        part_args = args.model_copy(update={"query": part})
        return await _search_query(library, part_args, owner, names, args.filters, args.min_relevance_score)

    text = remove_form(args.query)
    parts = split_questions(text)
    # Statements beside several questions may name their subject.
    parts += [text] if len(parts) > 1 and not all(map(is_question, list_sentences(text))) else []
    searches = [await search(part) for part in parts]
    passages = [PassageTerms(hit) for hits, _ in searches for _, hit in hits]
    missing = [
        phrase for phrase in list_asked_things(text)
        if phrase not in parts and not any(one.is_headed_by(phrase) for one in passages)
    ]  # fmt: skip
    searches += [await search(phrase) for phrase in missing]
    mixed: dict[tuple[str, str], tuple[str, RetrievedContext]] = {}
    for rank in zip_longest(*(hits for hits, _ in searches)):
        for one in rank:
            if one is not None:
                mixed.setdefault((one[0], one[1].chunk_id), one)
    return list(mixed.values()), list(dict.fromkeys(note for _, notes in searches for note in notes))


async def _search_query(
    library: Library,
    args: SearchKnowledgeInput,
    owner: str,
    names: Sequence[str],
    filters: JsonObject | None,
    min_relevance: float | None,
) -> tuple[list[tuple[str, RetrievedContext]], list[str]]:
    """The passages of these collections in order of relevance, and notes of the searches.

    Without `min_relevance`, the least relevance is that measured for each collection."""
    query = MemoryQuery(
        query_text=args.query,
        top_k=max(args.top_k, MAX_CANDIDATES) if args.use_llm_rerank else args.top_k,
        min_relevance_score=min_relevance or 0.0,
        filters=filters,
    )
    unknown: list[BadRequestError] = []
    hits: list[tuple[str, RetrievedContext]] = []
    notes: list[str] = []
    for name in names:
        try:
            if min_relevance is None:
                least = await library.get_relevance_threshold(owner, name, args.query, mode=args.mode)
                query = query.model_copy(update={"min_relevance_score": least})
            output = await library.search(owner, name, query, mode=args.mode)
        except MemoryNoResultsError:
            continue
        except BadRequestError as error:  # no passage of the collection has a field of the filters
            unknown.append(error)
            continue
        hits += [(name, result) for result in output.results]
        notes += [output.note] if output.note and output.note not in notes else []
    if len(unknown) == len(names):
        raise ToolInputError(unknown[0].message)
    hits.sort(key=lambda one: -one[1].relevance_score)
    # A document that was read into two collections is found twice; its passages are listed once.
    once: dict[tuple[str, str], tuple[str, RetrievedContext]] = {}
    for one in hits:
        once.setdefault((str(one[1].metadata.get("file_checksum") or one[1].chunk_id), one[1].content), one)
    return list(once.values()), notes


def _make_clarifying_question(query: str, near: Sequence[RetrievedContext]) -> str:
    """A question to the user about the nearest subjects; empty if there are none."""
    subjects = dict.fromkeys(subject for one in near if (subject := _get_subject(one)))
    return make_clarifying_question(query, tuple(subjects)[:MAX_SUBJECTS]) if subjects else ""


def _get_subject(found: RetrievedContext) -> str:
    headings = found.metadata.get("heading_path")
    named = str(headings[-1]) if isinstance(headings, list) and headings else str(found.metadata.get("title") or "")
    return " ".join(named.split())[:MAX_SUBJECT_CHARS]


def _format_source_name(passage: FoundPassage) -> str:
    return f"{passage.source}, page {passage.page}" if passage.page else passage.source


def _make_passage(collection: str, found: RetrievedContext) -> FoundPassage:
    pages = found.metadata.get("pages")
    first = pages[0] if isinstance(pages, list) and pages else 0
    return FoundPassage(
        chunk_id=found.chunk_id,
        source_id=found.source_id,
        collection=collection,
        source=str(found.metadata.get("source") or found.metadata.get("title") or found.source_id),
        page=first if isinstance(first, int) else 0,
        text=found.content,
        relevance_score=round(found.relevance_score, 3),
        retrieval_mode=found.retrieval_mode,
        why_selected=found.why_selected,
        source_url=found.source_url,
        metadata={key: value for key, value in found.metadata.items() if key != "scores"},
    )
