"""Sources of every type, read through the real door: what arrives, patience, and what is said of failures."""

import asyncio
import hashlib
import itertools
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from aiohttp import web

from gateway.features.documents import bootstrap_documents
from gateway.features.documents.engine.ingest.connectors.drive import DriveConnector
from gateway.features.documents.engine.ingest.connectors.source_client import RetryPolicy, SourceClient
from gateway.features.documents.engine.ingest.parsers import pool
from tests.integration.conftest import Serve
from tests.support import documents
from tests.support.documents import Words
from tests.support.drive_case import DriveCase, drive_case
from tests.support.website import Page, Website

TEXT = "The sauna opens at seven in the evening."


@asynccontextmanager
async def site_and_client(serve: Serve, **options: Any) -> AsyncIterator[tuple[Website, httpx.AsyncClient]]:
    """A website, and a client of a gateway that may ask it."""
    async with Website() as site:
        options = {"fetch_allow_hosts": (f"127.0.0.1:{site.port}",), **options}
        async with serve(**options) as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
            yield site, client


async def ingest(client: httpx.AsyncClient, kind: str, start: str, **source: Any) -> Any:
    """The job at its end."""
    body = {"source_type": kind, "source_identifier": start, **source}
    answer = await client.post("/v1/collections/club/ingest", json=body)
    assert answer.status_code == 202, answer.text
    return (await client.get(f"/v1/jobs/{answer.json()['id']}", params={"wait_s": 30})).json()


async def list_documents(client: httpx.AsyncClient) -> dict[str, Any]:
    """The documents of the collection by name."""
    answer = await client.get("/v1/collections/club/documents")
    return {one["name"]: one for one in answer.json()["data"]} if answer.is_success else {}


async def show(client: httpx.AsyncClient, document: Any) -> Any:
    return (await client.get(f"/v1/documents/{document['document_id']}")).json()


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds between attempts, which do not pass."""
    return skip_pauses(monkeypatch)


def skip_pauses(monkeypatch: pytest.MonkeyPatch, silence_s: float = 30) -> list[float]:
    waited: list[float] = []

    async def pause(seconds: float) -> None:
        waited.append(seconds)

    policy = RetryPolicy(sleep=pause, chance=lambda: 0.5)
    monkeypatch.setattr(
        bootstrap_documents, "SourceClient", lambda client: SourceClient(client, policy, silence_s=silence_s)
    )
    return waited


@pytest.fixture
async def drive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[DriveCase]:
    """A drive, which the gateway reads in place of Google's."""
    folder = tmp_path / "drive"
    folder.mkdir()
    async with drive_case(folder) as case:
        monkeypatch.setattr(bootstrap_documents, "DriveConnector", partial(DriveConnector, base_url=case.server.url))
        yield case


@pytest.mark.row("S003-08", "S003-09", "S003-14")
async def test_local_files_and_pages_arrive_whole_with_size_checksum_and_place(serve: Serve, tmp_path: Path) -> None:
    folder = tmp_path / "data" / "files" / "docs"
    folder.mkdir(parents=True)
    (folder / "sauna.txt").write_text(TEXT)
    async with site_and_client(serve) as (site, client):
        page = site.html("/boats", text="A boat costs 90 crowns.")
        local = await ingest(client, "local", "docs", recursive=True)
        remote = await ingest(client, "web", site.at("/boats"))
        assert (local["report"]["read"], remote["report"]["read"]) == (1, 1), (local, remote)
        found = await list_documents(client)
        sauna = found.pop("sauna.txt")
        (boats,) = found.values()
        for document, data, kind in ((sauna, TEXT.encode(), "local"), (boats, page.body, "web")):
            assert document["checksum"] == hashlib.sha256(data).hexdigest()
            assert (document["size"], document["source_type"]) == (len(data), kind)
        assert Path(sauna["source"]).is_absolute()
        assert boats["url"] == site.at("/boats")
        metadata = (await show(client, boats))["source_metadata"]
        assert (metadata["final_url"], metadata["headers"]["content-type"].partition(";")[0]) == (
            boats["url"],
            "text/html",
        )
        assert (await show(client, sauna))["source_metadata"], "what the folder says of the file"
        for document, text in ((sauna, TEXT), (boats, "A boat costs 90 crowns.")):
            assert text in (await show(client, document))["chunks"][0]["text"]


