"""Reads one file into a `ParserOutput`: check, read, fall back. Runs inside a worker, which may crash."""

import time
from collections.abc import Sequence
from dataclasses import replace
from math import inf

from agent.core.errors import AgentError
from agent.core.extras import format_install_hint
from gateway.features.documents.engine.ingest.coverage import measure_coverage
from gateway.features.documents.engine.ingest.errors import ParserCorruptError, ParserEmptyError, ParserError
from gateway.features.documents.engine.ingest.parsers.draft import Draft, compute_document_id, make_parsed_chunks
from gateway.features.documents.engine.ingest.parsers.file_input import InputFile, open_input_file
from gateway.features.documents.engine.ingest.parsers.registry import Reader, find_missing_extra, list_readers
from gateway.features.documents.engine.ingest.parsers.sniff import check_input_file
from gateway.features.documents.engine.search.models import COMPLETE_SHARE, Coverage, ParserInput, ParserOutput

_MAX_MESSAGE = 500


def read_file(
    wanted: ParserInput,
    *,
    max_bytes: int,
    ocr_languages: str = "eng",
    parser: str | None = None,
    seconds: float = inf,
    password: str | None = None,
    is_measured: bool = True,
) -> ParserOutput:
    """Reads a file with the readers of its type, or with the named one, within `seconds`.

    `password` opens a protected PDF. `is_measured`: whether its coverage is measured, by a library that the file may
    have ended or held up. Raises the narrowest `ParserError`, and `MemoryError` at the memory limit.
    """
    began = time.perf_counter()
    readers = list_readers(wanted.file_type, parser)
    source = open_input_file(
        wanted, max_bytes=max_bytes, ocr_languages=ocr_languages, deadline=time.monotonic() + seconds
    )
    source = replace(source, password=password)
    check_input_file(source)
    try:
        draft, reader = _try_readers(readers, source)
    except ParserCorruptError as error:
        extra = find_missing_extra(source.file_type) if parser is None else None
        if extra is None or error.details.get("reason") != "damaged":
            raise
        message = f"{error.message}; another reader may read it, {format_install_hint(extra)}"
        raise ParserCorruptError(message, **error.details) from error
    document = compute_document_id(source.data)
    chunks = make_parsed_chunks(document, draft.blocks)
    if not chunks:
        raise ParserEmptyError(f"{source.name} holds no text", reason="no text")
    coverage = _measure(source, draft, [chunk.content for chunk in chunks]) if is_measured else None
    if not is_measured:
        draft.uncertainties.append(
            "how much of the file was read could not be measured (the measure ended the parser, or took too long)"
        )
    return ParserOutput(
        document_id=document,
        metadata={
            **draft.metadata,
            "file_name": source.name,
            "file_type": source.file_type,
            "bytes": len(source.data),
            "parser": reader.name,
            "ingestion_source": wanted.ingestion_source,
        },
        chunks=chunks,
        total_pages=max(draft.pages, 1),
        processing_time_ms=round((time.perf_counter() - began) * 1000, 3),
        uncertainties=tuple(dict.fromkeys(draft.uncertainties)),
        coverage=coverage,
    )


def _measure(source: InputFile, draft: Draft, texts: Sequence[str]) -> Coverage | None:
    """Measures how much of the file is in the document. What cannot be measured, or is left out, is an uncertainty."""
    try:
        encoding = str(draft.metadata.get("encoding", ""))
        # The text was read: its measure takes half of the time that is left, and never the file's whole time.
        deadline = (time.monotonic() + source.deadline) / 2
        coverage = measure_coverage(source.data, source.file_type, texts, encoding=encoding, deadline=deadline)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001 - Rust panics too: the text was read, and only its measure is missing
        draft.uncertainties.append(f"how much of the file was read could not be measured ({type(error).__name__})")
        return None
    if coverage is not None and coverage.share < COMPLETE_SHARE:
        draft.uncertainties.append(coverage.describe())
    return coverage


def _try_readers(readers: Sequence[Reader], source: InputFile) -> tuple[Draft, Reader]:
    """The first draft that has text.

    If there is none, damage that a reader reported counts more than an empty draft. Only damage is worth another
    reader: what is unsafe for one is unsafe for all.
    """
    problems: list[str] = []
    notes: dict[str, None] = {}
    failure: ParserError | None = None
    for reader in readers:
        try:
            draft = _read(reader, source)
        except ParserCorruptError as error:
            if error.details.get("reason") != "damaged":
                raise
            problems.append(f"{reader.name}: {error.message}")
            failure = failure or error
            continue
        if draft.blocks:
            draft.uncertainties.extend(f"read by {reader.name}, because {problem}" for problem in problems)
            return draft, reader
        problems.append(f"{reader.name} found no text")
        notes.update(dict.fromkeys(draft.uncertainties))
    message = "; ".join([f"{source.name} holds no text", *notes])
    raise failure or ParserEmptyError(message[:_MAX_MESSAGE], reason="no text")


def _read(reader: Reader, source: InputFile) -> Draft:
    """A reader's draft. Whatever its library raises, Rust panics included, is this file's failure."""
    try:
        return reader.load()(source)
    except (AgentError, MemoryError, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        message = f"{source.name} could not be read: {type(error).__name__}: {str(error)[:300]}"
        raise ParserCorruptError(message, reason="damaged") from error
