"""What connectors share: patience, whole downloads, what a status means, and workspaces that leave nothing behind."""

import asyncio
import gzip
import hashlib
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import format_datetime
from pathlib import Path

import pytest
from aiohttp import web

from agent.core.errors import StoreFullError
from agent.net import SafeClient
from gateway.features.documents.engine.ingest.connectors.content_types import detect_file_type, read_charset
from gateway.features.documents.engine.ingest.connectors.source_client import (
    ConnectorTransientError,
    Download,
    RetryPolicy,
    SourceClient,
    SourceResponse,
)
from gateway.features.documents.engine.ingest.connectors.workspace import open_workspace
from gateway.features.documents.engine.ingest.errors import ConnectorAuthError, ConnectorError, ConnectorNotFoundError
from tests.support.website import OTHER_HOST, FakeClock, Page, Website

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
BODY = bytes(range(256)) * 4000
"""A megabyte in which every place is told from the next."""


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def wire(client: SafeClient, clock: FakeClock) -> SourceClient:
    return SourceClient(client, RetryPolicy(sleep=clock.sleep, now=lambda: NOW), timeout_s=10, silence_s=5)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def content(path: Path) -> bytes:
    return path.read_bytes()


async def download(wire: SourceClient, url: str, target: Path, max_bytes: int = 10_000_000) -> Download:
    done = await wire.download(url, target, max_bytes=max_bytes)
    assert isinstance(done, Download)
    return done


def busy(status: int = 429, **headers: str) -> Page:
    return Page(b"later", status=status, headers={name.replace("_", "-"): value for name, value in headers.items()})


# Patience


@pytest.mark.row("S003-11")
async def test_429_429_200_succeeds_with_growing_delays(
    site: Website, wire: SourceClient, clock: FakeClock, tmp_path: Path
) -> None:
    site.put("/a", busy(), busy(), Page(b"at last"))
    done = await download(wire, site.at("/a"), tmp_path / "a")
    assert content(done.path) == b"at last"
    first, second = clock.slept
    assert 0 < first < second


@pytest.mark.parametrize("chance", [0.0, 0.999])
def test_each_wait_is_longer_than_the_one_before_whatever_the_chance(chance: float) -> None:
    lucky, unlucky = RetryPolicy(chance=lambda: 0.0), RetryPolicy(chance=lambda: 0.999)
    assert all(unlucky.wait_s(number) < lucky.wait_s(number + 1) for number in range(5))
    assert RetryPolicy(chance=lambda: chance).wait_s(50) <= 75


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("7", 7.0),
        (format_datetime(NOW.replace(second=30), usegmt=True), 30.0),
        (format_datetime(NOW.replace(hour=11), usegmt=True), 0.0),
    ],
    ids=["seconds", "a date", "a date gone by"],
)
async def test_retry_after_is_obeyed(
    site: Website, wire: SourceClient, clock: FakeClock, header: str, seconds: float
) -> None:
    site.put("/a", busy(503, retry_after=header), Page(b"at last"))
    await wire.read(site.at("/a"), max_bytes=100)
    assert clock.slept[0] == pytest.approx(seconds) if seconds else clock.slept[0] < 1.5


@pytest.mark.parametrize("header", ["soon", "-5", "", "Thu, 99 Xxx 2026", "1e9", "٣"])
def test_an_odd_retry_after_is_none(header: str) -> None:
    assert RetryPolicy(now=lambda: NOW).read_retry_after(header) is None


@pytest.mark.parametrize("header", ["3600", "9" * 500, "Fri, 01 Jan 2100 00:00:00 GMT"])
async def test_who_asks_for_too_much_patience_is_given_up_at_once(
    site: Website, wire: SourceClient, clock: FakeClock, header: str
) -> None:
    site.put("/a", busy(retry_after=header))
    with pytest.raises(ConnectorTransientError, match="429"):
        await wire.read(site.at("/a"), max_bytes=100)
    assert clock.slept == []
    assert len(site.asked) == 1


