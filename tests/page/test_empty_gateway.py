"""A fresh gateway without documents: the rooms that answer from them offer some, instead of a question that fails."""

import httpx

from tests.integration.conftest import Serve
from tests.page.journey import page_at, picture
from tests.support.browser import BROWSER_TEST

pytestmark = BROWSER_TEST

HERO = "document.querySelector('.hero').innerText"
CARD = "[...document.querySelectorAll('.hero .card')].find((one) => one.innerText.startsWith('{}')).click()"
LOAD = "[...document.querySelectorAll('.hero .button')].find((one) => one.innerText.includes('example company'))"


async def test_rooms_that_answer_from_documents_offer_some_first(devtools: str, serve: Serve) -> None:
    async with serve() as url, page_at(devtools, url) as page:
        await page.until("document.querySelectorAll('.hero .suggestion').length > 0")
        for room in ("Knowledge", "Incident"):
            await page.evaluate(CARD.format(room))
            await page.until(f"{HERO}.includes('no documents yet') && {LOAD}")
            assert await page.evaluate("document.querySelectorAll('.hero .suggestion').length") == 0
            assert await page.evaluate("document.querySelector('.hero a[href=\"#/documents\"]').checkVisibility()")
        await picture(page, "without-documents", ("phone", "desk"))
        await page.evaluate(f"{LOAD}.click()")
        await page.until("document.querySelectorAll('.hero .suggestion').length > 0", 60_000)
        async with httpx.AsyncClient(base_url=url, timeout=30) as client:
            names = [one["name"] for one in (await client.get("/v1/collections")).json()["data"]]
        assert names == ["example-company", "example-issues"]
        await page.click(".hero .suggestion")
        await page.until("document.querySelector('.answer[aria-busy=false] .prose')", 60_000)
        answer = await page.text(".answer")
        assert "there is no collection" not in answer
        assert await page.evaluate("document.querySelectorAll('.answer .chip').length") > 0


async def test_documents_that_were_added_bring_the_suggestions_back(devtools: str, serve: Serve) -> None:
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=30) as client, page_at(devtools, url) as page:
        await page.until("document.querySelector('.hero .card')")
        await page.evaluate(CARD.format("Knowledge"))
        await page.until(f"{HERO}.includes('no documents yet')")
        sent = await client.post("/v1/documents", files={"file": ("a.md", b"Lost devices go to the desk.\n")})
        assert sent.status_code == 201
        for place in ("#/documents", "#/chat"):
            await page.evaluate(f"location.hash = '{place}'")
        await page.until("document.querySelectorAll('.hero .suggestion').length > 0")