@pytest.mark.row("S003-08", "S003-09", "S003-14")
async def test_a_file_of_a_drive_arrives_with_what_the_drive_says_of_it(serve: Serve, drive: DriveCase) -> None:
    content = documents.pdf([Words("The harbour closes at noon.")])
    drive.server.folder("folder-top-0")
    drive.server.file("file-report", "Report.pdf", content, parent="folder-top-0")
    host = drive.server.url.partition("//")[2]
    options = {"fetch_allow_hosts": (host,), "credentials_path": drive.credentials_path}
    async with serve(**options) as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        job = await ingest(client, "gdrive", "folder-top-0", credentials_id="account", recursive=True)
        assert job["report"]["read"] == 1, job
        report = (await list_documents(client))["Report.pdf"]
        assert (report["source_type"], report["size"]) == ("gdrive", len(content))
        assert report["checksum"] == hashlib.sha256(content).hexdigest()
        assert report["url"] == "https://drive.google.com/file/d/file-report/view?usp=drivesdk"
        shown = await show(client, report)
        assert "The harbour closes at noon." in shown["chunks"][0]["text"]
        assert shown["source_metadata"], "what the drive says of it"
        again = await ingest(client, "gdrive", "folder-top-0", credentials_id="account", recursive=True)
        assert (again["report"]["unchanged"], len(drive.server.calls("media"))) == (1, 1), "its version is known"
    assert drive.server.private_key not in json.dumps([job, report])


@pytest.mark.row("S003-11")
async def test_a_busy_source_is_asked_again_ever_later_and_as_late_as_it_asks(
    serve: Serve, pauses: list[float]
) -> None:
    async with site_and_client(serve) as (site, client):
        busy = Page(b"later", status=429)
        site.put("/a", busy, busy, Page(TEXT.encode(), kind="text/plain"))
        assert (await ingest(client, "web", site.at("/a")))["report"]["read"] == 1
        # Between two attempts lie the pause of the policy and what is left of the site's own pause.
        first, second = (sum(pauses[at : at + 2]) for at in range(0, len(pauses), 2))
        assert first >= 1, "the policy's first pause, in seconds"
        assert second >= 2, "twice as long"
        pauses.clear()
        polite = Page(b"later", status=503, headers={"retry-after": "7"})
        site.put("/b", polite, Page(TEXT.encode(), kind="text/plain"))
        assert (await ingest(client, "web", site.at("/b")))["report"]["read"] == 1
    assert 7.0 in pauses


