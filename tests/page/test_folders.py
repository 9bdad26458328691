"""Folders on the page: one that may not be read yet is added, and files that cannot be read are left out."""

import json
from pathlib import Path

import httpx

from tests.integration.conftest import Serve
from tests.page.journey import page_at, picture, reload
from tests.support.browser import BROWSER_TEST

pytestmark = BROWSER_TEST


async def test_a_folder_is_added_and_a_file_that_blocks_is_left_out(
    devtools: str, serve: Serve, tmp_path: Path
) -> None:
    papers = tmp_path / "my papers"
    papers.mkdir()
    for name in ("one", "two"):
        (papers / f"{name}.md").write_text(f"# {name}\n\nTrain tickets are booked by the travel desk of {name}.\n")
    (papers / "old, broken.docx").write_bytes(b"no archive")
    async with serve(conversations_require_llm=False) as url, page_at(devtools, url, "#/build") as page:
        await page.until("document.querySelector('.picker .folders .item')")  # which moves what is below
        await page.click(".picker summary")
        await page.write(".picker .inside input", "/etc")
        await page.click(".picker .inside .row .button")
        await page.until("document.querySelector('.picker .problem')?.innerText.includes('belongs to the system')")
        await page.write(".picker .inside input", str(papers))
        await page.press("Enter")
        await page.until("document.querySelector('.picker .folders')?.innerText.includes('my papers')")
        await picture(page, "folder-added", ("phone", "desk"))
        await page.click(".picker .folders li:last-child .item")
        await page.until("document.querySelector('.picker')?.innerText.includes('3 files')")
        await page.click(".guide > .row .primary")
        await page.until("document.querySelector('.flow')", 30_000)
        await page.until("document.querySelector('.talk .answer[aria-busy=false]')", 30_000)
        leave_out = "[...document.querySelectorAll('.banner.blocking .button')].find((one) => one.title)"
        await page.until(f"{leave_out}?.innerText === 'Leave out old, broken.docx'", 30_000)
        await picture(page, "blocked", ("phone", "desk"))
        await page.evaluate(f"{leave_out}.click()")
        await page.until("document.querySelectorAll('.talk .answer[aria-busy=false]').length === 2", 30_000)
        await page.until("!document.querySelector('.banner.blocking')")
        await page.write(".apply input[name=collection]", "papers")
        await page.click(".apply .primary")
        await page.until("document.querySelector('.job')?.innerText.includes('2 documents read into papers')", 30_000)


async def test_a_collection_is_read_again_as_another_kind_of_documents(
    devtools: str, serve: Serve, tmp_path: Path
) -> None:
    notes = tmp_path / "data" / "files" / "notes"
    notes.mkdir(parents=True)
    sentences = [f"Line {number} of the harbour has boats that lay still." for number in range(30)]
    (notes / "harbour.md").write_text("# Harbour\n\n" + " ".join(sentences) + "\n")
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        body = {"source_type": "local", "source_identifier": "notes"}
        job = (await client.post("/v1/collections/notes/ingest", json=body)).json()
        assert (await client.get(f"/v1/jobs/{job['id']}", params={"wait_s": 60})).json()["status"] == "done"
        before = (await client.get("/v1/collections/notes/documents")).json()["data"][0]["passages"]
        async with page_at(devtools, url, "#/documents/notes") as page:
            await page.click(".run .offer summary")
            kind = "document.querySelector('.offer select[name=template]')"
            await page.until(f"{kind}.checkVisibility() && {kind}.value === 'documents'")
            await page.evaluate(f"{kind}.value = 'notes', {kind}.dispatchEvent(new Event('change'))")
            await page.write(".offer input[name=chunk_size]", "0")
            await page.click(".offer .actions .button:first-child")
            await page.until("document.querySelector('.offer .actions .problem')?.innerText.includes('does not fit')")
            await page.write(".offer input[name=chunk_size]", "120")
            await page.write(".offer input[name=overlap]", "0")
            await page.click(".offer .actions .button:first-child")
            await page.until(
                "/100 % of 1 file.* passages/.test(document.querySelector('.offer .actions p.quiet')?.innerText)"
            )
            await picture(page, "kind", ("phone", "desk"))
            await page.click(".offer .actions .primary")
            await page.until("document.querySelector('.facts')?.innerText.includes('pipeline notes')", 60_000)
        collection = (await client.get("/v1/collections/notes")).json()
        assert collection["template"] == "notes"
        newest = (await client.get("/v1/jobs")).json()["data"][0]  # the page names the kind while it still reads
        assert (await client.get(f"/v1/jobs/{newest['id']}", params={"wait_s": 60})).json()["status"] == "done"
        assert (await client.get("/v1/collections/notes/documents")).json()["data"][0]["passages"] > max(5, before)


