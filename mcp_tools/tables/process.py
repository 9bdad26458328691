"""Runs the table worker: one process for each call, which is killed when it takes too long."""

import asyncio
import json
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import agent
from agent.core.errors import ToolError, ToolInputError, ToolTimeoutError
from agent.core.models import JsonObject
from agent.core.subprocesses import close_pipes, signal_group, wait_for_exit

MEMORY_BYTES = 1024 * 1024 * 1024
"""Address space of the worker in addition to what DuckDB reserves at its start; tables may fill half of it."""
KILL_DELAY_S = 2.0
"""The worker interrupts its query at the time limit. One that does not react is killed so many seconds later."""
MAX_REPLY_BYTES = 16 * 1024 * 1024
_COMMAND = (sys.executable, "-m", "mcp_tools.tables.worker")
_ENVIRONMENT = {"PYTHONPATH": str(Path(agent.__path__[0]).parent), "HOME": "/nonexistent", "LANG": "C.UTF-8"}
"""The worker gets no keys and passwords of the gateway."""

TableFormat = Literal["csv", "tsv", "xlsx", "parquet", "json"]
FORMATS: dict[str, TableFormat] = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".xlsx": "xlsx",
    ".xlsm": "xlsx",
    ".parquet": "parquet",
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json",
}
"""The formats by the end of a file's name."""


@dataclass(frozen=True, slots=True)
class TableFile:
    """An open file with tables, and its path as people know it."""

    descriptor: int
    path: str
    format: TableFormat


async def run_worker(files: Sequence[TableFile], sql: str | None, *, max_rows: int, timeout_s: float) -> JsonObject:
    """The tables of the files and, if there is SQL, its `columns`, `rows` and `more`.

    Raises `ToolInputError` for a file or SQL that cannot be used, `ToolTimeoutError`, and `ToolError` if the worker
    dies."""
    request = {
        "files": [{"descriptor": file.descriptor, "path": file.path, "format": file.format} for file in files],
        "sql": sql,
        "rows": max_rows,
        "seconds": timeout_s,
        "memory_bytes": MEMORY_BYTES,
    }
    process = await asyncio.create_subprocess_exec(
        *_COMMAND,
        stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env=_ENVIRONMENT, limit=MAX_REPLY_BYTES,
        pass_fds=[file.descriptor for file in files], start_new_session=True,
    )  # fmt: skip
    try:
        async with asyncio.timeout(timeout_s + KILL_DELAY_S):
            output = await _send_and_receive(process, json.dumps(request).encode())
    except TimeoutError as error:
        raise ToolTimeoutError(f"the query did not finish within {timeout_s:g} s") from error
    finally:
        signal_group(process, signal.SIGKILL)
        try:
            await wait_for_exit(process, KILL_DELAY_S)
        finally:
            close_pipes(process)
    return _parse_reply(output, timeout_s)


async def _send_and_receive(process: asyncio.subprocess.Process, request: bytes) -> bytes:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(request)
    process.stdin.write_eof()
    output = await process.stdout.read(MAX_REPLY_BYTES + 1)
    while chunk := await process.stdout.read(MAX_REPLY_BYTES):
        output += chunk
        if len(output) > MAX_REPLY_BYTES:
            raise ToolInputError(
                f"the result has more than {MAX_REPLY_BYTES // 2**20} MB; select fewer columns or rows"
            )
    return output


def _parse_reply(output: bytes, timeout_s: float) -> JsonObject:
    try:
        reply: JsonObject = json.loads(output)
    except ValueError as error:
        # The kernel has ended it: out of address space in native code, most often.
        raise ToolError("the query ended without a result; it probably needs too much memory") from error
    match reply.get("problem"):
        case None:
            return reply
        case "time":
            raise ToolTimeoutError(f"the query did not finish within {timeout_s:g} s")
        case "memory":
            raise ToolInputError("the query needs too much memory; select or aggregate less data")
        case problem:
            raise ToolInputError(str(problem))
