"""A file that is attached to a chat: it is read for this chat, answers come from it, and it goes with the chat."""

import json
from collections.abc import Iterator

import httpx
import pytest

from tests.integration.conftest import Serve, model_server, serve
from tests.page.journey import choose_room, page_at, picture, reload, send
from tests.support.browser import BROWSER_TEST, running_chromium

__all__ = ["model_server", "serve"]  # fixtures

pytestmark = BROWSER_TEST

ANSWER = "document.querySelector('.answer:last-of-type .prose')?.innerText ?? ''"
IS_DONE = "document.querySelector('.answer:last-of-type[aria-busy=false]')"
LIMIT = "[...document.querySelectorAll('.tray > .into')].find((one) => one.checkVisibility())?.innerText ?? ''"


@pytest.fixture(scope="module")
def devtools() -> Iterator[str]:
    with running_chromium() as address:
        yield address


def drop(name: str, text: str) -> str:
    """The script that drops a file on the message box."""
    return f"""(() => {{
        const data = new DataTransfer();
        data.items.add(new File([{json.dumps(text)}], {json.dumps(name)}, {{ type: "text/markdown" }}));
        const event = new DragEvent("drop", {{ dataTransfer: data, bubbles: true }});
        document.querySelector(".chat .composer").dispatchEvent(event);
    }})()"""


async def test_a_file_belongs_to_its_chat(devtools: str, serve: Serve) -> None:
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        shared = b"# Devices\n\nLost devices go to the blue desk in the lobby.\n"
        sent = await client.post("/v1/documents", files={"file": ("a.md", shared)}, data={"collection": "shared"})
        assert sent.status_code == 201, sent.text
        async with page_at(devtools, url) as page:
            await choose_room(page, "knowledge")
            for _ in range(2):  # the same file twice, before it was read
                await page.evaluate(drop("mine.md", "# Devices\n\nLost devices go to the red desk upstairs.\n"))
            states = "[...document.querySelectorAll('.attached .file .quiet')].map((one) => one.innerText).sort()"
            await page.becomes(states, ["1 passage in this chat", "already in this chat"])
            own = [one for one in (await client.get("/v1/collections")).json()["data"] if one["name"] != "shared"]
            assert [one["documents"] for one in own] == [1]
            await page.until(f"({LIMIT}).includes('the files of this chat')")
            assert (await page.evaluate("location.hash")).startswith("#/chat/conv_")
            await picture(page, "attached", ("phone", "desk"))
            await send(page, "Where do lost devices go?", "knowledge")
            await page.until(f"{IS_DONE} && ({ANSWER}).includes('red desk')")
            assert "blue desk" not in await page.evaluate(ANSWER)
            await reload(page)
            await page.until(f"({LIMIT}).includes('the files of this chat') && ({ANSWER}).includes('red desk')")
            await page.click(".tray .into .button")
            await page.until(f"({LIMIT}) === ''")
            await send(page, "Who takes lost devices in the lobby?", "knowledge")
            await page.until(f"{IS_DONE} && ({ANSWER}).includes('blue desk')")
            assert len((await client.get("/v1/collections")).json()["data"]) == 2
            await page.click(".menu .tool")
            await page.click(".popup:popover-open .button:nth-last-child(1)")
            await page.click(".popup:popover-open .sure")
            await page.until("location.hash === '#/chat'")
            assert [one["name"] for one in (await client.get("/v1/collections")).json()["data"]] == ["shared"]
