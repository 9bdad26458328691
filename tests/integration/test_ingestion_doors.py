"""Sources, jobs, pipelines and documents over HTTP, on the command line and as a tool."""

import hashlib
import json
from pathlib import Path
from random import Random
from typing import Any

import httpx
import pytest

from gateway.features.documents.engine.ingest.parsers import pool as parser_pool
from gateway.features.documents.engine.ingest.templates import from_template
from tests.integration.conftest import Serve
from tests.integration.test_knowledge_doors import stepgate
from tests.support.documents import Words, pdf, word
from tests.support.engine import engine_bench

HANDBOOK = "# Handbook\n\n## Holidays\n\nEvery employee has 28 days of paid holiday a year.\n"


def client_of(url: str) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=url, timeout=60)


def files(tmp_path: Path, **texts: str) -> Path:
    """Files below the folder that callers may name."""
    folder = tmp_path / "data" / "files" / "docs"
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / name.replace("__", ".")).write_text(text)
    return folder


async def post(client: httpx.AsyncClient, path: str, **body: Any) -> tuple[int, Any]:
    answer = await client.post(path, json=body)
    return answer.status_code, answer.json()


async def done(client: httpx.AsyncClient, job: Any) -> Any:
    """The job at its end."""
    found = (await client.get(f"/v1/jobs/{job['id']}", params={"wait_s": 30})).json()
    assert found["status"] in ("done", "failed"), found
    return found


async def send(client: httpx.AsyncClient, data: bytes, name: str | None = "a.md", **fields: str) -> tuple[int, Any]:
    answer = await client.post("/v1/documents", files={"file": (name, data)}, data=fields)
    return answer.status_code, answer.json()


@pytest.mark.row("S000-07", "S000-29", "S000-52")
async def test_a_source_becomes_a_collection_by_a_job_that_can_be_followed(serve: Serve, tmp_path: Path) -> None:
    files(tmp_path, handbook__md=HANDBOOK, bad__pdf="no pdf")
    async with serve() as url, client_of(url) as client:
        status, job = await post(
            client,
            "/v1/collections/staff/ingest",
            source_type="local",
            source_identifier="docs",
            template="reports",
            parameters={"chunk_size": 700},
        )
        assert (status, job["status"], job["collection"]) == (202, "queued", "staff")
        assert job["source"]["source_identifier"] == str(tmp_path / "data" / "files" / "docs")
        end = await done(client, job)
        assert (end["status"], end["progress"]["done"]) == ("done", 2)
        assert (end["report"]["read"], end["report"]["by_reason"]) == (1, {"ERR_PARSER_UNSUPPORTED": 1})
        assert [one["id"] for one in (await client.get("/v1/jobs")).json()["data"]] == [job["id"]]
        row = (await client.get("/v1/collections/staff")).json()
        assert (row["template"], row["status"], row["documents"]) == ("reports", "ready", 1)
        assert row["pipeline"]["nodes"][0]["kind"] == "source"
        assert row["sources"] == [job["source"]]
        found = await post(client, "/v1/search", collection="staff", query_text="paid holiday", min_relevance_score=0.1)
        assert "28 days" in found[1]["results"][0]["content"]
        again = await post(client, "/v1/collections/staff/ingest", source_type="local", source_identifier="docs")
        end = await done(client, again[1])
        assert (end["report"]["unchanged"], end["report"]["template"]) == (1, "reports"), "it keeps its pipeline"


async def test_what_an_ingestion_cannot_be_is_refused_at_once(serve: Serve, tmp_path: Path) -> None:
    files(tmp_path, a__md="# A")
    path = "/v1/collections/house/ingest"
    here = {"source_type": "local", "source_identifier": "docs"}
    async with serve() as url, client_of(url) as client:
        status, body = await post(client, path, source_type="local", source_identifier=str(tmp_path))
        assert (status, body["error"]["error_code"]) == (403, "ERR_CONNECTOR_AUTH")
        assert "AGENT_FILE_ROOTS" in body["error"]["message"]
        assert (await post(client, path, source_type="local", source_identifier="../stepgate.db"))[0] == 404
        status, body = await post(client, path, **here, pipeline={"nodes": [], "edges": []})
        assert status == 400
        assert len(body["error"]["details"]["problems"]) == 5
        assert (await post(client, path, **here, pipeline={"nodes": 3}))[0] == 400
        assert (await post(client, path, **here, template="magic"))[0] == 404
        assert (await post(client, path, **here, template="website"))[0] == 400
        assert (await post(client, path, **here, colour="red"))[0] == 400
        assert (await post(client, path, source_type="floppy", source_identifier="a:"))[0] == 400
        assert (await post(client, f"/v1/collections/{'x' * 300}/ingest", **here))[0] == 400
        assert (await client.get("/v1/jobs/job_none")).status_code == 404
        assert (await client.get("/v1/jobs")).json()["data"] == []
        assert (await client.get("/v1/collections")).json()["data"] == []


