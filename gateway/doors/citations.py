"""`/v1/citations/{id}`: what an answer cited, and whether it still stands there. The runs' logs keep them."""

import asyncio
import logging
from collections.abc import Sequence

from fastapi import APIRouter
from pydantic import BaseModel, ValidationError

from agent.core.errors import ConflictError, NotFoundError
from agent.core.events import AnswerFinished, Event, ToolReturned
from agent.core.fold import fold
from agent.core.models import SourceCitation, TailorOutput
from agent.knowledge.library import Found
from agent.knowledge.tailor import run_of
from agent.knowledge.tailor.proof import Proof, ProofCheck, prove
from gateway.auth import By, requires
from gateway.bootstrap import Stepgate
from gateway.doors.agent import ERRORS
from gateway.doors.wiring import Gateway

log = logging.getLogger(__name__)
router = APIRouter(tags=["knowledge"], dependencies=[requires("agent")])

ANSWERING_TOOL = "answer_with_citations"


class CitationDetail(BaseModel):
    """A citation, the run that made it, and the question that run answered."""

    citation_id: str
    run_id: str
    question: str
    citation: SourceCitation


class CitationProof(CitationDetail):
    """A citation proved again."""

    proof: Proof


@router.get("/v1/citations/{citation_id}", responses=ERRORS)
async def get_citation(citation_id: str, stepgate: Gateway, caller: By) -> CitationDetail:
    """The quoted words with their place; 404 when there is no such citation of the caller's."""
    return await _find(stepgate, caller.owner, citation_id)


@router.get("/v1/citations/{citation_id}/verify", responses=ERRORS)
async def verify_citation(citation_id: str, stepgate: Gateway, caller: By) -> CitationProof:
    """Whether the quoted words still stand where the citation says: document, passage, quote, span, page, boxes, file.

    That a check fails is an answer, not an error; 404 when there is no such citation of the caller's."""
    found = await _find(stepgate, caller.owner, citation_id)
    return CitationProof(**dict(found), proof=await _prove(stepgate, caller.owner, found.citation))


async def _find(stepgate: Stepgate, owner: str, citation_id: str) -> CitationDetail:
    run_id = run_of(citation_id)
    unknown = NotFoundError(f"there is no citation {citation_id[:100]!r}")
    if run_id is None:
        raise unknown
    try:
        events = await stepgate.service.read(run_id, owner=owner)
    except NotFoundError as error:
        raise unknown from error
    for output in [*_answers(events), *await _tool_answers(stepgate, events)]:
        for citation in output.citations:
            if citation.citation_id == citation_id:
                question = fold(run_id, events).prompt
                return CitationDetail(citation_id=citation_id, run_id=run_id, question=question, citation=citation)
    raise unknown


def _answers(events: Sequence[Event]) -> list[TailorOutput]:
    """The answers a run gave, newest first."""
    found = [event.body.tailored for event in events if isinstance(event.body, AnswerFinished)]
    return [output for output in reversed(found) if output is not None]


async def _tool_answers(stepgate: Stepgate, events: Sequence[Event]) -> list[TailorOutput]:
    """What the answering tool gave in a run."""
    found = []
    for event in events:
        body = event.body
        if not isinstance(body, ToolReturned) or body.tool != ANSWERING_TOOL or body.error_code is not None:
            continue
        value = body.output if body.blob is None else await stepgate.service.blob_value(body.blob)
        try:
            found.append(TailorOutput.model_validate(value))
        except ValidationError:  # a log of a version whose tool answered in another form
            log.warning("an answer in run %s cannot be read", event.run_id)
    return found


async def _prove(stepgate: Stepgate, owner: str, cited: SourceCitation) -> Proof:
    """Look everything up, and hold it against the citation."""
    if not cited.collection:
        nothing = ProofCheck(check="document", result="not_checked", detail="it was no document of a collection")
        return prove(cited, None, document=nothing, file=nothing.model_copy(update={"check": "file"}))
    try:
        found = await stepgate.library.document(owner, cited.source_id, cited.collection)
    except NotFoundError:
        reason = "the document is no longer in the collection, or was read anew since it changed"
        document = ProofCheck(check="document", result="failed", detail=reason)
        file = ProofCheck(check="file", result="not_checked", detail="its file is not known any more")
        return prove(cited, None, document=document, file=file)
    same = found.document.checksum == cited.file_checksum
    detail = "the document is unchanged in the index" if same else "the document was read from another file"
    document = ProofCheck(check="document", result="passed" if same else "failed", detail=detail)
    passages = await stepgate.library.passages(owner, found)
    passage = next((one for one in passages if one.chunk_id == cited.chunk_id), None)
    return prove(cited, passage, document=document, file=await asyncio.to_thread(_file, stepgate, owner, found, cited))


def _file(stepgate: Stepgate, owner: str, found: Found, cited: SourceCitation) -> ProofCheck:
    """The file's checksum, where the file can still be read. Blocks."""
    try:
        stepgate.library.open_file(owner, found).close()  # it has been held against the document's checksum
    except ConflictError as error:
        return ProofCheck(check="file", result="failed", detail=error.message)
    except NotFoundError as error:
        return ProofCheck(check="file", result="not_checked", detail=error.message)
    if found.document.checksum != cited.file_checksum:
        return ProofCheck(check="file", result="failed", detail="the file has changed since it was cited")
    checksum = f"{cited.file_checksum[:12]}\u2026"
    return ProofCheck(check="file", result="passed", detail=f"the file has the same SHA-256 as then, {checksum}")
