"""A page that is open, or opened, while the gateway is upgraded: it says so, and mixes no modules of two versions."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

from agent.core.settings import Settings
from tests.page.journey import picture
from tests.support.browser import BROWSER_TEST, open_page
from tests.support.serving import serving

pytestmark = BROWSER_TEST

BANNER = "document.querySelector('#notice')?.innerText ?? ''"
EDITIONS = """[...new Set(performance.getEntriesByType("resource").filter((one) => one.responseStatus === 200)
    .map((one) => /\\/web\\/([0-9a-f]{12})\\//.exec(one.name)?.[1]).filter(Boolean))]"""
"""The versions of the files that the page has got."""


@asynccontextmanager
async def gateway(folder: Path, port: int = 0, features: str = "") -> AsyncIterator[str]:
    """A gateway. With other features its page is another version."""
    settings = Settings(_env_file=None, data_dir=folder, skills_dirs=(), drain_seconds=1, features=features)
    async with serving(settings, port=port) as url:
        yield url


async def test_an_open_page_mixes_nothing_of_two_versions_and_says_so(devtools: str, tmp_path: Path) -> None:
    async with open_page(devtools, "about:blank") as page:
        async with gateway(tmp_path) as url:
            await page.go(url)
            await page.until("document.querySelectorAll('.card').length > 2")
            (before,) = await page.evaluate(EDITIONS)
        async with gateway(tmp_path, urlsplit(url).port or 0, features="-fleet"):
            await page.write(".chat textarea", "Half a question")
            await page.evaluate("location.hash = '#/documents'")
            await page.until("document.querySelector('main .banner')?.innerText.includes('Load the page again')")
            await page.until(f"({BANNER}).includes('was upgraded')")
            assert await page.evaluate(EDITIONS) == [before], "nothing of the later version"
            await picture(page, "upgraded", ("phone", "desk"))
            await page.evaluate("document.querySelector('#notice .button').click()")
            await page.until("document.querySelector('.drop')?.checkVisibility()")
            assert await page.evaluate(BANNER) == ""
            (after,) = await page.evaluate(EDITIONS)
            assert after != before
            await page.evaluate("location.hash = '#/chat'")
            await page.becomes("document.querySelector('.chat textarea').value", "Half a question")


async def test_a_page_whose_modules_are_gone_offers_to_be_loaded_again(devtools: str, tmp_path: Path) -> None:
    async with gateway(tmp_path) as url, open_page(devtools, "about:blank") as page:
        await page.send("Network.enable")
        await page.send("Network.setBlockedURLs", urls=["*/app.js"])
        await page.go(url)
        there = "document.querySelector('#starting')"
        assert await page.evaluate(f"getComputedStyle({there}).visibility") == "hidden", "it may come yet"
        await page.until(f"getComputedStyle({there}).visibility === 'visible'")
        await picture(page, "not-started", ("phone", "desk"))
        await page.send("Network.setBlockedURLs", urls=[])
        await page.click("#starting a")
        await page.until("document.querySelectorAll('.card').length > 2")
        assert not await page.evaluate(there)