@pytest.mark.row("S000-25", "S000-37", "S000-51")
async def test_pipelines_can_be_looked_at_and_tried(serve: Serve, tmp_path: Path) -> None:
    files(tmp_path, a__md=HANDBOOK, b__md=HANDBOOK + "More.", empty__txt="")
    async with serve() as url, client_of(url) as client:
        templates = (await client.get("/v1/pipelines/templates")).json()["data"]
        assert len(templates) >= 5
        assert all(one["suggested_for"] and one["parameters"] for one in templates)
        plugins = (await client.get("/v1/plugins")).json()["data"]
        assert {one["kind"] for one in plugins} == {"source", "parser", "chunker", "embedder", "index"}
        assert (await client.get("/v1/plugins/structure")).json()["options"]["properties"]["size"]["default"] == 900
        assert (await client.get("/v1/plugins/magic")).status_code == 404
        only = (await client.get("/v1/plugins", params={"kind": "index"})).json()["data"]
        assert [one["name"] for one in only] == ["hybrid", "lexical"]
        small = from_template().with_options("parser", file_bytes=60).model_dump(mode="json")
        status, report = await post(
            client,
            "/v1/pipelines/dry-run",
            source_type="local",
            source_identifier="docs",
            pipeline=small,
            sample_count=3,
            seed=5,
        )
        assert status == 200
        assert (report["files_tested"], report["files_failed"], report["assessment"]) == (3, 3, "blocking_issues")
        assert set(report["failure_categories"]) == {"too_large", "no_text"}
        (fix,) = report["recommended_fixes"]
        assert fix["pipeline_diff"]["changed"][0]["field"] == "options.file_bytes"
        assert (await client.get("/v1/collections")).json()["data"] == []
        outside = await post(
            client, "/v1/pipelines/dry-run", source_type="local", source_identifier=str(tmp_path), sample_count=3
        )
        assert outside[0] == 403
        assert (await post(client, "/v1/pipelines/dry-run", source_type="local", source_identifier="docs",
                           sample_count=10**6))[0] == 400  # fmt: skip


async def test_an_upload_is_read_kept_cited_opened_and_removed(serve: Serve, tmp_path: Path) -> None:
    data = pdf([Words("Every employee has 28 days of paid holiday.")], [Words("Page two.")])
    checksum = hashlib.sha256(data).hexdigest()
    async with serve() as url, client_of(url) as client:
        status, made = await send(client, data, "../../Büro 100 %.pdf", collection="staff")
        assert (status, made["unchanged"], made["collection"]) == (201, False, "staff")
        assert (made["name"], made["file_type"], made["pages"]) == ("Büro 100 %.pdf", "pdf", 2)
        assert (made["source_type"], made["checksum"], made["size"]) == ("upload", checksum, len(data))
        assert (tmp_path / "data" / "uploads" / "local" / checksum).read_bytes() == data
        status, same = await send(client, data, "other.pdf", collection="staff")
        assert (status, same["unchanged"], same["name"]) == (200, True, "Büro 100 %.pdf")
        place = f"/v1/documents/{made['document_id']}"
        detail = (await client.get(place)).json()
        assert "28 days" in detail["chunks"][0]["text"]
        assert detail["chunks"][0]["metadata"]["pages"] == [1, 2]
        assert detail["chunks"][0]["metadata"]["boxes"]
        file = await client.get(f"{place}/file")
        assert file.content == data
        assert file.headers["x-content-type-options"] == "nosniff"
        assert file.headers["content-type"] == "application/pdf"
        assert file.headers["content-disposition"] == (
            "inline; filename=\"B_ro 100 _.pdf\"; filename*=UTF-8''B%C3%BCro%20100%20%25.pdf"
        )
        listed = (await client.get("/v1/documents", params={"collection": "staff"})).json()["data"]
        assert [one["document_id"] for one in listed] == [made["document_id"]]
        assert (await client.get("/v1/documents", params={"collection": "nope"})).status_code == 404
        assert (await client.get("/v1/documents", params={"offset": 1})).json()["data"] == []
        await send(client, data, "a.pdf", collection="second")
        assert (await client.delete(place)).status_code == 204
        assert (await client.get(place)).status_code == 404
        assert (tmp_path / "data" / "uploads" / "local" / checksum).exists(), "another collection has it too"
        assert (await client.delete("/v1/collections/second")).status_code == 204
        assert not (tmp_path / "data" / "uploads" / "local" / checksum).exists()


