"""One file from bytes to `ParserOutput`: look, read, fall back. Runs inside a worker, where it may die."""

import time
from collections.abc import Sequence
from dataclasses import replace
from math import inf

from agent.core.errors import AgentError
from agent.knowledge.errors import ParserCorruptError, ParserEmptyError, ParserError
from agent.knowledge.models import ParserInput, ParserOutput
from agent.knowledge.parsers.draft import Draft, document_id, parsed_chunks
from agent.knowledge.parsers.registry import Reader, readers_of
from agent.knowledge.parsers.sniff import check_source
from agent.knowledge.parsers.source import Source, open_source


def read_file(
    wanted: ParserInput,
    *,
    max_bytes: int,
    ocr_languages: str = "eng",
    parser: str | None = None,
    seconds: float = inf,
    password: str | None = None,
) -> ParserOutput:
    """Read a file with the readers of its type, or with the named one, within so many seconds. `password` opens a
    protected PDF. Raises the narrowest `ParserError`, and `MemoryError` when the limit on memory is reached."""
    began = time.perf_counter()
    readers = readers_of(wanted.file_type, parser)
    source = open_source(wanted, max_bytes=max_bytes, ocr_languages=ocr_languages, deadline=time.monotonic() + seconds)
    source = replace(source, password=password)
    check_source(source)
    draft, reader = _first_success(readers, source)
    document = document_id(source.data)
    chunks = parsed_chunks(document, draft.blocks)
    if not chunks:
        raise ParserEmptyError(f"{source.name} holds no text", reason="no text")
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
    )


def _first_success(readers: Sequence[Reader], source: Source) -> tuple[Draft, Reader]:
    """The first draft with text in it. When there is none, damage that a reader saw counts more than an empty draft;
    only damage is worth another try: what is unsafe for one reader is unsafe for all."""
    problems: list[str] = []
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
    raise failure or ParserEmptyError(f"{source.name} holds no text", reason="no text")


def _read(reader: Reader, source: Source) -> Draft:
    """A reader's draft; whatever its library raises, a Rust panic included, is this file's failure."""
    try:
        return reader.load()(source)
    except (AgentError, MemoryError, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        message = f"{source.name} could not be read: {type(error).__name__}: {str(error)[:300]}"
        raise ParserCorruptError(message, reason="damaged") from error
