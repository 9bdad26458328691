"""Lists that go beyond their first page: each thing is there once, and what was deleted is gone."""

import asyncio
from pathlib import Path

import httpx

from tests.integration.conftest import Serve
from tests.page.journey import page_at
from tests.support.browser import BROWSER_TEST

pytestmark = BROWSER_TEST

CHATS = 60
FILES = 230
ROWS = "document.querySelectorAll('.chatrow').length"
LAST = ".chatrow:last-child"
OLDER = "document.querySelector('.past nav > .button')"
RUNS = "document.querySelectorAll('[aria-label=Runs] .item').length"


async def make_chats(client: httpx.AsyncClient, number: int) -> None:
    for at in range(number):
        chat = (await client.post("/v1/conversations", json={})).json()["id"]
        asked = {"prompt": f"What is {at} + 1?", "conversation_id": chat}
        assert (await client.post("/v1/agent", json=asked)).status_code == 200


async def test_older_chats_are_listed_once_renamed_and_deleted(devtools: str, serve: Serve) -> None:
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        await make_chats(client, CHATS)
        async with page_at(devtools, url) as page:
            await page.until(f"{ROWS} === 50")
            await page.evaluate(f"({OLDER}.click(), {OLDER}.click())")  # by an impatient person
            await page.until(f"{ROWS} > 50")
            await asyncio.sleep(0.5)
            assert await page.evaluate(ROWS) == CHATS
            assert "What is 0 + 1?" in await page.text(LAST)
            await page.click(f"{LAST} .menu .tool")
            await page.click(".popup:popover-open .button:nth-last-child(4)")
            await page.write(f"{LAST} input", "The first one")
            await page.press("Enter")
            await page.until(f"document.querySelector('{LAST}').innerText.includes('The first one')")
            await page.click(f"{LAST} .menu .tool")
            await page.click(".popup:popover-open .button:nth-last-child(1)")
            await page.click(".popup:popover-open .sure")
            await page.until(f"{ROWS} === {CHATS - 1}")
            assert "What is 1 + 1?" in await page.text(LAST)
            await page.evaluate("location.hash = '#/runs'")
            await page.until(f"{RUNS} === 50")
            older = "document.querySelector('[aria-label=Runs] .scroll > .button')"
            await page.evaluate(f"({older}.click(), {older}.click())")
            await page.until(f"{RUNS} > 50")
            await asyncio.sleep(0.5)
            assert await page.evaluate(RUNS) == CHATS, "the run of the deleted chat stays"


async def test_all_documents_of_a_collection_are_counted_and_listed(
    devtools: str, serve: Serve, tmp_path: Path
) -> None:
    notes = tmp_path / "data" / "files" / "notes"
    notes.mkdir(parents=True)
    for number in range(FILES):
        (notes / f"{number:03}.md").write_text(f"# Boat {number}\n\nBoat {number} lies in the harbour.\n")
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=120) as client:
        body = {"source_type": "local", "source_identifier": "notes"}
        job = (await client.post("/v1/collections/notes/ingest", json=body)).json()
        for _ in range(4):
            job = (await client.get(f"/v1/jobs/{job['id']}", params={"wait_s": 30})).json()
        assert job["status"] == "done"
        async with page_at(devtools, url, "#/documents/notes") as page:
            listed = "document.querySelectorAll('.row-of').length"
            await page.until(f"{listed} === 200")
            assert f"{FILES} documents" in await page.text(".facts")
            await page.evaluate("[...document.querySelectorAll('.run .button')].at(-1).click()")
            await page.until(f"{listed} === {FILES}")