async def test_pages_of_strangers_are_never_shown_as_ours(serve: Serve) -> None:
    page = b"<!doctype html><title>x</title><script>alert(1)</script><p>Some words to read.</p>"
    async with serve() as url, client_of(url) as client:
        _, made = await send(client, page, "page.html")
        file = await client.get(f"/v1/documents/{made['document_id']}/file")
        assert file.content == page
        assert file.headers["content-type"] == "application/octet-stream"
        assert file.headers["content-disposition"].startswith("attachment; ")
        assert file.headers["x-content-type-options"] == "nosniff"


async def test_an_upload_is_what_its_bytes_are(serve: Serve) -> None:
    async with serve() as url, client_of(url) as client:
        assert (await send(client, word(), "no ending"))[1]["file_type"] == "docx"
        assert (await send(client, pdf([Words("Words.")]), "misnamed.docx"))[1]["file_type"] == "pdf"
        assert (await send(client, b"# Title\n\nWords.", "a.md"))[1]["title"] == "Title"


async def test_what_cannot_be_read_is_refused_and_not_kept(serve: Serve, tmp_path: Path) -> None:
    async with serve(max_upload_bytes=5_000) as url, client_of(url) as client:
        for data, name, code in (
            (b"", "empty.md", "ERR_PARSER_EMPTY"),
            (b"MZ\x00\x00\x01", "tool.exe", "ERR_PARSER_UNSUPPORTED"),
            (b"%PDF-1.4 no more", "broken.pdf", "ERR_PARSER_CORRUPT"),
            (Random(1).randbytes(1_000), "noise.bin", "ERR_PARSER_UNSUPPORTED"),
            (b"\xff\xfe" + Random(2).randbytes(1_000), "noise.bin", "ERR_PARSER_UNSUPPORTED"),
            (b"\xff\xfe" + Random(2).randbytes(1_000), "noise.txt", "ERR_PARSER_UNSUPPORTED"),
            (b"\xff\xfea\x00b", "lost.dat", "ERR_PARSER_UNSUPPORTED"),
        ):
            status, body = await send(client, data, name)
            assert (status, body["error"]["error_code"]) == (422, code), name
            assert name in body["error"]["message"]
        status, body = await send(client, b"x" * 6_000, "large.txt")
        assert (status, body["error"]["error_code"]) == (413, "ERR_TOO_LARGE")
        assert "AGENT_MAX_UPLOAD_BYTES" in body["error"]["message"]
        status, body = await send(client, b"x" * 80_000, "huge.txt")
        assert status == 413
        assert (await client.get("/v1/collections")).json()["data"] == []
    assert list((tmp_path / "data" / "uploads" / "local").iterdir()) == []


async def test_a_parser_that_does_not_start_fills_no_disk(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parser_pool, "_START_SECONDS", 0)
    async with serve() as url, client_of(url) as client:
        status, body = await send(client, b"# A")
        assert (status, body["error"]["error_code"]) == (504, "ERR_TIMEOUT")
        assert "to start a parser" in body["error"]["message"]


async def test_a_form_that_is_none_is_refused_by_name(serve: Serve) -> None:
    async with serve() as url, client_of(url) as client:
        plain = await client.post("/v1/documents", json={"file": "x"})
        assert (plain.status_code, plain.json()["error"]["error_code"]) == (415, "ERR_MEDIA_TYPE")
        empty = await client.post("/v1/documents", files={"other": ("a.md", b"# A")})
        assert empty.status_code == 400
        assert "`file`" in empty.json()["error"]["message"]
        odd = await client.post("/v1/documents", files={"file": ("a.md", b"# A")}, data={"colour": "red"})
        assert odd.status_code == 400
        assert "colour" in odd.json()["error"]["message"]
        two = await client.post("/v1/documents", files=[("file", ("a", b"a")), ("file", ("b", b"b"))])
        assert two.status_code == 400
        torn = await client.post(
            "/v1/documents", content=b"--x\r\nnonsense", headers={"content-type": "multipart/form-data; boundary=x"}
        )
        assert torn.status_code == 400
        none = await client.post("/v1/documents", content=b"", headers={"content-type": "multipart/form-data"})
        assert none.status_code == 400
        assert (await send(client, b"# A", "a.md", template="magic"))[0] == 404
        assert (await send(client, b"# A", "a.md", collection=" "))[0] == 400
        assert (await client.get("/v1/collections")).json()["data"] == []