async def test_patience_ends(site: Website, wire: SourceClient, clock: FakeClock) -> None:
    site.put("/a", busy(503))
    with pytest.raises(ConnectorTransientError, match="503"):
        await wire.read(site.at("/a"), max_bytes=100)
    assert len(site.asked) == 5
    assert clock.slept == sorted(clock.slept)


@pytest.mark.row("S003-43", "S003-44")
@pytest.mark.parametrize(
    ("status", "kind", "code"),
    [
        (401, ConnectorAuthError, "ERR_CONNECTOR_AUTH"),
        (403, ConnectorAuthError, "ERR_CONNECTOR_AUTH"),
        (404, ConnectorNotFoundError, "ERR_CONNECTOR_NOT_FOUND"),
        (410, ConnectorNotFoundError, "ERR_CONNECTOR_NOT_FOUND"),
        (400, ConnectorError, "ERR_CONNECTOR_FAILED"),
        (302, ConnectorError, "ERR_CONNECTOR_FAILED"),
    ],
)
async def test_what_a_status_means(
    site: Website, wire: SourceClient, tmp_path: Path, status: int, kind: type[ConnectorError], code: str
) -> None:
    site.put("/a", Page(b"no", status=status))
    with pytest.raises(ConnectorError, match=str(status)) as caught:
        await wire.download(site.at("/a"), tmp_path / "a", max_bytes=100)
    assert (type(caught.value), caught.value.code) == (kind, code)
    assert len(site.asked) == 1
    assert names(tmp_path) == []


async def test_another_judge_sees_the_error_s_body(site: Website, client: SafeClient, clock: FakeClock) -> None:
    def judge(_: str, status: int, __: Mapping[str, str], body: bytes) -> ConnectorError:
        return ConnectorTransientError("slowly") if b"rateLimit" in body else ConnectorError(str(status))

    site.put("/a", Page(b"rateLimitExceeded" + b"x" * 1_000_000, status=403), Page(b"at last"))
    wire = SourceClient(client, RetryPolicy(sleep=clock.sleep), error_for_status=judge)
    assert (await wire.read(site.at("/a"), max_bytes=100)).body == b"at last"


# Whole downloads


@pytest.mark.row("S003-14")
async def test_a_download_has_the_checksum_of_its_bytes(site: Website, wire: SourceClient, tmp_path: Path) -> None:
    site.put("/a.bin", Page(BODY, kind="application/pdf"))
    done = await download(wire, site.at("/a.bin"), tmp_path / "a")
    assert content(done.path) == BODY
    assert (done.size, done.checksum) == (len(BODY), hashlib.sha256(BODY).hexdigest())
    assert done.headers["content-type"] == "application/pdf"
    assert names(tmp_path) == ["a"]


@pytest.mark.row("S003-13")
async def test_a_body_shorter_than_promised_is_handed_to_nobody(
    site: Website, wire: SourceClient, tmp_path: Path
) -> None:
    site.put("/a", Page(BODY, cuts=[500_000] * 5))
    with pytest.raises(ConnectorError, match="on every attempt"):
        await wire.download(site.at("/a"), tmp_path / "a", max_bytes=10_000_000)
    assert len(site.asked) == 2, "one that always ends at the same place is not waited for"
    assert names(tmp_path) == []
    site.put("/b", *(Page(BODY, cuts=[cut]) for cut in (500_000, 400_000, 300_000, 200_000, 100_000)))
    with pytest.raises(ConnectorTransientError):
        await wire.download(site.at("/b"), tmp_path / "b", max_bytes=10_000_000)
    assert len(site.asked) == 2 + 5


@pytest.mark.row("S003-13")
async def test_what_was_cut_off_is_continued_where_the_source_allows_it(
    site: Website, wire: SourceClient, tmp_path: Path
) -> None:
    site.put("/a", Page(BODY, cuts=[400_000, 300_000], ranges=True))
    done = await download(wire, site.at("/a"), tmp_path / "a")
    assert content(done.path) == BODY
    assert (done.checksum, done.resumed) == (hashlib.sha256(BODY).hexdigest(), 2)
    starts = [int(one.headers["range"][6:-1]) for one in site.asked[1:]]
    assert 0 < starts[0] < starts[1] < len(BODY)


