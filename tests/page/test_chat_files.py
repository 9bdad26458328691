"""A file that is attached to a chat: it is read for this chat, answers come from it, and it goes with the chat."""

import json
from pathlib import Path

import httpx

from tests.integration.conftest import Serve
from tests.page.journey import HOLD_UPLOADS, choose_room, page_at, picture, reload, send
from tests.support.browser import BROWSER_TEST
from tests.support.mcp_client import until_async

pytestmark = BROWSER_TEST

ANSWER = "document.querySelector('.answer:last-of-type .prose')?.innerText ?? ''"
IS_DONE = "document.querySelector('.answer:last-of-type[aria-busy=false]')"
LIMIT = "[...document.querySelectorAll('.tray > .into')].find((one) => one.checkVisibility())?.innerText ?? ''"


def drop(name: str, text: str, place: str = ".chat .composer") -> str:
    """The script that drops a file on the message box, or another element; its value is whether the page takes it: what
    nobody takes, the browser opens in the page's place."""
    return f"""(() => {{
        const data = new DataTransfer();
        data.items.add(new File([{json.dumps(text)}], {json.dumps(name)}, {{ type: "text/markdown" }}));
        const events = ["dragover", "drop"].map(
            (kind) => new DragEvent(kind, {{ dataTransfer: data, bubbles: true, cancelable: true }}));
        for (const event of events) document.querySelector({json.dumps(place)}).dispatchEvent(event);
        return events.every((event) => event.defaultPrevented);
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


async def test_a_question_waits_for_the_files_that_go_with_it(devtools: str, serve: Serve) -> None:
    async with serve() as url, page_at(devtools, url) as page:
        await choose_room(page, "knowledge")
        assert await page.evaluate(drop("mine.md", "Lost devices go to the red desk.\n", ".talking .scroll"))
        await send(page, "Where do lost devices go?", "knowledge")  # at once
        await page.until(f"{IS_DONE} && ({ANSWER}).includes('red desk')")
        assert await page.evaluate("document.querySelector('.attached .file') === null")

        assert await page.evaluate(drop("odd.xyz", "\u0000\u0001\u0002", ".talking .scroll"))
        await send(page, "And what is in this one?", "knowledge")
        await page.until("document.querySelector('.unsent .banner')?.innerText.includes('could not be read')")
        assert await page.evaluate("document.querySelector('.chat textarea').value") == "And what is in this one?"
        await page.until("document.querySelector('.attached .file .problem')")
        assert len(await page.evaluate("[...document.querySelectorAll('.asked:not(.unsent)')].map((one) => 1)")) == 1

        assert await page.evaluate(drop("else.md", "A file that misses its place.\n", "header.bar"))
        assert await page.evaluate("document.querySelectorAll('.attached .file').length") == 1


async def test_the_files_of_a_chat_have_its_name_and_others_go_elsewhere(devtools: str, serve: Serve) -> None:
    async with serve() as url, page_at(devtools, url) as page:
        await choose_room(page, "knowledge")
        await page.evaluate(drop("mine.md", "Lost devices go to the red desk.\n"))
        await send(page, "Where do lost devices go?", "knowledge")
        await page.until(IS_DONE)
        await page.evaluate("location.hash = '#/documents'")
        await page.until("document.querySelector('.drop')?.checkVisibility()")
        target = "document.querySelector('.upload').previousElementSibling.control.value"
        assert await page.evaluate(target) == "documents"
        listed = await page.text("nav[aria-label=Collections]")
        assert "ATTACHED TO CHATS" in listed.upper()
        assert "Where do lost devices go?" in listed
        await page.click("nav[aria-label=Collections] .item")
        await page.until("document.querySelector('header h1')?.innerText === 'Where do lost devices go?'")
        assert "Ask in its chat" in await page.text(".stage")
        assert await page.evaluate(drop("more.md", "Found devices go to the blue desk.\n", ".stage h1"))
        await page.until("document.querySelector('.stage').innerText.includes('2 documents')")


async def test_what_is_being_written_waits_in_its_chat(devtools: str, serve: Serve) -> None:
    box = "document.querySelector('.chat textarea').value"
    async with serve() as url, page_at(devtools, url) as page:
        await send(page, "What is 6*7?", "stepgate")
        await page.until(f"{IS_DONE} && ({ANSWER}).includes('42')")
        await page.write(".chat textarea", "and half a thought")
        await page.click(".fresh")
        await page.becomes(box, "")
        await page.write(".chat textarea", "another one")
        await page.click(".chatrow .item")
        await page.becomes(box, "and half a thought")
        await reload(page)
        await page.becomes(box, "and half a thought")
        await page.until("document.activeElement.matches('.chat textarea')")
        await page.press("Enter")
        await page.until(f"document.querySelectorAll('.answer').length === 2 && {IS_DONE}")
        await page.click(".fresh")
        await page.becomes(box, "another one")
        await page.evaluate("history.back()")
        await page.becomes(box, "")


async def test_a_file_stays_with_its_chat_if_another_is_opened_meanwhile(devtools: str, serve: Serve) -> None:
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=30) as client, page_at(devtools, url) as page:
        await choose_room(page, "knowledge")
        await page.evaluate(drop("mine.md", "Lost devices go to the red desk.\n"))
        await page.until("location.hash.startsWith('#/chat/conv_')")
        place = await page.evaluate("location.hash")
        await page.click(".fresh")  # while it is read
        await page.until("location.hash === '#/chat' && !document.querySelector('.attached .file')")
        chat = f"/v1/conversations/{place.removeprefix('#/chat/')}"

        async def is_noted() -> bool:
            return "collection" in (await client.get(chat)).json()["metadata"]

        await until_async(is_noted)
        assert await page.evaluate("location.hash") == "#/chat"
        assert await page.evaluate(LIMIT) == ""
        await page.evaluate(f"location.hash = '{place}'")
        await page.until(f"({LIMIT}).includes('the files of this chat')")


async def test_a_file_that_the_browser_cannot_read_is_no_lost_connection(
    devtools: str, serve: Serve, tmp_path: Path
) -> None:
    kept, moved = tmp_path / "kept.md", tmp_path / "moved.md"
    for file in (kept, moved):
        file.write_text("# Travel\n\nTickets are booked by the desk.\n")
    async with serve() as url, page_at(devtools, url, "#/documents") as page:
        await page.until("document.querySelector('.upload')?.checkVisibility()")
        root = (await page.send("DOM.getDocument"))["root"]["nodeId"]
        field = await page.send("DOM.querySelector", nodeId=root, selector=".upload input[type=file]")
        await page.evaluate(HOLD_UPLOADS)
        await page.send("DOM.setFileInputFiles", nodeId=field["nodeId"], files=[str(kept), str(moved)])
        await page.becomes("window.uploads.length", 1)
        moved.unlink()  # before the browser has read it
        await page.evaluate("window.uploads[0]()")
        await page.becomes("window.uploads.length", 2)
        await page.evaluate("window.uploads[1]()")
        await page.until("document.querySelector('.upload .problem')?.innerText.includes('may have been moved')")
        assert "unreachable" not in await page.text("#state")


async def test_files_are_sent_one_after_another_and_a_removed_one_is_not_kept(devtools: str, serve: Serve) -> None:
    chips = "[...document.querySelectorAll('.attached .file .cut')].map((one) => one.innerText)"
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=30) as client, page_at(devtools, url) as page:
        await choose_room(page, "knowledge")
        await page.evaluate(HOLD_UPLOADS)
        for name in ("red.md", "blue.md"):
            await page.evaluate(drop(name, f"Lost devices go to the desk of {name}.\n"))
        await page.becomes("window.uploads.length", 1)
        await page.evaluate("window.uploads[0]()")
        await page.becomes("window.uploads.length", 2)
        await page.evaluate("window.uploads[1]()")
        await page.until("document.querySelectorAll('.attached .file .quiet')[1].innerText.includes('1 passage')")
        await page.click(".attached .file .button")
        await page.becomes(chips, ["blue.md"])
        (own,) = (await client.get("/v1/collections")).json()["data"]
        listed = (await client.get("/v1/documents", params={"collection": own["name"]})).json()["data"]
        assert [one["name"] for one in listed] == ["blue.md"]


async def test_the_collection_chosen_for_a_file_is_not_that_of_the_next_chat(devtools: str, serve: Serve) -> None:
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=30) as client, page_at(devtools, url) as page:
        await choose_room(page, "knowledge")
        await page.evaluate(drop("first.md", "Lost devices go to the red desk.\n"))
        await page.until("document.querySelector('.attached .file .quiet')?.innerText.includes('in this chat')")
        await page.write(".tray .into input", "shared")
        await page.evaluate("document.querySelector('.fresh').click()")
        await page.until("document.querySelector('.attached .file') === null")
        await page.evaluate(drop("private.md", "My salary is nobody's business.\n"))
        await page.until("document.querySelector('.attached .file .quiet')?.innerText.includes('in this chat')")
        assert "shared" not in [one["name"] for one in (await client.get("/v1/collections")).json()["data"]]


async def test_a_file_that_is_read_while_its_chat_is_deleted_is_not_kept(devtools: str, serve: Serve) -> None:
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=30) as client, page_at(devtools, url) as page:
        await send(page, "What is 6*7?", "stepgate")
        await page.until(f"{IS_DONE} && ({ANSWER}).includes('42')")
        await page.evaluate(HOLD_UPLOADS)
        await page.evaluate(drop("mine.md", "Lost devices go to the red desk.\n"))
        await page.becomes("window.uploads.length", 1)
        await page.click(".menu .tool")
        await page.click(".popup:popover-open .button:nth-last-child(1)")
        await page.click(".popup:popover-open .sure")
        await page.until("location.hash === '#/chat'")
        await page.evaluate("window.uploads[0]()")
        await page.becomes("window.answers", 1)
        await until_async(lambda: has_no_collection(client))
        page.faults.clear()  # the browser reports what was not there


async def test_a_chat_without_its_only_file_is_answered_from_all_documents_again(devtools: str, serve: Serve) -> None:
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=30) as client, page_at(devtools, url) as page:
        await choose_room(page, "knowledge")
        for is_there in (True, False):
            await page.evaluate(drop("mine.md", "Lost devices go to the red desk.\n"))
            await page.until(f"({LIMIT}).includes('the files of this chat')")
            await page.until("document.querySelector('.attached .file .quiet')?.innerText.includes('in this chat')")
            if not is_there:  # deleted elsewhere
                (own,) = (await client.get("/v1/collections")).json()["data"]
                await client.delete(f"/v1/collections/{own['name']}")
            await page.click(".attached .file .button")
            await page.until(f"document.querySelector('.attached .file') === null && ({LIMIT}) === ''")
            assert await has_no_collection(client)
            chat = (await page.evaluate("location.hash")).rpartition("/")[2]
            metadata = (await client.get(f"/v1/conversations/{chat}")).json()["metadata"]
            assert "collection" not in metadata
        page.faults.clear()  # the browser reports what was not there


async def has_no_collection(client: httpx.AsyncClient) -> bool:
    return not (await client.get("/v1/collections")).json()["data"]


async def test_a_file_goes_into_the_collection_that_is_displayed(devtools: str, serve: Serve) -> None:
    """While another collection is loaded, the place to drop files is still that of the one before."""
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        for name in ("first", "second"):
            files = {"file": ("a.md", f"The {name} desk.\n".encode())}
            await client.post("/v1/documents", files=files, data={"collection": name})
        async with page_at(devtools, url, "#/documents/first") as page:
            await page.until("document.querySelector('.stage h1')?.innerText === 'first'")
            hold = "path.startsWith('v1/jobs') || path.startsWith('v1/documents?')"
            await page.evaluate(
                "(() => { const real = window.fetch; const held = new Promise((go) => (window.letGo = go));"
                f"window.fetch = async (path, options) => (({hold}) && (await held), real(path, options)); }})()"
            )
            await page.evaluate("location.hash = '#/documents/second'")
            await page.until("document.querySelector('.item[aria-current=page]')?.innerText.includes('second')")
            await page.evaluate(drop("b.md", "The blue desk.\n", ".stage h1"))
            await page.until("document.querySelector('.upload [role=status]')?.innerText === '1 file read'")
            await page.evaluate("window.letGo()")
            await page.until("document.querySelector('.stage h1')?.innerText === 'second'")
            counts = {one["name"]: one["documents"] for one in (await client.get("/v1/collections")).json()["data"]}
            assert counts == {"first": 2, "second": 1}
            await page.until("document.querySelectorAll('.row-of').length === 1")
