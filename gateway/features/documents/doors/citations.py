"""`/v1/citations/{id}`: a citation of an answer, and its verification. Citations are stored in the logs of runs."""

import asyncio
import logging
from collections.abc import Sequence

from fastapi import APIRouter
from pydantic import ValidationError

from agent.core.errors import ConflictError, NotFoundError
from agent.core.events import AnswerFinished, Event, ToolReturned
from agent.core.models import DeferredModel, SourceCitation, TailorOutput
from agent.core.run_reducer import fold
from gateway.access.dependencies import CurrentCaller, require_scope, require_tool
from gateway.bootstrap import Stepgate
from gateway.doors.agent import ERRORS
from gateway.doors.deferred_route import DeferredRoute
from gateway.doors.dependencies import Gateway
from gateway.features.documents.engine.grounded_answers.locate import parse_run_id
from gateway.features.documents.engine.grounded_answers.verify_citation import Proof, ProofCheck, compare_with_index
from gateway.features.documents.engine.ingest.library import FoundDocument
from gateway.features.documents.parts import get_documents

log = logging.getLogger(__name__)
router = APIRouter(tags=["knowledge"], route_class=DeferredRoute, dependencies=[require_scope("agent")])

ANSWERING_TOOL = "answer_with_citations"


class CitationDetail(DeferredModel):
    """A citation, the run that made it, and the question that run answered."""

    citation_id: str
    run_id: str
    question: str
    citation: SourceCitation


class CitationProof(CitationDetail):
    """A citation with its verification."""

    proof: Proof


@router.get("/v1/citations/{citation_id}", responses=ERRORS, dependencies=[require_tool("search_knowledge")])
async def get_citation(citation_id: str, stepgate: Gateway, caller: CurrentCaller) -> CitationDetail:
    """Return the quoted words with their place; 404 if the caller has no such citation."""
    return await _find_citation(stepgate, caller.owner, citation_id)


@router.get("/v1/citations/{citation_id}/verify", responses=ERRORS, dependencies=[require_tool("search_knowledge")])
async def verify_citation(citation_id: str, stepgate: Gateway, caller: CurrentCaller) -> CitationProof:
    """Check whether the quoted words are still where the citation says: document, passage, quote, span, page, boxes,
    file.

    A failed check is an answer, not an error. 404 if the caller has no such citation.
    """
    citation = await _find_citation(stepgate, caller.owner, citation_id)
    return CitationProof(**dict(citation), proof=await _verify_citation(stepgate, caller.owner, citation.citation))


async def _find_citation(stepgate: Stepgate, owner: str, citation_id: str) -> CitationDetail:
    run_id = parse_run_id(citation_id)
    unknown = NotFoundError(f"there is no citation {citation_id[:100]!r}")
    if run_id is None:
        raise unknown
    try:
        events = await stepgate.service.read_events(run_id, owner=owner)
    except NotFoundError as error:
        raise unknown from error
    for output in [*_list_answers(events), *await _list_tool_answers(stepgate, events)]:
        for citation in output.citations:
            if citation.citation_id == citation_id:
                question = fold(run_id, events).prompt
                return CitationDetail(citation_id=citation_id, run_id=run_id, question=question, citation=citation)
    raise unknown


def _list_answers(events: Sequence[Event]) -> list[TailorOutput]:
    """The answers of a run, newest first."""
    answers = [event.body.tailored for event in events if isinstance(event.body, AnswerFinished)]
    return [output for output in reversed(answers) if output is not None]


async def _list_tool_answers(stepgate: Stepgate, events: Sequence[Event]) -> list[TailorOutput]:
    """The answers that the answering tool gave in a run."""
    tool_answers = []
    for event in events:
        body = event.body
        if not isinstance(body, ToolReturned) or body.tool != ANSWERING_TOOL or body.error_code is not None:
            continue
        value = body.output if body.blob is None else (await stepgate.service.get_blob_result(body.blob))[0]
        try:
            tool_answers.append(TailorOutput.model_validate(value))
        except ValidationError:  # written by a version whose tool had another output format
            log.warning("an answer in run %s cannot be read", event.run_id)
    return tool_answers


async def _verify_citation(stepgate: Stepgate, owner: str, cited: SourceCitation) -> Proof:
    """Looks up document, passage and file, and compares them with the citation."""
    if not cited.collection:
        nothing = ProofCheck(check="document", result="not_checked", detail="it was not a document of a collection")
        return compare_with_index(cited, None, document=nothing, file=nothing.model_copy(update={"check": "file"}))
    try:
        cited_document = await get_documents(stepgate).library.get_document(owner, cited.source_id, cited.collection)
    except NotFoundError:
        reason = "the document is no longer in the collection, or was read again after a change"
        document = ProofCheck(check="document", result="failed", detail=reason)
        file = ProofCheck(check="file", result="not_checked", detail="its file is no longer known")
        return compare_with_index(cited, None, document=document, file=file)
    same = cited_document.document.checksum == cited.file_checksum
    detail = "the document is unchanged in the index" if same else "the document was read from another file"
    document = ProofCheck(check="document", result="passed" if same else "failed", detail=detail)
    passages = await get_documents(stepgate).library.list_passages(owner, cited_document)
    passage = next((one for one in passages if one.chunk_id == cited.chunk_id), None)
    return compare_with_index(
        cited,
        passage,
        document=document,
        file=await asyncio.to_thread(_check_file, stepgate, owner, cited_document, cited),
    )


def _check_file(stepgate: Stepgate, owner: str, found: FoundDocument, cited: SourceCitation) -> ProofCheck:
    """Compares the file's checksum, if the file can still be read. Blocks."""
    try:
        get_documents(stepgate).library.open_file(
            owner, found
        ).close()  # it compares the file with the document's checksum
    except ConflictError as error:
        return ProofCheck(check="file", result="failed", detail=error.message)
    except NotFoundError as error:
        return ProofCheck(check="file", result="not_checked", detail=error.message)
    if found.document.checksum != cited.file_checksum:
        return ProofCheck(check="file", result="failed", detail="the file has changed since it was cited")
    checksum = f"{cited.file_checksum[:12]}\u2026"
    return ProofCheck(check="file", result="passed", detail=f"the file has the same SHA-256 as then, {checksum}")
