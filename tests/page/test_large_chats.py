"""Many chats, and a chat of very many messages: the page stays quick, and loses no place in a list."""

import asyncio

import httpx

from tests.integration.conftest import Serve
from tests.page.journey import page_at, reload, send
from tests.support.browser import BROWSER_TEST
from tests.support.script import says, script

pytestmark = BROWSER_TEST

CHATS = 500
EXCHANGES = 1_000
IS_DONE = "document.querySelector('.answer:last-of-type[aria-busy=false]')"
ROWS = "document.querySelectorAll('.chatrow').length"
MS = 180_000


async def ask(client: httpx.AsyncClient, chat: str, number: int) -> None:
    asked = {"prompt": f"What is {number} + 1?", "conversation_id": chat}
    response = await client.post("/v1/agent", json=asked)
    assert response.status_code == 200, response.text


async def test_five_hundred_chats_are_listed_and_searched(devtools: str, serve: Serve) -> None:
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=300) as client:
        at_once = asyncio.Semaphore(8)

        async def begin(number: int) -> None:
            async with at_once:
                chat = (await client.post("/v1/conversations", json={})).json()["id"]
                await ask(client, chat, number)

        await asyncio.gather(*(begin(number) for number in range(CHATS)))
        async with page_at(devtools, url) as page:
            await page.until(f"{ROWS} === 50", MS)
            for listed in range(100, CHATS + 1, 50):
                await page.evaluate("document.querySelector('.past nav > .button').click()")
                await page.until(f"{ROWS} === {listed}", MS)
            await send(page, "What is 6*7?", "stepgate")
            await page.until("document.querySelector('.answer[aria-busy=false]')?.innerText.includes('42')", MS)
            await page.until(f"{ROWS} === {CHATS + 1}", MS)
            assert "6*7" in await page.text(".chatrow"), "the newest one is the first"
            await page.write(".seek input", '"What is 17 + 1?"')
            await page.until(f"{ROWS} === 1", MS)


async def test_a_chat_of_two_thousand_messages_opens_at_its_end(devtools: str, serve: Serve) -> None:
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=300) as client:
        chat = (await client.post("/v1/conversations", json={})).json()["id"]
        for number in range(EXCHANGES):
            await ask(client, chat, number)
        async with page_at(devtools, url, f"#/chat/{chat}") as page:
            await page.until("document.querySelectorAll('.answer').length === 30", MS)
            newest = f"What is {EXCHANGES - 1} + 1?"
            await page.until(f"[...document.querySelectorAll('.mine')].at(-1).innerText.includes('{newest}')", MS)
            box = "document.querySelector('.talking > .scroll')"
            await page.until(f"{box}.scrollTop + {box}.clientHeight > {box}.scrollHeight - 80")
            for shown in (60, 90):
                await page.evaluate("document.querySelector('.column > .button.plain').click()")
                await page.until(f"document.querySelectorAll('.answer').length === {shown}", MS)
            await send(page, "What is 6*7?", "stepgate")
            await page.until("document.querySelector('.answer:last-of-type')?.innerText.includes('42')", MS)


async def test_an_answer_of_two_megabytes_is_followed_and_read_again(devtools: str, serve: Serve) -> None:
    answer = "".join(f"On day {number} the harbour was quiet, and the boats lay still.\n\n" for number in range(33_000))
    length = "document.querySelector('.answer:last-of-type .prose')?.textContent.replace(/\\s/g, '').length ?? 0"
    room = {"id": "long", "name": "Long", "planning": False, "budgets": {"max_tokens": 2_000_000}}
    async with serve(script(says(answer, chunk=20_000, pause_s=0.02))) as url:
        async with httpx.AsyncClient(base_url=url, timeout=30) as client:
            assert (await client.post("/v1/rooms", json=room)).status_code == 201
        async with page_at(devtools, url) as page:
            await send(page, "Tell me everything", "long")
            await page.until(f"({length}) > 100_000", MS)
            await page.write(".chat textarea", "and then?")  # while it is written
            whole = len("".join(answer.split()))
            for _ in range(2):
                await page.until(f"{IS_DONE} && ({length}) >= {whole}", MS)
                assert await page.evaluate(length) - whole < 100, "the note that it is too long to format"
                await reload(page)
            assert await page.evaluate("document.querySelector('.chat textarea').value") == "and then?"