async def test_else_it_is_begun_anew(site: Website, wire: SourceClient, tmp_path: Path) -> None:
    site.put("/a", Page(BODY, cuts=[400_000]))
    done = await download(wire, site.at("/a"), tmp_path / "a")
    assert (content(done.path), done.resumed) == (BODY, 0)


async def test_a_source_that_changed_in_between_is_begun_anew(
    site: Website, wire: SourceClient, tmp_path: Path
) -> None:
    site.put("/a", Page(BODY, cuts=[400_000], ranges=True), Page(b"new", ranges=True))
    done = await download(wire, site.at("/a"), tmp_path / "a")
    assert content(done.path) == b"new"


@pytest.mark.parametrize("content_range", ["bytes 7-1023999/1024000", "bytes=1", "", "bytes 0-1/*"])
async def test_the_wrong_continuation_is_not_taken(
    site: Website, wire: SourceClient, tmp_path: Path, content_range: str
) -> None:
    wrong = Page(b"something else", status=206, headers={"content-range": content_range})
    site.put("/a", Page(BODY, cuts=[400_000], ranges=True), wrong, Page(BODY))
    done = await download(wire, site.at("/a"), tmp_path / "a")
    assert content(done.path) == BODY


async def test_nothing_left_to_continue_with_is_begun_anew(site: Website, wire: SourceClient, tmp_path: Path) -> None:
    site.put("/a", Page(BODY, cuts=[400_000], ranges=True), Page(b"", status=416), Page(b"short"))
    done = await download(wire, site.at("/a"), tmp_path / "a")
    assert content(done.path) == b"short"


