"""Many files at once: how far it is, what failed, and which of two of the same title is which."""

import json

import httpx

from tests.integration.conftest import Serve
from tests.page.journey import HOLD_UPLOADS, page_at, picture
from tests.support.browser import BROWSER_TEST

pytestmark = BROWSER_TEST

TRAVEL = "# Travel\n\nTrain tickets are booked by the travel desk. {}\n"
FILES = {
    "handbook.md": TRAVEL.format("Early."),
    "a-very-long-name-of-a-file-that-was-downloaded-and-never-renamed-(final)-(2).md": TRAVEL.format("Late."),
    "empty.md": "",
    "سياسة.md": "# سياسة السفر\n\nيتم حجز تذاكر القطار من قبل مكتب السفر.\n",
}
DROP = f"""(() => {{
    const data = new DataTransfer();
    for (const [name, text] of Object.entries({json.dumps(FILES)}))
        data.items.add(new File([text], name, {{ type: "text/markdown" }}));
    document.querySelector(".drop").dispatchEvent(new DragEvent("drop", {{ dataTransfer: data, bubbles: true }}));
}})()"""
WATCH = """(() => {
    window.lines = [];
    const line = document.querySelector(".upload > [role=status]");
    new MutationObserver(() => window.lines.push(line.innerText)).observe(line, { childList: true });
})()"""
VISIBLE_NAMES = """[...document.querySelectorAll('.row-of .quiet bdi')].filter((one) => {
    const [name, row] = [one.getBoundingClientRect(), one.parentElement.getBoundingClientRect()];
    return name.left < row.right - 40;
}).map((one) => one.innerText)"""


async def test_dropped_files_are_counted_and_those_of_one_title_differ_on_a_phone(devtools: str, serve: Serve) -> None:
    async with serve() as url, page_at(devtools, url, "#/documents") as page:
        await page.until("document.querySelector('.drop')?.checkVisibility()")
        await page.evaluate(WATCH)
        await page.evaluate(DROP)
        await page.until("window.lines.at(-1) === '3 files read · 1 could not be read'")
        assert (await page.evaluate("window.lines"))[:3] == [f"{read} of 4 files read" for read in range(3)]
        await picture(page, "documents-dropped", ("phone", "desk"))
        await page.evaluate("location.hash = '#/documents/documents'")
        await page.until("document.querySelectorAll('.row-of').length === 3")
        await picture(page, "documents-of-one-title", ("phone", "desk"))
        await page.look_like(390, 844)
        assert set(await page.evaluate(VISIBLE_NAMES)) == set(FILES) - {"empty.md"}
        await page.evaluate(
            "[...document.querySelectorAll('.row-of')].find((one) => /سياسة/.test(one.innerText)).click()"
        )
        await page.until("document.querySelector('.passages p')")
        direction = "getComputedStyle([...document.querySelectorAll('.run h1')].at(-1)).direction"
        assert await page.evaluate(direction) == "rtl"


async def test_the_end_of_one_file_is_read_out(devtools: str, serve: Serve) -> None:
    async with serve() as url, page_at(devtools, url, "#/documents") as page:
        await page.until("document.querySelector('.drop')?.checkVisibility()")
        await page.evaluate(WATCH)
        name = "handbook.md"
        await page.evaluate(DROP.replace(json.dumps(FILES), json.dumps({name: FILES[name]})))
        await page.becomes("window.lines", ["0 of 1 file read", "1 file read"])


async def test_files_that_are_dropped_while_others_are_read_are_listed_when_they_are(
    devtools: str, serve: Serve
) -> None:
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        files = {"file": ("old.md", TRAVEL.format("Now.").encode())}
        await client.post("/v1/documents", files=files, data={"collection": "desk"})
        async with page_at(devtools, url, "#/documents/desk") as page:
            await page.until("document.querySelectorAll('.row-of').length === 1")
            await page.evaluate(HOLD_UPLOADS)
            for place, name in (("Early.", "a.md"), ("Late.", "b.md")):
                await page.evaluate(DROP.replace(json.dumps(FILES), json.dumps({name: TRAVEL.format(place)})))
            await page.becomes("window.uploads.length", 1)
            await page.evaluate("window.uploads[0]()")
            await page.becomes("window.uploads.length", 2)
            await page.until("document.querySelector('.upload [role=status]')?.innerText === '1 of 2 files read'")
            await page.evaluate("window.uploads[1]()")
            await page.until("document.querySelectorAll('.row-of').length === 3")
