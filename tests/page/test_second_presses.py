"""What is pressed twice, and a chat that somebody deletes while it is open elsewhere."""

import httpx
import pytest

from tests.integration.conftest import Serve
from tests.page.journey import page_at, send
from tests.support.browser import BROWSER_TEST, Page
from tests.support.script import says, script

pytestmark = BROWSER_TEST

IS_DONE = "document.querySelector('.answer:last-of-type[aria-busy=false]')"
DELETE = "[...document.querySelectorAll('.popup:popover-open .button')].at(-1)"


HOLD_KEYS = """(() => {
    const real = window.fetch;
    const held = new Promise((go) => (window.letGo = go));
    window.fetch = async (path, options) => {
        if (path === "v1/admin/keys" && options.method === "GET") await held;
        return real(path, options);
    };
})()"""
"""The list of keys is not loaded before `letGo()` is called."""


async def press_twice_at_once(page: Page, element: str) -> None:
    """Presses as a double click does: the second press is known as one."""
    await page.until(f"{element}?.checkVisibility()")
    x, y = await page.evaluate(
        f"(() => {{ const at = {element}.getBoundingClientRect(); return [at.left + 9, at.top + 9]; }})()"
    )
    for number in (1, 2):
        for kind in ("mousePressed", "mouseReleased"):
            await page.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=number)


async def test_an_answer_is_made_again_once(devtools: str, serve: Serve) -> None:
    async with serve(script(says("It was calm."))) as url, page_at(devtools, url) as page:
        await send(page, "How was the harbour?")
        await page.until(IS_DONE)
        await press_twice_at_once(page, "document.querySelector('button[title=\"Answer again\"]')")
        await page.becomes("document.querySelector('.answer .pager, .asked .pager')?.innerText", "2 / 2")
        chat = str(await page.evaluate("location.hash.split('/').at(-1)"))
        async with httpx.AsyncClient(base_url=url, timeout=30) as client:
            listed = (await client.get(f"/v1/conversations/{chat}/messages")).json()["data"]
        assert [len(one["siblings"]) for one in listed] == [2, 1]


async def test_a_double_click_deletes_nothing(devtools: str, serve: Serve) -> None:
    async with serve(script(says("It was calm."))) as url, page_at(devtools, url) as page:
        await send(page, "How was the harbour?")
        await page.until(IS_DONE)
        await page.click(".chatrow .menu .tool")
        await press_twice_at_once(page, DELETE)
        await page.becomes(f"{DELETE}.innerText", "Really delete?")
        await page.evaluate(f"{DELETE}.previousSibling.focus()")
        await page.becomes(f"{DELETE}.innerText", "Delete")
        async with httpx.AsyncClient(base_url=url, timeout=30) as client:
            assert len((await client.get("/v1/conversations")).json()["data"]) == 1
        await page.evaluate(f"{DELETE}.focus()")
        await page.press("Enter")
        await page.becomes(f"{DELETE}.innerText", "Really delete?")
        await page.press("Enter")
        await page.until("document.querySelector('.past .items').innerText.includes('Your chats appear here')")


@pytest.mark.parametrize("is_edited", [False, True], ids=["new", "edited"])
async def test_words_for_a_chat_that_was_deleted_elsewhere_wait_in_a_new_one(
    devtools: str, serve: Serve, is_edited: bool
) -> None:
    async with serve(script(says("It was calm."))) as url, page_at(devtools, url) as page:
        await send(page, "How was the harbour?")
        await page.until(IS_DONE)
        chat = str(await page.evaluate("location.hash.split('/').at(-1)"))
        async with httpx.AsyncClient(base_url=url, timeout=30) as client:
            if is_edited:
                await page.click("button[title='Edit and send again']")
                await page.write(".edit textarea", "And the sea?")
            await client.delete(f"/v1/conversations/{chat}")
            if is_edited:
                await page.click(".edit .primary")
            else:
                await send(page, "And the sea?")
            await page.until("document.querySelector('.log').innerText.includes('waits in a new chat')")
            assert (await client.get("/v1/conversations")).json()["data"] == []
            await page.click(".log a.button")
            await page.until("document.querySelector('.chat textarea').value === 'And the sea?'")
            await page.press("Enter")
            await page.until(IS_DONE)
            assert len((await client.get("/v1/conversations")).json()["data"]) == 1


async def test_a_chat_that_is_deleted_elsewhere_stops_and_says_so(devtools: str, serve: Serve) -> None:
    model = script(says("The harbour was quiet. " * 60, pause_s=0.2))
    async with (
        serve(model) as url,
        httpx.AsyncClient(base_url=url, timeout=30) as client,
        page_at(devtools, url) as page,
    ):
        await send(page, "How was the harbour?")
        await page.until("document.querySelector('.answer .prose')?.innerText.includes('quiet')")
        chat = str(await page.evaluate("location.hash.split('/').at(-1)"))
        await client.delete(f"/v1/conversations/{chat}")
        await page.until("document.querySelector('.log').innerText.includes('This chat was deleted')", 10_000)
        runs = (await client.get("/v1/runs")).json()["data"]
        assert [one["status"] for one in runs] == ["cancelled"]


async def test_a_key_is_made_once_and_displayed_whatever_becomes_of_the_list(devtools: str, serve: Serve) -> None:
    async with serve() as url, page_at(devtools, url, "#/team/keys") as page:
        await page.until("document.querySelector('.team form')")
        await page.evaluate("document.querySelector('.team details').open = true")
        await page.write(".team [name=owner]", "anna")
        await page.write(".team [name=name]", "laptop")
        await page.evaluate(HOLD_KEYS)
        form = "document.querySelector('.team form')"
        await page.evaluate(f"({form}.requestSubmit(), {form}.requestSubmit())")
        await page.until("document.querySelector('.made code')?.innerText")
        async with httpx.AsyncClient(base_url=url, timeout=30) as client:
            assert len((await client.get("/v1/admin/keys")).json()["data"]) == 1
        await page.evaluate("window.letGo()")
        await page.until("document.querySelector('.team')?.innerText.includes('1 key')")
        assert await page.evaluate("document.querySelector('.made code')?.innerText")
        ticked = "[...document.querySelectorAll('.team [name=scopes]:checked')].map((one) => one.value)"
        assert await page.evaluate(ticked) == ["chat", "agent", "approve"], "as for the first key"


async def test_the_part_of_the_team_that_was_opened_last_is_displayed(devtools: str, serve: Serve) -> None:
    async with serve() as url, page_at(devtools, url, "#/team/usage") as page:
        await page.until("document.querySelector('.team h1')?.innerText === 'Usage'")
        await page.evaluate(HOLD_KEYS)
        await page.evaluate("location.hash = '#/team/keys'")
        await page.until("document.querySelector('.tabs [aria-current=page]').innerText === 'Keys'")
        await page.evaluate("location.hash = '#/team/audit'")
        await page.until("document.querySelector('.team h1')?.innerText === 'Audit'")
        await page.evaluate("window.letGo()")
        await page.becomes(
            "performance.getEntriesByType('resource').some((one) => one.name.endsWith('v1/admin/keys'))", True
        )
        assert await page.text(".team h1") == "Audit"
