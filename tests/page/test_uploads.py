"""Files that are added while their person looks elsewhere, or faster than the key allows: nothing of them is lost."""

import json
from pathlib import Path

import httpx
import pytest

from gateway.access import authentication
from tests.integration.conftest import Serve
from tests.page.journey import HOLD_UPLOADS, choose_room, page_at, picture, reload
from tests.support.browser import BROWSER_TEST, Page
from tests.support.mcp_client import until_async

pytestmark = BROWSER_TEST

WARNS = """(() => {
    const leaving = new Event("beforeunload", { cancelable: true });
    dispatchEvent(leaving);
    return leaving.defaultPrevented;
})()"""
"""Whether the page warns a person who closes it."""
STATUS = "document.querySelector('.upload [role=status]')?.innerText"
FAILED = "[...document.querySelectorAll('.upload .cardrow')].filter((one) => one.querySelector('.problem')).length"


async def drop(page: Page, files: dict[str, str], place: str) -> None:
    await page.evaluate(f"""(() => {{
        const data = new DataTransfer();
        for (const [name, text] of Object.entries({json.dumps(files)}))
            data.items.add(new File([text], name, {{ type: "text/markdown" }}));
        const event = new DragEvent("drop", {{ dataTransfer: data, bubbles: true }});
        document.querySelector({json.dumps(place)}).dispatchEvent(event);
    }})()""")


async def spend(client: httpx.AsyncClient, key: str) -> None:
    """Use up the requests that a key allows at the moment, as another program of its owner may."""
    while (await client.get("/v1/models", headers={"authorization": f"Bearer {key}"})).status_code == 200:
        pass


async def release(page: Page, number: int) -> None:
    """Let the upload of this number through, and wait for its answer."""
    await page.until(f"window.uploads.length >= {number}")
    await page.evaluate(f"window.uploads[{number - 1}]()")
    await page.becomes("window.answers", number)


async def test_what_failed_while_another_view_was_open_is_listed_afterwards(devtools: str, serve: Serve) -> None:
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        old = {"file": ("old.md", b"The old desk.\n")}
        await client.post("/v1/documents", files=old, data={"collection": "desk"})
        async with page_at(devtools, url, "#/documents/desk") as page:
            await page.until("document.querySelector('.drop')?.checkVisibility()")
            assert not await page.evaluate(WARNS)
            await page.evaluate(HOLD_UPLOADS)
            await drop(page, {"a.md": "The blue desk.\n", "empty.md": "", "b.md": "The red desk.\n"}, ".drop")
            await release(page, 1)
            await page.evaluate("location.hash = '#/chat'")
            await release(page, 2)
            assert await page.evaluate(WARNS)
            await page.evaluate("location.hash = '#/documents/desk'")
            await page.until(f"{STATUS} === '1 of 3 files read · 1 could not be read'")
            await release(page, 3)
            await page.until(f"{STATUS} === '2 files read · 1 could not be read'")
            await page.until("document.querySelectorAll('.row-of').length === 3")
            assert not await page.evaluate(WARNS)
            await picture(page, "documents-failed", ("phone", "desk"))
            assert await page.evaluate(FAILED) == 1
            for place in ("#/chat", "#/documents"):  # where files go into any collection
                await page.evaluate(f"location.hash = '{place}'")
            await page.until("document.querySelector('.stage h1')?.innerText === 'Add documents'")
            assert await page.evaluate(FAILED) == 1
            await page.click(".upload .cardrow .button")  # again
            await release(page, 4)
            await page.becomes(FAILED, 1)
            await page.click(".upload .cardrow .button.plain")
            await page.becomes(STATUS, "2 files read")
        page.faults.clear()


async def test_a_file_of_a_chat_that_failed_meanwhile_is_told_there(devtools: str, serve: Serve) -> None:
    chips = "[...document.querySelectorAll('.attached .file .cut')].map((one) => one.innerText)"
    async with serve() as url, page_at(devtools, url) as page:
        await choose_room(page, "knowledge")
        await page.evaluate(HOLD_UPLOADS)
        await drop(page, {"odd.md": ""}, ".chat .composer")
        await page.until("location.hash.startsWith('#/chat/conv_')")
        place = await page.evaluate("location.hash")
        await page.click(".fresh")
        await page.becomes(chips, [])
        assert await page.evaluate(WARNS)
        await release(page, 1)
        await page.until("document.querySelector('.tray .elsewhere')?.innerText.includes('odd.md was not read')")
        await picture(page, "attached-elsewhere", ("phone", "desk"))
        await page.click(".tray .elsewhere a")
        await page.becomes("location.hash", place)
        await page.until("document.querySelector('.attached .file .problem')")
        assert await page.evaluate(chips) == ["odd.md"]
        await picture(page, "attached-failed")
        assert await page.text(".tray .elsewhere") == ""
        await page.click(".fresh")
        await page.becomes(chips, [])


