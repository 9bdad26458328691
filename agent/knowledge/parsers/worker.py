"""`python -m agent.knowledge.parsers.worker <limits as JSON>`: reads one JSON request a line, writes one JSON reply
a line. Started, watched and killed by `ParserPool`; nothing here is trusted to end well."""

import os
import sys
from typing import BinaryIO

from agent.core.errors import AgentError
from agent.knowledge.parsers import sandbox
from agent.knowledge.parsers.limits import ParserLimits
from agent.knowledge.parsers.reading import read_file
from agent.knowledge.parsers.registry import READERS
from agent.knowledge.parsers.wire import Problem, Reply, Request


def main() -> None:
    """Wall this process in, then serve until standard input ends."""
    limits = ParserLimits.model_validate_json(sys.argv[1])
    sandbox.leave_network()
    replies = _own_output()
    _load_libraries()
    sandbox.limit_memory(limits.memory_bytes)
    _send(replies, Reply())
    for line in sys.stdin.buffer:
        sandbox.limit_time(limits.timeout_s)
        _send(replies, _serve(Request.model_validate_json(line), limits))
        sandbox.limit_time(0)


def _serve(request: Request, limits: ParserLimits) -> Reply:
    try:
        output = read_file(
            request.input,
            max_bytes=limits.file_bytes,
            ocr_languages=limits.ocr_languages,
            parser=request.parser,
            seconds=limits.timeout_s,
            password=request.password,
        )
    except AgentError as error:
        return Reply(problem=Problem(code=error.code, message=error.message, details=error.details))
    except MemoryError:
        message = f"reading the file needs more than {limits.memory_bytes // 2**20} MB of memory"
        return Reply(problem=Problem(code="ERR_PARSER_CORRUPT", message=message, details={"reason": "memory"}))
    return Reply(output=output)


def _own_output() -> BinaryIO:
    """Standard output for replies alone; what libraries print there goes to standard error."""
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return replies


def _load_libraries() -> None:
    """Import every reader now: their address space is not the files' to pay for, and the first file not slower."""
    for reader in READERS:
        reader.load()
    from agent.knowledge.parsers.pdf import warm_up  # noqa: PLC0415 - after the network is gone

    warm_up()


def _send(replies: BinaryIO, reply: Reply) -> None:
    replies.write(reply.model_dump_json().encode() + b"\n")
    replies.flush()


if __name__ == "__main__":
    main()
