"""A bad file fails alone, with its own code, in bounded time and memory; the pool reads the next one."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from agent.core.errors import BusyError
from gateway.features.documents.engine.ingest.errors import ParserError, ParserTimeoutError, build_parser_error
from gateway.features.documents.engine.ingest.parsers import ParserLimits, ParserPool
from gateway.features.documents.engine.ingest.parsers import pool as parser_pool
from gateway.features.documents.engine.ingest.parsers.pool import _build_environment
from gateway.features.documents.engine.ingest.parsers.read_file import read_file
from gateway.features.documents.engine.search.models import FileType, ParserInput
from tests.support import documents
from tests.support.documents import Words

pytestmark = pytest.mark.asyncio(loop_scope="module")

DEEP = b"<div>" * 10_000 + b"deep" + b"</div>" * 10_000
BILLION_LAUGHS = b"""<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]><x>&b;</x>"""
COLD_WORKER = parser_pool.WORKER
"""A worker that is its own process: the pool looks at the memory of what it starts."""
SLOW = b"a,b\n" + b"1,2\n" * 1_500_000
"""A second or two, and some hundred megabytes of work."""


def wanted(path: Path, data: bytes, file_type: FileType) -> ParserInput:
    path.write_bytes(data)
    return ParserInput(file_path=str(path), file_type=file_type)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pool() -> AsyncIterator[ParserPool]:
    async with ParserPool(ParserLimits(timeout_s=20), processes=1) as pool:
        yield pool


@pytest.mark.parametrize(
    ("data", "file_type", "code", "reason"),
    [
        (b"", "pdf", "ERR_PARSER_EMPTY", "empty"),
        (b" \r\n\x00", "txt", "ERR_PARSER_EMPTY", "empty"),
        (b"<!-- nothing --><script>x()</script>", "html", "ERR_PARSER_EMPTY", "no text"),
        (documents.pdf([]), "pdf", "ERR_PARSER_EMPTY", "no text"),
        (documents.encrypted_pdf(), "pdf", "ERR_PARSER_ENCRYPTED", None),
        (documents.encrypted_office(), "docx", "ERR_PARSER_ENCRYPTED", None),
        (documents.encrypted_office(), "xlsx", "ERR_PARSER_ENCRYPTED", None),
        (documents.OLE + b"\x00" * 600, "docx", "ERR_PARSER_UNSUPPORTED", None),
        (b"<html><body>not a pdf</body></html>", "pdf", "ERR_PARSER_UNSUPPORTED", None),
        (documents.book({"s": [["x"]]}), "docx", "ERR_PARSER_UNSUPPORTED", None),
        (documents.pdf([Words("x")]), "txt", "ERR_PARSER_UNSUPPORTED", None),
        (b"\x89PNG\r\n\x1a\n" + bytes(100), "md", "ERR_PARSER_UNSUPPORTED", None),
        (b"text\x00\x01\x02with\x00\x00\x05bytes" * 20, "txt", "ERR_PARSER_UNSUPPORTED", None),
        (documents.word()[:-400], "docx", "ERR_PARSER_CORRUPT", "damaged"),
        (documents.pdf([Words("x")])[:200], "pdf", "ERR_PARSER_CORRUPT", "damaged"),
        (documents.office_zip("word/", {"document.xml": b"<broken"}), "docx", "ERR_PARSER_CORRUPT", "damaged"),
        (documents.office_zip("ppt/", {"presentation.xml": b"<p/>"}), "pptx", "ERR_PARSER_CORRUPT", "damaged"),
        (documents.office_zip("xl/", {"a.bin": bytes(2**25)}), "xlsx", "ERR_PARSER_CORRUPT", "zip bomb"),
        (
            documents.office_zip("word/", {"document.xml": BILLION_LAUGHS}),
            "docx",
            "ERR_PARSER_CORRUPT",
            "entity declaration",
        ),
        (
            documents.office_zip("word/", {"document.xml": BILLION_LAUGHS.decode().encode("utf-16")}),
            "docx",
            "ERR_PARSER_CORRUPT",
            "entity declaration",
        ),
        (DEEP, "html", "ERR_PARSER_CORRUPT", "nesting"),
        (documents.mail(text="", html=DEEP.decode()), "eml", "ERR_PARSER_CORRUPT", "nesting"),
        (b"no header at all", "eml", "ERR_PARSER_CORRUPT", "damaged"),
    ],
)
async def test_a_bad_file_fails_with_its_code_and_the_next_one_is_read(
    pool: ParserPool, tmp_path: Path, data: bytes, file_type: FileType, code: str, reason: str | None
) -> None:
    with pytest.raises(ParserError) as failure:
        await pool.parse(wanted(tmp_path / f"bad.{file_type}", data, file_type))
    assert (failure.value.code, failure.value.details.get("reason")) == (code, reason)
    output = await pool.parse(wanted(tmp_path / "good.txt", b"fine", "txt"))
    assert output.chunks[0].content == "fine"


async def test_a_parser_that_does_not_start_in_time_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parser_pool, "_START_SECONDS", 0)
    async with ParserPool(processes=1) as pool:
        with pytest.raises(ParserTimeoutError, match="longer than 0 s to start a parser") as failure:
            await pool.parse(wanted(tmp_path / "good.txt", b"fine", "txt"))
    assert failure.value.details["reason"] == "start"


async def test_what_a_mismatched_file_looks_like_is_said(pool: ParserPool, tmp_path: Path) -> None:
    with pytest.raises(ParserError, match="given as pdf and looks like html") as failure:
        await pool.parse(wanted(tmp_path / "page.pdf", b"<html>x</html>", "pdf"))
    assert failure.value.details == {"expected": "pdf", "found": "html"}


async def test_a_pdf_without_any_object_is_no_readable_pdf(pool: ParserPool, tmp_path: Path) -> None:
    with pytest.raises(ParserError, match="is not a readable PDF"):
        await pool.parse(wanted(tmp_path / "broken.pdf", b"%PDF-1.4 this is no pdf", "pdf"))


async def test_a_flipped_byte_in_an_office_file_is_found(pool: ParserPool, tmp_path: Path) -> None:
    data = bytearray(documents.word(paragraphs=["text " * 200]))
    place = data.find(b"word/document.xml") + 200
    data[place] ^= 0xFF
    with pytest.raises(ParserError) as failure:
        await pool.parse(wanted(tmp_path / "flipped.docx", bytes(data), "docx"))
    assert failure.value.code == "ERR_PARSER_CORRUPT"


async def test_a_missing_file_is_this_files_failure(pool: ParserPool) -> None:
    with pytest.raises(ParserError, match="cannot be read") as failure:
        await pool.parse(ParserInput(file_path="/nowhere/file.txt", file_type="txt"))
    assert failure.value.details == {"reason": "unreadable"}


async def test_a_slow_file_is_given_up_in_time(tmp_path: Path) -> None:
    async with ParserPool(ParserLimits(timeout_s=0.3), processes=1) as pool:
        good = wanted(tmp_path / "good.txt", b"fine", "txt")
        await pool.parse(good)
        began = time.monotonic()
        with pytest.raises(ParserError, match=r"longer than 0\.3 s") as failure:
            await pool.parse(wanted(tmp_path / "slow.csv", SLOW, "csv"))
        assert failure.value.code == "ERR_TIMEOUT"
        assert time.monotonic() - began < 5
        assert (await pool.parse(good)).chunks[0].content == "fine"


async def test_a_file_that_needs_too_much_memory_fails_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parser_pool, "WORKER", COLD_WORKER)
    async with ParserPool(ParserLimits(memory_bytes=2**26), processes=1) as pool:
        with pytest.raises(ParserError) as failure:
            await pool.parse(wanted(tmp_path / "large.csv", SLOW, "csv"))
        assert failure.value.code == "ERR_PARSER_CORRUPT"
        assert failure.value.details["reason"] in {"memory", "parser died"}
        assert (await pool.parse(wanted(tmp_path / "good.txt", b"fine", "txt"))).chunks[0].content == "fine"


async def test_a_stream_that_unfolds_without_end_is_left_at_the_memory_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parser_pool, "WORKER", COLD_WORKER)
    async with ParserPool(ParserLimits(memory_bytes=2**27), processes=1) as pool:
        with pytest.raises(ParserError, match="needs more than 128 MB of memory") as failure:
            await pool.parse(wanted(tmp_path / "bomb.pdf", documents.stream_bomb(600), "pdf"))
        assert failure.value.details["reason"] == "memory"
        assert (await pool.parse(wanted(tmp_path / "good.txt", b"fine", "txt"))).chunks[0].content == "fine"


async def test_files_and_results_have_a_largest_size(tmp_path: Path) -> None:
    async with ParserPool(ParserLimits(file_bytes=10_000_000, output_bytes=2**16), processes=1) as pool:
        for data in (bytes(10_000_001), b"word " * 100_000):
            with pytest.raises(ParserError) as failure:
                await pool.parse(wanted(tmp_path / "large.txt", data, "txt"))
            assert failure.value.code == "ERR_TOO_LARGE"
        assert (await pool.parse(wanted(tmp_path / "good.txt", b"fine", "txt"))).chunks[0].content == "fine"


FLOOD = """print("{}", flush=True); input(); print('{"problem": {"code": "ERR_PARSER_CORRUPT", "message": "no"}}')
print("word" * 2**20)"""
"""A worker that goes on writing after its reply: more than its pipe and its reader together take."""


async def test_a_worker_whose_pipe_nobody_empties_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parser_pool, "WORKER", (sys.executable, "-c", FLOOD))
    async with asyncio.timeout(30), ParserPool(ParserLimits(output_bytes=2**16), processes=1) as pool:
        with pytest.raises(ParserError, match="no"):
            await pool.parse(wanted(tmp_path / "any.txt", b"words", "txt"))
        (worker,) = pool._workers
        while not worker._process.stdout._paused:  # type: ignore[union-attr]  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.01)
    with pytest.raises(ProcessLookupError):
        os.kill(worker._process.pid, 0)


async def _busy_worker(pool: ParserPool) -> int:
    async with asyncio.timeout(20):
        while not any(worker.files for worker in pool._workers):  # noqa: ASYNC110 - the pool tells nobody
            await asyncio.sleep(0.01)
    return next(iter(pool._workers))._process.pid


async def test_a_parser_that_dies_fails_its_file_alone(tmp_path: Path) -> None:
    async with ParserPool(processes=1) as pool:
        reading = asyncio.create_task(pool.parse(wanted(tmp_path / "slow.csv", SLOW, "csv")))
        os.kill(await _busy_worker(pool), signal.SIGSEGV)
        with pytest.raises(ParserError, match="the parser crashed") as failure:
            await reading
        assert failure.value.details == {"reason": "parser died", "signal": "SIGSEGV"}
        assert (await pool.parse(wanted(tmp_path / "good.txt", b"fine", "txt"))).chunks[0].content == "fine"


async def test_cancelling_ends_the_worker_and_frees_its_place(tmp_path: Path) -> None:
    async with ParserPool(processes=1) as pool:
        reading = asyncio.create_task(pool.parse(wanted(tmp_path / "slow.csv", SLOW, "csv")))
        process = await _busy_worker(pool)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)
        assert (await pool.parse(wanted(tmp_path / "good.txt", b"fine", "txt"))).chunks[0].content == "fine"


async def test_closing_ends_everything(tmp_path: Path) -> None:
    pool = ParserPool(processes=1)
    reading = asyncio.create_task(pool.parse(wanted(tmp_path / "slow.csv", SLOW, "csv")))
    await _busy_worker(pool)
    await pool.aclose()
    with pytest.raises(BusyError):
        await reading
    with pytest.raises(BusyError):
        await pool.parse(wanted(tmp_path / "good.txt", b"fine", "txt"))


async def test_a_worker_gets_no_secrets() -> None:
    environment = _build_environment({"PATH": "/bin", "LANG": "C.UTF-8", "AGENT_API_KEY": "secret"})
    assert (environment["PATH"], environment["LANG"]) == ("/bin", "C.UTF-8")
    assert "secret" not in environment.values()


async def test_a_worker_has_no_network() -> None:
    program = (
        "import socket, sys; server = socket.create_server(('127.0.0.1', 0))\n"
        "from agent.core.process_limits import leave_network\n"
        "if not leave_network(): sys.exit(7)\n"
        "try: socket.create_connection(server.getsockname(), timeout=2)\n"
        "except OSError: sys.exit(0)\n"
        "sys.exit(1)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], timeout=20, check=False)  # noqa: ASYNC221
    if done.returncode == 7:
        pytest.skip("this kernel lets nobody leave the network")
    assert done.returncode == 0


async def test_the_next_reader_takes_over_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(source: object) -> None:
        raise ValueError(f"cannot: {type(source).__name__}")

    monkeypatch.setattr("gateway.features.documents.engine.ingest.parsers.word.read_word", broken)
    output = read_file(wanted(tmp_path / "file.docx", documents.word(), "docx"), max_bytes=10**6)
    assert output.metadata["parser"] == "kreuzberg"
    assert output.uncertainties == (
        "read by kreuzberg, because python-docx: file.docx could not be read: ValueError: cannot: InputFile",
    )


async def test_an_unknown_code_on_the_wire_is_a_damaged_file() -> None:
    assert build_parser_error("ERR_NEW", "what", {}).code == "ERR_PARSER_CORRUPT"