async def test_files_wait_for_the_limit_of_their_key(
    devtools: str, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(authentication, "MINUTE_SECONDS", 6)
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        fields = {"owner": "anna", "name": "laptop", "scopes": ["chat", "agent", "ingest"]}
        made = await client.post("/v1/admin/keys", json={**fields, "limits": {"requests_per_minute": 12}})
        key = made.json()["text"]
        async with page_at(devtools, url) as page:
            await page.evaluate(f"sessionStorage.setItem('stepgate.key', {json.dumps(key)})")
            await reload(page)
            await page.evaluate("location.hash = '#/documents'")
            await page.until("document.querySelector('.drop')?.checkVisibility()")
            await spend(client, key)
            await drop(page, {f"{at}.md": f"The desk of number {at}.\n" for at in range(5)}, ".drop")
            waits = "document.querySelector('.upload').innerText.includes('limit of requests a minute')"
            await page.until(f"{waits} && document.querySelector('#state').innerText.includes('limit')")
            await picture(page, "documents-at-the-limit", ("phone", "desk"))
            await page.becomes(STATUS, "5 files read")
            await page.until("!document.querySelector('#state').innerText.includes('limit')")
            page.faults.clear()  # the browser reports what was refused


LOSE_UPLOADS = """(() => {
    const real = window.fetch;
    const isUpload = (options) => options?.body instanceof FormData;
    window.fetch = async (path, options) => {
        if (isUpload(options)) throw new TypeError("lost");
        return real(path, options);
    };
    window.mend = () => (window.fetch = real);
})()"""
"""The connection is lost in the middle of each upload, and is back at once."""


@pytest.mark.parametrize(
    ("view", "place", "row"),
    [("documents/desk", ".drop", ".upload .cardrow"), ("chat", ".chat .composer", ".attached .file")],
)
async def test_an_upload_whose_connection_was_lost_says_so_and_is_sent_again(
    devtools: str, serve: Serve, view: str, place: str, row: str
) -> None:
    problem = f"document.querySelector('{row} .problem')?.innerText ?? ''"
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        old = {"file": ("old.md", b"The old desk.\n")}
        await client.post("/v1/documents", files=old, data={"collection": "desk"})
        async with page_at(devtools, url, f"#/{view}") as page:
            await page.until(f"document.querySelector('{place}')?.checkVisibility()")
            await page.evaluate(LOSE_UPLOADS)
            await drop(page, {"a.md": "The blue desk.\n"}, place)
            await page.until(f"({problem}).includes('connection was lost')")
            await picture(page, f"upload-lost-{view[:4]}", ("phone", "desk"))
            await page.evaluate("window.mend()")
            again = f"[...document.querySelectorAll('{row} .button')].find((one) => one.innerText === 'Try again')"
            await page.evaluate(f"{again}.click()")
            await page.until(f"({problem}) === ''")

            async def is_read() -> bool:
                read = [
                    (await client.get("/v1/documents", params={"collection": one["name"]})).json()["data"]
                    for one in (await client.get("/v1/collections")).json()["data"]
                ]
                return sorted(one["name"] for documents in read for one in documents) == ["a.md", "old.md"]

            await until_async(is_read)


async def drop_from_desk(page: Page, path: Path, place: str) -> None:
    """Drag a file or folder of this machine onto an element, as from a file manager."""
    middle = f"""(() => {{
        const at = document.querySelector({json.dumps(place)}).getBoundingClientRect();
        return [at.left + at.width / 2, at.top + at.height / 2];
    }})()"""
    x, y = await page.evaluate(middle)
    data = {"items": [], "files": [str(path)], "dragOperationsMask": 1}
    for kind in ("dragEnter", "dragOver", "drop"):
        await page.send("Input.dispatchDragEvent", type=kind, x=x, y=y, data=data)


async def test_a_folder_that_is_dropped_gives_its_files(devtools: str, serve: Serve, tmp_path: Path) -> None:
    travel, empty, full = (tmp_path / name for name in ("Reisen", "Leer", "Alles"))
    for folder in (travel / "2025" / "Juli", empty, full):
        folder.mkdir(parents=True)
    for place in (travel, travel / "2025", travel / "2025" / "Juli"):
        (place / "plan.md").write_text(f"# {place.name}\n\nThe desk books {place.name}.\n")
    (travel / ".hidden.md").write_text("Of no use.\n")
    for number in range(1_001):
        (full / f"{number}.md").touch()
    async with serve() as url, page_at(devtools, url, "#/documents") as page:
        await page.until("document.querySelector('.drop')?.checkVisibility()")
        for folder, reason in ((empty, "holds no files"), (full, "more than 1,000 files")):
            await drop_from_desk(page, folder, ".drop")
            await page.until(f"document.querySelector('.upload > .problem')?.innerText.includes('{reason}')")
        await picture(page, "documents-folder-refused", ("phone", "desk"))
        await drop_from_desk(page, travel, ".drop")
        await page.becomes(STATUS, "3 files read")
        assert await page.evaluate("document.querySelector('.upload > .problem')") is None
        await page.evaluate("location.hash = '#/chat'")
        await page.until("document.querySelector('.composer')?.checkVisibility()")
        await drop_from_desk(page, travel / "2025", ".composer")
        names = "[...document.querySelectorAll('.attached .file .cut')].map((one) => one.innerText)"
        await page.becomes(names, ["plan.md", "plan.md"])
        await page.until("document.querySelectorAll('.attached .file .quiet').length === 2")