async def test_uploads_that_come_together_wait_for_each_other(serve: Serve) -> None:
    import asyncio

    async with serve() as url, client_of(url) as client:
        sent = [send(client, f"# Number {number}\n\nText.".encode(), f"{number}.md") for number in range(6)]
        assert {status for status, _ in await asyncio.gather(*sent)} == {201}
        assert (await client.get("/v1/collections")).json()["data"][0]["documents"] == 6


async def test_a_file_of_this_machine_is_shown_as_long_as_it_is_the_same(serve: Serve, tmp_path: Path) -> None:
    folder = files(tmp_path, a__md=HANDBOOK)
    async with serve() as url, client_of(url) as client:
        _, job = await post(client, "/v1/collections/house/ingest", source_type="local", source_identifier="docs")
        await done(client, job)
        (document,) = (await client.get("/v1/documents")).json()["data"]
        place = f"/v1/documents/{document['document_id']}/file"
        assert (await client.get(place)).text == HANDBOOK
        (folder / "a.md").write_text("changed")
        assert (await client.get(place)).status_code == 409
        (folder / "a.md").unlink()
        (folder / "a.md").symlink_to("/etc/hostname")
        gone = await client.get(place)
        assert (gone.status_code, "it was replaced by a link" in gone.text) == (404, True)


async def test_the_command_line_tries_reads_and_tells_of_pipelines(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    (docs / "below").mkdir(parents=True)
    (docs / "a.md").write_text(HANDBOOK)
    (docs / "below" / "b.csv").write_text("name,days\nann,28\n")
    code, output = stepgate(tmp_path, "ingest", str(docs), "--collection", "staff", "--dry-run")
    assert code == 0, output
    assert "ready. 100 % of 2 files are read." in output
    assert stepgate(tmp_path, "collections", "list")[1].strip().startswith("No collections yet")
    code, output = stepgate(
        tmp_path, "ingest", str(docs), "--collection", "staff", "--template", "tables", "--no-recursive"
    )
    assert (code, "staff: 0 read" in output, "the pipeline excludes every document" in output) == (1, True, True)
    code, output = stepgate(tmp_path, "ingest", str(docs), "--collection", "staff", "--template", "notes")
    assert (code, "staff: 2 read" in output) == (0, True)
    assert "notes" in stepgate(tmp_path, "collections", "list")[1]
    code, output = stepgate(tmp_path, "collections", "pipeline", "staff")
    assert json.loads(output)["template"] == "notes"
    (tmp_path / "own.json").write_text(output)
    code, output = stepgate(
        tmp_path, "ingest", str(docs), "--collection", "staff", "--pipeline", str(tmp_path / "own.json")
    )
    assert (code, "0 read, 2 unchanged" in output) == (0, True)
    (tmp_path / "own.json").write_text('{"nodes": [], "edges": []}')
    code, output = stepgate(tmp_path, "ingest", str(docs), "--pipeline", str(tmp_path / "own.json"))
    assert (code, "there is no source; there is no parser" in output) == (1, True)
    code, output = stepgate(tmp_path, "ingest", str(docs), "--pipeline", str(tmp_path / "none.json"))
    assert (code, "cannot be read" in output) == (2, True)


async def test_the_tool_reads_beneath_the_roots_and_does_nothing_twice(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "a.md").write_text(HANDBOOK)
    (docs / "b.pdf").write_text("no pdf")
    async with engine_bench(tmp_path / "data", None, file_roots=(docs,)) as bench:

        async def call(**args: Any) -> Any:
            calls = [{"tool": "ingest", "args": args}]
            return await bench.run("", metadata={"tool_calls": calls})

        spec = bench.engine.registry.get("ingest").spec
        assert spec.effect == "idempotent"
        first = await call(source=".", collection="work")
        assert "work: 1 read, 0 unchanged, 0 removed, 1 skipped" in json.dumps(first.metadata["tool_results"])
        again = await call(source="a.md", collection="work")
        assert "0 read, 1 unchanged" in json.dumps(again.metadata["tool_results"])
        named = await call(source_type="local", source_identifier="a.md", collection="work")
        assert "0 read, 1 unchanged" in json.dumps(named.metadata["tool_results"])
        for args in ({}, {"source": "a.md", "source_identifier": "a.md"}):
            unclear = await call(**args, collection="work")
            assert "give either source" in json.dumps(unclear.metadata["tool_results"])
        refused = await call(source="/etc", collection="work")
        assert "ERR_TOOL_DENIED" in json.dumps(refused.metadata["tool_results"])
        missing = await call(source="nothing.md", collection="work")
        assert "ERR_TOOL_INPUT" in json.dumps(missing.metadata["tool_results"])
        odd = await call(source=".", collection="work", template="magic")
        assert "there are documents, reports" in json.dumps(odd.metadata["tool_results"])