async def test_a_compressed_body_that_ends_too_early_is_no_body(
    site: Website, wire: SourceClient, tmp_path: Path
) -> None:
    packed = gzip.compress(BODY)
    site.put("/a", Page(packed[: len(packed) // 2], headers={"content-encoding": "gzip"}))
    with pytest.raises(ConnectorTransientError, match="ends too early"):
        await wire.download(site.at("/a"), tmp_path / "a", max_bytes=10_000_000)
    site.put("/a", Page(packed, headers={"content-encoding": "gzip"}))
    done = await download(wire, site.at("/a"), tmp_path / "a")
    assert content(done.path) == BODY


@pytest.mark.parametrize("size", [99, 100, 101, 1_000_000])
async def test_the_byte_limit(site: Website, wire: SourceClient, tmp_path: Path, size: int) -> None:
    site.put("/a", Page(b"x" * size))
    if size <= 100:
        assert (await download(wire, site.at("/a"), tmp_path / "a", max_bytes=100)).size == size
        return
    with pytest.raises(ConnectorError, match="larger than 100 bytes"):
        await wire.download(site.at("/a"), tmp_path / "a", max_bytes=100)
    assert len(site.asked) == 1
    assert names(tmp_path) == []


async def test_not_modified_and_not_wanted_give_no_file(site: Website, wire: SourceClient, tmp_path: Path) -> None:
    page = Page(BODY, tagged=True)
    site.put("/a", page)

    async def headers(_: str) -> dict[str, str]:
        return {"if-none-match": page.etag}

    same = await wire.download(site.at("/a"), tmp_path / "a", max_bytes=10, headers=headers)
    assert isinstance(same, SourceResponse)
    assert same.status == 304
    no = await wire.download(site.at("/a"), tmp_path / "a", max_bytes=10, wanted=lambda _, __: False)
    assert isinstance(no, SourceResponse)
    assert names(tmp_path) == []


async def test_a_full_disk_says_so(
    site: Website, wire: SourceClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`/dev/full` is a disk without any room."""
    monkeypatch.setattr(Path, "open", lambda *_, **__: open("/dev/full", "wb", buffering=0))  # noqa: PTH123, SIM115
    site.put("/a", Page(BODY))
    with pytest.raises(StoreFullError, match="free some space"):
        await wire.download(site.at("/a"), tmp_path / "a", max_bytes=10_000_000)
    assert names(tmp_path) == []


async def test_an_abandoned_download_leaves_nothing(site: Website, wire: SourceClient, tmp_path: Path) -> None:
    begun, never = asyncio.Event(), asyncio.Event()

    async def stuck(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-length": "1000"})
        await response.prepare(request)
        await response.write(b"x" * 10)
        begun.set()
        await never.wait()
        return response

    site.put("/a", stuck)
    task = asyncio.create_task(wire.download(site.at("/a"), tmp_path / "a", max_bytes=10_000))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert names(tmp_path) == []


@pytest.mark.parametrize(("timeout_s", "silence_s"), [(0.3, 10.0), (10.0, 0.3)], ids=["the whole", "silence"])
async def test_a_source_that_never_ends_is_left(
    site: Website, client: SafeClient, clock: FakeClock, tmp_path: Path, timeout_s: float, silence_s: float
) -> None:
    never = asyncio.Event()

    async def drip(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while timeout_s < silence_s:
            await response.write(b".")
            await asyncio.sleep(0.01)
        await never.wait()
        return response

    site.put("/a", drip)
    wire = SourceClient(client, RetryPolicy(attempts=2, sleep=clock.sleep), timeout_s=timeout_s, silence_s=silence_s)
    with pytest.raises(ConnectorTransientError, match=r"0\.3 s"):
        await wire.download(site.at("/a"), tmp_path / "a", max_bytes=10_000_000)
    assert len(clock.slept) == 1, "a second attempt; on a busy machine its time is over before the site is asked"


@pytest.mark.row("S003-49")
@pytest.mark.parametrize("whole", [True, False], ids=["a download", "read"])
async def test_a_source_that_does_not_answer_at_all_is_asked_once_more_and_then_left(
    site: Website, client: SafeClient, clock: FakeClock, tmp_path: Path, whole: bool
) -> None:
    """Trouble that tells of itself is over in a moment; silence costs its whole time each time."""

    async def silent(_: web.Request) -> web.StreamResponse:
        await asyncio.Event().wait()
        raise AssertionError

    site.put("/a", silent)
    wire = SourceClient(client, RetryPolicy(sleep=clock.sleep), timeout_s=10, silence_s=0.3)
    with pytest.raises(ConnectorTransientError, match=r"silent for longer than 0\.3 s") as told:
        await (
            wire.download(site.at("/a"), tmp_path / "a", max_bytes=9)
            if whole
            else wire.read(site.at("/a"), max_bytes=9)
        )
    assert (len(site.asked), told.value.to_failure().recoverable) == (2, True)


async def test_a_source_that_answers_the_second_time_is_read(
    site: Website, client: SafeClient, clock: FakeClock
) -> None:
    async def at_first_silent(_: web.Request) -> web.StreamResponse:
        if len(site.asked) == 1:
            await asyncio.Event().wait()
        return web.Response(body=b"here")

    site.put("/a", at_first_silent)
    wire = SourceClient(client, RetryPolicy(sleep=clock.sleep), timeout_s=30, silence_s=1)
    assert (await wire.read(site.at("/a"), max_bytes=9)).body == b"here"


# Redirects and refused addresses


async def test_headers_are_asked_for_at_each_address(site: Website, wire: SourceClient) -> None:
    """A token goes to the host it is for, and to nobody it sends us on to."""
    site.put("/a", Page(status=302, headers={"location": site.at("/b", OTHER_HOST)}))
    site.put("/b", Page(b"here"))

    async def headers(url: str) -> dict[str, str]:
        return {} if OTHER_HOST in url else {"authorization": "Bearer secret"}

    reply = await wire.read(site.at("/a"), max_bytes=100, headers=headers)
    assert (reply.url, reply.body) == (site.at("/b", OTHER_HOST), b"here")
    assert [one.headers.get("authorization") for one in site.asked] == ["Bearer secret", None]


async def test_redirects_are_followed_to_their_limit(site: Website, wire: SourceClient) -> None:
    site.put("/a", Page(status=302, headers={"location": "/b"}))
    site.put("/b", Page(status=302, headers={"location": "/a"}))
    with pytest.raises(ConnectorError, match="redirects more than"):
        await wire.read(site.at("/a"), max_bytes=100)
    assert len(site.asked) == 6


@pytest.mark.parametrize("inside", ["http://10.0.0.1/", "http://169.254.169.254/latest/", "file:///etc/passwd"])
async def test_an_address_of_the_inside_is_refused_without_a_second_try(
    site: Website, wire: SourceClient, clock: FakeClock, inside: str
) -> None:
    site.put("/a", Page(status=302, headers={"location": inside}))
    for url in (site.at("/a"), inside):
        with pytest.raises(ConnectorError, match="refused"):
            await wire.read(url, max_bytes=100)
    assert clock.slept == []


# Types


@pytest.mark.parametrize(
    ("header", "name", "kind"),
    [
        ("text/html; charset=utf-8", "http://h/report.pdf", "html"),
        ("Application/PDF", "http://h/show?id=1", "pdf"),
        ("application/octet-stream", "http://h/a%2Fb/Report.PDF?x=.txt", "pdf"),
        ("text/plain", "http://h/data.csv", "csv"),
        ("text/plain", "http://h/LICENSE", "txt"),
        ("application/rss+xml", "http://h/feed", "txt"),
        ("application/x-ndjson", "http://h/rows", "txt"),
        ("image/svg+xml", "http://h/a.svg", None),
        ("image/png", "http://h/a.txt", None),
        (None, "notes.md", "md"),
        (None, "notes", None),
    ],
)
def test_the_type_of_a_document(header: str | None, name: str, kind: str | None) -> None:
    assert detect_file_type(header, name) == kind


def test_the_charset_of_a_document() -> None:
    assert read_charset('text/html; Charset="ISO-8859-1"') == "iso-8859-1"
    assert read_charset("text/html") is None
    assert read_charset(None) is None


# Workspaces


async def test_a_workspace_is_gone_afterwards(tmp_path: Path) -> None:
    async with open_workspace(tmp_path / "w") as path:
        (path / "a").write_text("x")
        assert path.parent == tmp_path / "w"
        assert str(os.getpid()) in path.name
    assert names(tmp_path / "w") == []


async def test_a_workspace_is_gone_after_a_failure_too(tmp_path: Path) -> None:
    async def fail() -> None:
        async with open_workspace(tmp_path) as path:
            (path / "a").write_text("x")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        await fail()
    assert names(tmp_path) == []


_CRASHED = """
import asyncio, os, pathlib, sys
from gateway.features.documents.engine.ingest.connectors.workspace import open_workspace
async def main():
    async with open_workspace(pathlib.Path(sys.argv[1])) as path:
        (path / "a").write_text("x")
        print(path, flush=True)
        sys.stdin.read()
asyncio.run(main())
"""


async def test_the_workspaces_of_the_living_stay_and_those_of_the_dead_go(tmp_path: Path) -> None:
    def other() -> tuple["subprocess.Popen[str]", Path]:
        process = subprocess.Popen(
            [sys.executable, "-c", _CRASHED, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        return process, Path(process.stdout.readline().strip())

    process, theirs = await asyncio.to_thread(other)
    try:
        async with open_workspace(tmp_path):
            assert (theirs / "a").exists()
        process.send_signal(signal.SIGKILL)
        await asyncio.to_thread(process.wait)
        assert (theirs / "a").exists()
        async with open_workspace(tmp_path) as ours:
            assert names(tmp_path) == [ours.name, f"{ours.name}.lock"]
    finally:
        process.kill()
        process.communicate()
