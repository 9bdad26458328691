"""A chat that is answered from one collection, which somebody deletes."""

import httpx

from tests.integration.conftest import Serve
from tests.page.journey import page_at, picture, send
from tests.support.browser import BROWSER_TEST

pytestmark = BROWSER_TEST

ANSWER = "document.querySelector('.answer:last-of-type')?.innerText ?? ''"
IS_DONE = "document.querySelector('.answer:last-of-type[aria-busy=false]')"
LIMIT = "[...document.querySelectorAll('.tray > .into')].find((one) => one.checkVisibility())?.innerText ?? ''"


async def test_a_chat_whose_collection_was_deleted_says_so_and_can_use_all(devtools: str, serve: Serve) -> None:
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        for name in ("shared", "other"):
            files = {"file": ("a.md", f"# Devices\n\nLost devices go to the {name} desk.\n".encode())}
            sent = await client.post("/v1/documents", files=files, data={"collection": name})
            assert sent.status_code == 201, sent.text
        chat = (await client.post("/v1/conversations", json={"metadata": {"collection": "shared"}})).json()["id"]
        async with page_at(devtools, url, f"#/chat/{chat}") as page:
            await page.until(f"({LIMIT}).includes('the documents in shared')")
            await send(page, "Where do lost devices go?", "knowledge")
            await page.until(f"{IS_DONE} && ({ANSWER}).includes('shared desk')")
            await page.evaluate("location.hash = '#/documents/shared'")
            delete = "[...document.querySelectorAll('.run .row .plain')].find((one) => /elete/.test(one.innerText))"
            await page.until(f"{delete}?.checkVisibility()")
            for _ in range(2):  # and it is sure
                await page.evaluate(f"{delete}.click()")
            await page.until("location.hash === '#/documents'")
            await page.evaluate(f"location.hash = '#/chat/{chat}'")
            await page.until(f"({LIMIT}).includes('were deleted')")
            await picture(page, "limited-to-nothing", ("phone", "desk"))
            await send(page, "Who takes lost devices?", "knowledge")
            await page.until(f"document.querySelectorAll('.answer').length === 2 && {IS_DONE}")
            assert "Use all documents" in await page.evaluate(ANSWER)
            await page.click(".tray .into .button")
            await page.until(f"({LIMIT}) === ''")
            await send(page, "Where do lost devices go?", "knowledge")
            await page.until(f"{IS_DONE} && ({ANSWER}).includes('other desk')")
            page.faults.clear()  # the browser reports what was not there