async def test_who_may_not_add_a_folder_reads_who_can(devtools: str, serve: Serve) -> None:
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        fields = {"owner": "anna", "name": "laptop", "scopes": ["chat", "agent", "ingest"]}
        key = (await client.post("/v1/admin/keys", json=fields)).json()["text"]
        async with page_at(devtools, url) as page:
            await page.evaluate(f"sessionStorage.setItem('stepgate.key', {json.dumps(key)})")
            await reload(page)
            await page.evaluate("location.hash = '#/build'")
            await page.click(".picker summary")
            await page.until("document.querySelector('.picker .inside')?.innerText.includes('stepgate file-roots add')")
            assert await page.evaluate("document.querySelector('.picker .inside input') === null")


async def test_runs_of_others_are_offered_to_who_may_read_them(devtools: str, serve: Serve) -> None:
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        fields = {"owner": "anna", "name": "laptop", "scopes": ["chat", "agent"]}
        key = (await client.post("/v1/admin/keys", json=fields)).json()["text"]
        await client.post("/v1/agent", json={"prompt": "6*7"}, headers={"x-api-key": key})
        chief = (await client.post("/v1/admin/keys", json=fields | {"owner": "chief", "scopes": ["admin"]})).json()[
            "text"
        ]
        async with page_at(devtools, url, "#/runs") as page:
            await page.until("document.querySelector('[aria-label=Runs] select[aria-label=Room]')?.options.length > 1")
            await page.until("document.querySelector('[aria-label=Runs] select[aria-label=Owner]')?.hidden")
            await page.evaluate(f"sessionStorage.setItem('stepgate.key', {json.dumps(chief)})")
            await page.send("Page.reload")
            owner = "document.querySelector('[aria-label=Runs] select[aria-label=Owner]')"
            await page.until(f"{owner}?.checkVisibility() && {owner}.options.length === 3")
            assert "kept here" in await page.text("[aria-label=Runs] .items")
            await page.evaluate(f"{owner}.value = 'anna', {owner}.dispatchEvent(new Event('change'))")
            await page.until("document.querySelectorAll('[aria-label=Runs] .item').length === 1")
            await page.click("[aria-label=Runs] .item")
            await page.until("document.querySelector('.run .prose')?.innerText.includes('42')")
            assert "anna" in await page.text(".run .facts")
            assert await page.evaluate("document.querySelector('.run .offers') === null"), "read, not acted on"


async def test_a_key_that_adds_nothing_is_offered_nothing_to_add(devtools: str, serve: Serve) -> None:
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        fields = {"owner": "anna", "name": "laptop", "scopes": ["chat", "agent"]}
        key = (await client.post("/v1/admin/keys", json=fields)).json()["text"]
        async with page_at(devtools, url) as page:
            await page.evaluate(f"sessionStorage.setItem('stepgate.key', {json.dumps(key)})")
            await reload(page)
            await page.evaluate("location.hash = '#/documents'")
            await page.until(
                "document.querySelector('[aria-label=Documents] .stage')?.innerText.includes('scope “ingest”')"
            )
            assert await page.evaluate("document.querySelector('.drop') === null")
            await page.evaluate("location.hash = '#/studio/rooms/chat'")
            await page.until("document.querySelector('.studio .stage h1')?.innerText.endsWith('tools')")
            stage = await page.text(".studio .stage")
            assert "New tool" not in stage
            assert "lacks the scope" not in stage


async def test_what_is_needed_is_said_first_and_folders_of_one_name_are_told_apart(
    devtools: str, serve: Serve, tmp_path: Path
) -> None:
    outside = tmp_path / "outside" / "files"
    outside.mkdir(parents=True)
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        added = await client.post("/v1/admin/file-roots", json={"path": str(outside)})
        assert added.status_code in (200, 201), added.text
        async with page_at(devtools, url, "#/build") as page:
            await page.until("document.querySelector('.guide .banner')?.innerText.includes('No model is connected')")
            assert await page.evaluate("document.querySelector('.guide .banner a').hash") == "#/models"
            names = "[...document.querySelectorAll('.folders .item')].map((one) => one.innerText)"
            await page.until(f"({names}).includes('files in {outside.parent}')")
