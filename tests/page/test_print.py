"""What is printed: a whole chat, not only the part in the window, without buttons, and dark on white."""

import base64

from tests.integration.conftest import Serve
from tests.page.journey import page_at, send
from tests.support.browser import BROWSER_TEST, Page
from tests.support.script import says, script

pytestmark = BROWSER_TEST

PARAGRAPHS = 150
IS_DONE = "document.querySelector('.answer:last-of-type[aria-busy=false]')"
VISIBLE = "[...document.querySelectorAll('{}')].filter((one) => one.checkVisibility()).length"
INK = "getComputedStyle(document.querySelector('.answer .prose')).color.match(/\\d+/g).map(Number)"


async def count_pages(page: Page) -> int:
    """The pages of what is printed."""
    printed = base64.b64decode((await page.send("Page.printToPDF"))["data"])
    return printed.count(b"/Type /Page\n")


async def test_a_chat_is_printed_whole_and_dark_on_white(devtools: str, serve: Serve) -> None:
    told = "\n\n".join(f"Paragraph {at} says what one paragraph of an answer says." for at in range(PARAGRAPHS))
    async with serve(script(says(told))) as url, page_at(devtools, url) as page:
        await page.evaluate("localStorage.setItem('stepgate.theme', 'dark')")
        await page.send("Page.reload")
        await send(page, "Tell me all of it")
        await page.until(f"{IS_DONE}?.innerText.includes('Paragraph {PARAGRAPHS - 1} ')")
        assert max(await page.evaluate(INK)) > 200, "light on dark"
        assert await count_pages(page) > 3
        await page.send("Emulation.setEmulatedMedia", media="print")
        assert max(await page.evaluate(INK)) < 60
        for control in (".bar", ".composer", ".answer .tools", ".past"):
            assert await page.evaluate(VISIBLE.format(control)) == 0, control
        assert await page.evaluate(VISIBLE.format(".mine")) == 1


async def test_other_views_are_printed_without_those_that_are_hidden(devtools: str, serve: Serve) -> None:
    async with serve() as url, page_at(devtools, url) as page:
        await send(page, "What is 6*7?", "stepgate")
        await page.until(IS_DONE)
        run = await page.evaluate("document.querySelector('.answer a[href^=\"#/runs/\"]').hash")
        await page.evaluate(f"location.hash = '{run}'")
        await page.until("document.querySelector('.timeline .bar-of')?.checkVisibility()")
        await page.send("Emulation.setEmulatedMedia", media="print")
        assert await page.evaluate(VISIBLE.format("main > .view")) == 1
        assert await page.evaluate(VISIBLE.format(".timeline")) == 1
        assert await page.evaluate(VISIBLE.format(".side")) == 0
