"""What comes between a person and their chat: another tab, a lost connection behind a button, no JavaScript."""

from collections.abc import Iterator

import pytest

from tests.integration.conftest import Serve, model_server, serve
from tests.page.journey import page_at, send
from tests.support.browser import BROWSER_TEST, running_chromium
from tests.support.script import says, script

__all__ = ["model_server", "serve"]  # fixtures

pytestmark = BROWSER_TEST

ANSWER = "document.querySelector('.answer:last-of-type .prose')?.innerText ?? ''"
QUESTIONS = "[...document.querySelectorAll('.mine')].map((one) => one.innerText)"
IS_DONE = "document.querySelector('.answer:last-of-type[aria-busy=false]')"
OFFLINE = {"offline": True, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}


@pytest.fixture(scope="module")
def devtools() -> Iterator[str]:
    with running_chromium() as address:
        yield address


async def test_two_tabs_on_one_chat_show_the_same(devtools: str, serve: Serve) -> None:
    words = ("one", "two", "three", "four")
    model = script(*(says(f"Here is {word}.", about=f"Say {word}", chunk=4) for word in reversed(words)))
    async with serve(model) as url, page_at(devtools, url) as page:
        await send(page, "Say one")
        await page.until(f"{IS_DONE} && ({ANSWER}).includes('Here is one')")
        async with page_at(devtools, url, await page.evaluate("location.hash")) as other:
            await other.until(f"({ANSWER}).includes('Here is one')")
            await send(other, "Say two")
            await other.until(f"{IS_DONE} && ({ANSWER}).includes('Here is two')")
            await page.evaluate("dispatchEvent(new Event('focus'))")  # looked at again
            await page.until(f"({ANSWER}).includes('Here is two')")
            await page.becomes(QUESTIONS, ["Say one", "Say two"])
            await send(page, "Say three")
            await page.until(f"{IS_DONE} && ({ANSWER}).includes('Here is three')")
            await other.becomes(QUESTIONS, ["Say one", "Say two"])
            await send(other, "Say four")  # before it has seen the third one
            await other.until(f"{IS_DONE} && ({ANSWER}).includes('Here is four')")
            await other.becomes(QUESTIONS, [f"Say {word}" for word in words])
            await page.becomes(QUESTIONS, [f"Say {word}" for word in words])  # without being touched, in a while


async def test_a_button_says_what_it_could_not_do(devtools: str, serve: Serve) -> None:
    export = "[...document.querySelectorAll('.popup .button')].find((one) => one.innerText.includes('Markdown'))"
    async with serve(script(says("Fine."))) as url, page_at(devtools, url) as page:
        await send(page, "Hello")
        await page.until(IS_DONE)
        await page.send("Network.enable")
        await page.send("Network.emulateNetworkConditions", **OFFLINE)
        await page.click(".menu .tool")
        await page.until("document.querySelector('.popup:popover-open')")
        await page.evaluate(f"{export}.click()")
        await page.until(
            "document.querySelector('.popup:popover-open .problem')?.innerText.includes('cannot be reached')"
        )
        await page.send("Network.emulateNetworkConditions", **(OFFLINE | {"offline": False}))
        await page.evaluate(f"{export}.click()")
        await page.until("document.querySelector('.popup:popover-open') === null")
        assert await page.evaluate("document.querySelector('.popup .problem') === null")
        page.faults.clear()  # the browser reports the requests that it could not send


async def test_without_javascript_the_page_says_what_it_needs(devtools: str, serve: Serve) -> None:
    async with serve() as url, page_at(devtools, url) as page:
        await page.send("Emulation.setScriptExecutionDisabled", value=True)
        await page.send("Page.reload")
        for _ in range(100):
            nodes = (await page.send("Accessibility.getFullAXTree"))["nodes"]
            said = " ".join(str(node["name"].get("value", "")) for node in nodes if "name" in node)
            if "This page needs JavaScript" in said:
                break
        assert "This page needs JavaScript" in said
        assert "openapi.json" in said
