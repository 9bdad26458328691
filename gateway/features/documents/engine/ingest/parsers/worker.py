"""`python -m <this module> <limits as JSON>`: reads one JSON request a line, writes one JSON reply a line.

`ParserPool` starts, watches and kills it.
"""

import contextlib
import os
import sys
from typing import BinaryIO

from agent.core import process_limits
from agent.core.entry_points import load_extensions
from agent.core.errors import AgentError
from gateway.features.documents.engine.ingest.parsers.limits import ParserLimits
from gateway.features.documents.engine.ingest.parsers.read_file import read_file
from gateway.features.documents.engine.ingest.parsers.registry import READERS, Reader, register_reader
from gateway.features.documents.engine.ingest.parsers.worker_protocol import Problem, Request, WorkerReply


def main() -> None:
    """Limits this process, then serves until standard input ends."""
    limits = ParserLimits.model_validate_json(sys.argv[1])
    process_limits.leave_network()
    replies = _claim_stdout()
    _load_libraries()
    process_limits.limit_memory(limits.memory_bytes)
    _send(replies, WorkerReply())
    for line in sys.stdin.buffer:
        process_limits.limit_time(limits.timeout_s)
        _send(replies, _serve(Request.model_validate_json(line), limits))
        process_limits.limit_time(0)


def _serve(request: Request, limits: ParserLimits) -> WorkerReply:
    try:
        output = read_file(
            request.input,
            max_bytes=limits.file_bytes,
            ocr_languages=limits.ocr_languages,
            parser=request.parser,
            seconds=limits.timeout_s,
            password=request.password,
            is_measured=request.is_measured,
        )
    except AgentError as error:
        return WorkerReply(problem=Problem(code=error.code, message=error.message, details=error.details))
    except MemoryError:
        message = f"reading the file needs more than {limits.memory_bytes // 2**20} MB of memory"
        return WorkerReply(problem=Problem(code="ERR_PARSER_CORRUPT", message=message, details={"reason": "memory"}))
    return WorkerReply(output=output)


def _claim_stdout() -> BinaryIO:
    """Reserves standard output for replies; what libraries print goes to standard error."""
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return replies


def _load_libraries() -> None:
    """Imports every reader, so that their address space does not count against the first file's limit."""
    for reader in READERS:
        if reader.is_installed:
            reader.load()
    _load_extensions()
    from gateway.features.documents.engine.ingest.parsers.pdf import warm_up  # noqa: PLC0415 - after the network is gone

    warm_up()


def _load_extensions() -> None:
    """Adds the readers of installed packages. One whose library fails must not keep the others from reading."""
    for extension, reader in load_extensions("stepgate.parsers"):
        if not extension.error and isinstance(reader, Reader):
            with contextlib.suppress(Exception):
                reader.load()
                register_reader(reader)


def _send(replies: BinaryIO, reply: WorkerReply) -> None:
    replies.write(reply.model_dump_json().encode() + b"\n")
    replies.flush()


if __name__ == "__main__":
    main()
