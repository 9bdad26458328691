"""Verifies a stored citation against the current index and file, check by check."""

from collections.abc import Sequence
from typing import Literal

from agent.core.models import FrozenModel, SourceCitation
from gateway.features.documents.engine.grounded_answers.locate import make_citation
from gateway.features.documents.engine.search.lexical import Passage
from gateway.features.documents.engine.search.models import RetrievedContext

Result = Literal["passed", "failed", "not_checked"]
Verdict = Literal["proven", "proven_in_index", "not_proven", "cannot_be_checked"]


class ProofCheck(FrozenModel):
    """One check and its result."""

    check: Literal["document", "chunk", "quote", "span", "page", "boxes", "file"]
    result: Result
    detail: str


class Proof(FrozenModel):
    """The verdict over all checks.

    `proven`: words, place and file are unchanged. `proven_in_index`: words and place are, and the file can no longer be
    read. `not_proven`: something has changed. `cannot_be_checked`: no collection contains the citation."""

    verdict: Verdict
    statement: str
    checks: tuple[ProofCheck, ...]


def compare_with_index(
    cited: SourceCitation, passage: Passage | None, *, document: ProofCheck, file: ProofCheck
) -> Proof:
    """The proof. `passage` is the indexed chunk of the citation, or None if there is none."""
    checks = (document, *_check_passage(cited, passage), file)
    failed = [one for one in checks if one.result == "failed"]
    if failed:
        return Proof(verdict="not_proven", statement=f"Not proven: {failed[0].detail}.", checks=checks)
    if passage is None:
        return Proof(verdict="cannot_be_checked", statement="The cited passage is in no collection.", checks=checks)
    if file.result == "passed":
        statement = "Verified: the quoted words are where the citation says, in the index and in an unchanged file."
        return Proof(verdict="proven", statement=statement, checks=checks)
    statement = f"Verified in the index: the quoted words are where the citation says; {file.detail}."
    return Proof(verdict="proven_in_index", statement=statement, checks=checks)


def _check_passage(cited: SourceCitation, passage: Passage | None) -> Sequence[ProofCheck]:
    """Checks the chunk, the quoted words, and their place."""
    if passage is None:
        reason = "the passage is no longer in the index" if cited.collection else "it was not a passage of a collection"
        result: Result = "failed" if cited.collection else "not_checked"
        return [ProofCheck(check="chunk", result=result, detail=reason)]
    chunk = RetrievedContext(
        chunk_id=passage.chunk_id,
        content=passage.text,
        source_id=passage.document_id,
        relevance_score=0,
        metadata=passage.metadata,
    )
    end = cited.offset + len(cited.text_snippet)
    now = make_citation(chunk, cited.offset, end, number=cited.number)
    return [
        _make_check("chunk", now.chunk_checksum == cited.chunk_checksum, "the passage is unchanged", "it has changed"),
        _make_check(
            "quote",
            passage.text[cited.offset : end] == cited.text_snippet,
            "the words are in the passage, character by character",
            "the words are not in the passage",
        ),
        _make_check(
            "span",
            (now.start, now.end) == (cited.start, cited.end),
            f"they are characters {cited.start} to {cited.end} of the document's text",
            f"they are characters {now.start} to {now.end} now, and were {cited.start} to {cited.end}",
        ),
        _make_check(
            "page", now.pages == cited.pages, _format_pages(cited.pages), f"it is {_format_pages(now.pages)} now"
        ),
        _make_check(
            "boxes",
            now.boxes == cited.boxes,
            f"{len(cited.boxes)} boxes are unchanged" if cited.boxes else "the format has no boxes",
            "the boxes have changed",
        ),
    ]  # fmt: skip


def _make_check(name: Literal["chunk", "quote", "span", "page", "boxes"], holds: bool, yes: str, no: str) -> ProofCheck:
    return ProofCheck(check=name, result="passed" if holds else "failed", detail=yes if holds else no)


def _format_pages(pages: Sequence[int]) -> str:
    if not pages:
        return "the format has no pages"
    return f"page {pages[0]}" if len(pages) == 1 else f"pages {', '.join(map(str, pages))}"
