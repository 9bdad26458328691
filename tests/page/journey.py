"""What journeys share: a page without faults, messages, and pictures of what is seen."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.support.browser import Page, open_page
from tests.support.doc_pictures import list_shown_pictures

SIZES = {"phone": (390, 844), "tablet": (800, 1000), "desk": (1280, 860)}
PICTURES = os.environ.get("PAGE_PICTURES", "")
"""The folder for the pictures that the documentation shows; without it they stay as they are."""
VIEWS_FOLDER = os.environ.get("PAGE_VIEWS", "")
"""The folder for all pictures, to be looked at and not kept; none without it."""


OUT_OF_REACH = """(() => {
    const root = document.documentElement;
    const scrolls = (one) => {
        const style = getComputedStyle(one);
        return /auto|scroll/.test(style.overflowX) || style.textOverflow === "ellipsis";
    };
    const isCut = (one) => {
        const box = one.getBoundingClientRect();
        if (box.right <= innerWidth + 1 || !box.width || !one.checkVisibility()) return false;
        for (let at = one; at; at = at.parentElement) if (scrolls(at)) return false;
        return true;
    };
    const cut = [...document.querySelectorAll("header *, main *")].filter(isCut);
    const names = cut.slice(0, 3).map((one) => one.outerHTML.slice(0, 120));
    return root.scrollHeight > innerHeight + 1 ? [...names, "longer than the window, which does not scroll"] : names;
})()"""
"""What a person cannot get to see: it is right of the window, or below it, in nothing that scrolls."""


HOLD_UPLOADS = """(() => {
    const real = window.fetch;
    [window.uploads, window.answers] = [[], 0];
    window.fetch = (path, options) => {
        if (!(options?.body instanceof FormData)) return real(path, options);
        return new Promise((done) => window.uploads.push(
            () => done(real(path, options).finally(() => (window.answers += 1)))));
    };
})()"""
"""A file is sent once its function in `uploads` is called."""


@asynccontextmanager
async def page_at(devtools: str, url: str, place: str = "") -> AsyncIterator[Page]:
    """A page that throws nothing, and whose policy has nothing to refuse."""
    async with open_page(devtools, f"{url}/{place}") as page:
        yield page
        assert page.faults == []
        assert page.dialogs == []


async def choose_room(page: Page, room: str) -> None:
    """Choose a room as its select does."""
    await page.until(f"document.querySelector('.composer select option[value={room}]')")
    await page.evaluate(f"document.querySelector('.composer select').value = '{room}'")


async def send(page: Page, text: str, room: str = "chat") -> None:
    """Write a message and send it, once the answer before it has ended."""
    await choose_room(page, room)
    await page.write(".chat textarea", text)
    await page.until("document.querySelector('.chat .send').title.startsWith('Send')")
    await page.press("Enter")


async def reload(page: Page) -> None:
    """Load the page again, and wait for it."""
    await page.evaluate("window.isOld = true")
    await page.send("Page.reload")
    await wait_until_loaded(page)


async def wait_until_loaded(page: Page) -> None:
    """Wait for the page that replaces the one of which `window.isOld` was set."""
    for _ in range(200):
        try:
            if await page.evaluate("!window.isOld && document.querySelectorAll('.composer option').length > 0"):
                return
        except AssertionError:
            pass  # between the two pages
        await asyncio.sleep(0.1)
    raise AssertionError("the page was not loaded again")


async def picture(page: Page, name: str, sizes: tuple[str, ...] = ("desk",), *, dark: bool = False) -> None:
    """Take a picture of what is seen, at these widths; and see that nothing reaches beyond the window."""
    for size in sizes:
        width, height = SIZES[size]
        await page.look_like(width, height, dark=dark)
        await page.until(f"document.documentElement.scrollWidth <= {width}")
        assert await page.evaluate(OUT_OF_REACH) == [], f"{name} at {size}"
        suffix = ("" if size == "desk" else f"-{size}") + ("-dark" if dark else "")
        file = f"page-{name}{suffix}.png"
        folders = [VIEWS_FOLDER, PICTURES if file in list_shown_pictures() else ""]
        if any(folders):
            seen = await page.screenshot()
            await asyncio.to_thread(_write, [Path(folder) / file for folder in folders if folder], seen)
    await page.look_like(*SIZES["desk"])


def _write(paths: list[Path], seen: bytes) -> None:
    for path in paths:
        path.write_bytes(seen)