@pytest.mark.row("S003-13")
async def test_what_is_cut_off_is_continued_or_read_by_nobody(serve: Serve, pauses: list[float]) -> None:
    body = (TEXT + "\n").encode() * 4_000
    async with site_and_client(serve) as (site, client):
        site.put("/whole.txt", Page(body, kind="text/plain", ranges=True, cuts=[len(body) // 2]))
        whole = await ingest(client, "web", site.at("/whole.txt"))
        assert whole["report"]["read"] == 1, whole
        (document,) = (await list_documents(client)).values()
        assert (document["size"], document["checksum"]) == (len(body), hashlib.sha256(body).hexdigest())
        asked = [one.headers.get("range") for one in site.asked if one.path == "/whole.txt"]
        assert asked[0] is None
        assert asked[1], "it went on where it was cut off"
        site.put("/cut.txt", Page(body, kind="text/plain", cuts=[len(body) // 2] * 20))
        cut = await ingest(client, "web", site.at("/cut.txt"))
        assert cut["status"] == "failed" or cut["report"]["read"] == 0, cut
        assert len(await list_documents(client)) == 1, "half a file is no document"


@pytest.mark.row("S003-44")
async def test_a_source_that_is_not_there_is_named_and_the_others_are_read(serve: Serve) -> None:
    async with site_and_client(serve) as (site, client):
        site.html("/", "/gone.txt", "/there.txt", text="Start")
        site.put("/there.txt", Page(TEXT.encode(), kind="text/plain"))
        job = await ingest(client, "web", site.at("/"), recursive=True)
        assert job["status"] == "done", job
        assert (job["report"]["read"], job["report"]["by_reason"]) == (2, {"ERR_CONNECTOR_NOT_FOUND": 1}), job
        assert any("gone.txt" in json.dumps(one) for one in job["report"]["skipped"])
        missing = await ingest(client, "web", site.at("/nowhere"))
        assert (missing["status"], missing["failure"]["error_code"]) == ("failed", "ERR_CONNECTOR_NOT_FOUND"), missing
        assert missing["failure"]["message"]
        assert missing["failure"]["stage"] == "connect"
        assert sum(one.path == "/nowhere" for one in site.asked) == 1, "what is not there is not asked for again"


@pytest.mark.row("S003-49")
async def test_a_source_that_never_answers_is_asked_once_more_and_then_given_up(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses = skip_pauses(monkeypatch, silence_s=2)
    asked = itertools.count()

    async def never(_: web.Request) -> web.StreamResponse:
        next(asked)
        await asyncio.sleep(60)
        raise AssertionError("the gateway has gone")

    async with site_and_client(serve) as (site, client):
        site.put("/silent.txt", never)
        job = await ingest(client, "web", site.at("/silent.txt"))
        assert (job["status"], job["failure"]["error_code"]) == ("failed", "ERR_TIMEOUT"), job
    assert next(asked) == 2
    assert len(pauses) == 1


async def parse(client: httpx.AsyncClient, name: str, kind: str, **body: Any) -> httpx.Response:
    return await client.post("/v1/parse", json={"file_path": name, "file_type": kind, **body})


@pytest.mark.row("S003-17", "S003-20", "S003-21", "S003-19")
async def test_a_file_is_parsed_into_blocks_of_every_layout_with_pages_and_duration(
    serve: Serve, tmp_path: Path
) -> None:
    folder = tmp_path / "data" / "files"
    folder.mkdir(parents=True)
    (folder / "two.pdf").write_bytes(documents.pdf([Words("Towels cost five crowns.")], [Words("Rowing is free.")]))
    (folder / "boats.html").write_text(
        "<html><head><title>Prices</title></head><body><h1>Boats</h1><p>A boat costs 90 crowns a day, with oars.</p>"
        '<img src="b.png" alt="A red boat at the pier"><table><tr><th>size</th><th>price</th></tr>'
        "<tr><td>small</td><td>70</td></tr></table></body></html>"
    )
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        two = (await parse(client, "two.pdf", "pdf")).json()
        boats = (await parse(client, "boats.html", "html", ingestion_source="web_scrape")).json()
        again = (await parse(client, "two.pdf", "pdf")).json()
        for body, status, code in (
            ({"file_path": "two.pdf", "file_type": "docx"}, 422, "ERR_PARSER_UNSUPPORTED"),
            ({"file_path": "/etc/passwd", "file_type": "txt"}, 403, "ERR_CONNECTOR_AUTH"),
            ({"file_path": "gone.pdf", "file_type": "pdf"}, 404, "ERR_CONNECTOR_NOT_FOUND"),
            ({"file_path": "two.pdf", "file_type": "exe"}, 422, "ERR_PARSER_UNSUPPORTED"),
        ):
            refused = await client.post("/v1/parse", json=body)
            assert (refused.status_code, refused.json()["error"]["error_code"]) == (status, code), refused.text
        job = await ingest(client, "local", ".", recursive=True)
        assert job["report"]["read"] == 2, job
        kept = await show(client, (await list_documents(client))["two.pdf"])
    checksum = hashlib.sha256((folder / "two.pdf").read_bytes()).hexdigest()
    assert (two["document_id"], two["total_pages"], two["processing_time_ms"] > 0) == (checksum, 2, True)
    assert [(one["page_number"], one["content"], len(one["bbox"])) for one in two["chunks"]] == [
        (1, "Towels cost five crowns.", 4), (2, "Rowing is free.", 4),
    ]  # fmt: skip
    assert again["chunks"] == two["chunks"], "the ids are stable"
    assert [one["chunk_index"] for one in two["chunks"]] == [0, 1]
    assert len({one["chunk_id"] for one in two["chunks"]}) == 2
    assert (boats["metadata"]["title"], boats["metadata"]["ingestion_source"]) == ("Prices", "web_scrape")
    layouts = {one["layout_type"]: one["content"] for one in boats["chunks"]}
    assert set(layouts) == {"header", "text", "table", "image"}
    assert "| small | 70 |" in layouts["table"]
    assert (kept["pages"], kept["processing_time_ms"] > 0) == (2, True)


@pytest.mark.row("S003-19")
async def test_what_is_at_an_address_is_parsed_and_its_copy_is_deleted(serve: Serve, tmp_path: Path) -> None:
    async with site_and_client(serve) as (site, client):
        site.put("/two.pdf", Page(documents.pdf([Words("Towels cost five crowns.")]), kind="application/pdf"))
        asked = {"ingestion_source": "web_scrape"}
        two = await parse(client, site.at("/two.pdf"), "pdf", **asked)
        assert two.status_code == 200, two.text
        assert [one["content"] for one in two.json()["chunks"]] == ["Towels cost five crowns."]
        assert two.json()["metadata"]["ingestion_source"] == "web_scrape"
        for address, kind, status, code in (
            (site.at("/gone.pdf"), "pdf", 404, "ERR_CONNECTOR_NOT_FOUND"),
            (site.at("/two.pdf"), "docx", 422, "ERR_PARSER_UNSUPPORTED"),
            ("http://127.0.0.1:1/two.pdf", "pdf", 403, "ERR_CONNECTOR_REFUSED"),
            ("http://169.254.169.254/latest", "html", 403, "ERR_CONNECTOR_REFUSED"),
        ):
            refused = await parse(client, address, kind, **asked)
            assert (refused.status_code, refused.json()["error"]["error_code"]) == (status, code), refused.text
        assert await list_documents(client) == {}, "nothing is stored"
    left = tmp_path / "data" / "workspaces"
    assert [one for one in left.rglob("*") if one.is_file() and one.suffix != ".lock"] == []


async def test_a_reading_process_that_does_not_start_in_time_is_named(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a machine that is too busy: no defect, neither of a request nor of a job."""
    monkeypatch.setattr(pool, "WORKER", (sys.executable, "-c", "import time; time.sleep(60)"))
    monkeypatch.setattr(pool, "_START_SECONDS", 0.2)
    folder = tmp_path / "data" / "files"
    folder.mkdir(parents=True)
    (folder / "note.txt").write_text(TEXT)
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        parsed = await parse(client, "note.txt", "txt")
        job = await ingest(client, "local", "note.txt")
    assert (parsed.status_code, parsed.json()["error"]["error_code"]) == (504, "ERR_TIMEOUT"), parsed.text
    assert "to start a parser" in parsed.json()["error"]["message"]
    assert [(one["source"], one["code"]) for one in job["report"]["skipped"]] == [("note.txt", "ERR_TIMEOUT")], job


@pytest.mark.row("S003-16", "S003-19")
async def test_pictures_of_text_are_read_by_ocr_or_it_is_said_what_is_missing(serve: Serve, tmp_path: Path) -> None:
    folder = tmp_path / "data" / "files"
    folder.mkdir(parents=True)
    (folder / "scan.pdf").write_bytes(documents.scanned_pdf())
    (folder / "both.pdf").write_bytes(documents.scanned_pdf([Words("A page of text.")]))
    (folder / "text.pdf").write_bytes(documents.pdf([Words("A page of text.")]))
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=120) as client:
        for name, forced in (("scan.pdf", False), ("scan.pdf", True), ("both.pdf", True)):
            answer = await parse(client, name, "pdf", force_ocr=forced)
            told = answer.text
            assert "OCR" in told or "tesseract" in told, (name, forced, "nothing is read silently as empty")
            if not answer.is_success:
                error = answer.json()["error"]
                assert error["error_code"] == "ERR_PARSER_EMPTY", told
                assert "tesseract" in error["message"] or "found no text" in error["message"], told
        plain = (await parse(client, "both.pdf", "pdf")).json()
        by_text = await parse(client, "text.pdf", "pdf")
        by_ocr = await parse(client, "text.pdf", "pdf", force_ocr=True)
    assert "OCR" not in by_text.text, "a page that holds its text is not read by OCR"
    assert "OCR" in by_ocr.text, "unless that is asked for"
    assert [one["content"] for one in plain["chunks"] if one["layout_type"] == "text"][:1] == ["A page of text."]
    assert any("OCR" in one or "tesseract" in one for one in plain["uncertainties"])
