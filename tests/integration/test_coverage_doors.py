"""Coverage over the doors: of a document, of an ingestion; and an answer from a text that used to be lost."""

from pathlib import Path
from time import monotonic
from typing import Any

import httpx

from tests.integration.conftest import Serve
from tests.support import documents
from tests.support.documents import Words
from tests.support.word_files import CHANGE, paragraph, run, word_file

TERM = paragraph(run("The notice period is "), f"<w:ins {CHANGE}>{run('90')}</w:ins>", run(" days for tenant Birch."))
SECRET = paragraph(f"<w:del {CHANGE}>{run('Old clause.')}</w:del>")


def client_of(url: str) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=url, timeout=60)


async def send(client: httpx.AsyncClient, data: bytes, name: str) -> Any:
    answer = await client.post("/v1/documents", files={"file": (name, data)}, data={"collection": "contracts"})
    assert answer.status_code in (200, 201), answer.text
    return answer.json()


async def test_a_document_says_how_much_of_it_was_read(serve: Serve) -> None:
    async with serve() as url, client_of(url) as client:
        sent = await send(client, word_file(TERM + SECRET), "contract.docx")
        assert sent["coverage"] == {
            "share": 1.0, "unit": "words", "total": 9, "missing": {}, "omitted": {"deleted text": 2},
        }  # fmt: skip
        found = (await client.get(f"/v1/documents/{sent['document_id']}")).json()
        assert found["coverage"] == sent["coverage"]
        assert found["chunks"][0]["text"] == "The notice period is 90 days for tenant Birch."


async def test_a_figure_in_a_tracked_insertion_is_quoted(serve: Serve) -> None:
    async with serve() as url, client_of(url) as client:
        await send(client, word_file(TERM), "contract.docx")
        body = {
            "model": "knowledge",
            "messages": [{"role": "user", "content": "What is the notice period for tenant Birch?"}],
        }
        answer = (await client.post("/v1/chat/completions", json=body)).json()
        assert "90 days" in answer["choices"][0]["message"]["content"]


async def test_an_ingestion_sums_up_what_it_read(serve: Serve, tmp_path: Path) -> None:
    folder = tmp_path / "data" / "files" / "docs"
    folder.mkdir(parents=True)
    (folder / "a.docx").write_bytes(word_file(TERM))
    (folder / "b.md").write_text("# Tides\n\nThe tide turns at nine.\n")
    async with serve() as url, client_of(url) as client:
        request = {"source_type": "local", "source_identifier": "docs", "recursive": True}
        job = (await client.post("/v1/collections/papers/ingest", json=request)).json()
        done = (await client.get(f"/v1/jobs/{job['id']}", params={"wait_s": 30})).json()
        assert done["status"] == "done", done
        report = done.get("report") or done["outcome"]["report"]
        assert report["coverage"] == {"documents": 2, "mean": 1.0, "lowest": 1.0, "incomplete": 0}


async def test_a_pdf_that_claims_a_million_pages_is_read_for_those_it_has(serve: Serve) -> None:
    data = documents.pdf([Words("The quay is closed on 4 May.")]).replace(b"/Count 1>>", b"/Count 1000000>>")
    assert b"/Count 1000000" in data
    async with serve() as url, client_of(url) as client:
        started = monotonic()
        sent = await send(client, data, "claims.pdf")
        assert monotonic() - started < 50
        found = (await client.get(f"/v1/documents/{sent['document_id']}")).json()
    assert found["chunks"][0]["text"] == "The quay is closed on 4 May."
    assert any("of 1,000,000 pages that the file claims could not be read" in note for note in sent["uncertainties"])
