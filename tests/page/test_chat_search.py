"""A person looks for what was said, from any view, with the keyboard; what tabs are called, and edited questions."""

import httpx

from tests.integration.conftest import Serve
from tests.page.journey import page_at, picture, send
from tests.support.browser import BROWSER_TEST, Page
from tests.support.script import plans, says, script

pytestmark = BROWSER_TEST

IS_DONE = "document.querySelector('.answer:last-of-type[aria-busy=false]')"
ROWS = "[...document.querySelectorAll('.chatrow b')].map((one) => one.innerText)"
SEEN = """(() => {
    const at = document.activeElement.getBoundingClientRect();
    return document.activeElement.innerText.includes("%s") && at.top < innerHeight && at.bottom > 0;
})()"""


async def press_ctrl_k(page: Page) -> None:
    key = {"key": "k", "code": "KeyK", "windowsVirtualKeyCode": 75, "modifiers": 2}
    for kind in ("keyDown", "keyUp"):
        await page.send("Input.dispatchKeyEvent", type=kind, **key)


async def tell(client: httpx.AsyncClient, chat: str, words: str, **body: object) -> dict[str, str]:
    asked = {"content": words, "room": "chat", **body}
    sent: dict[str, str] = (await client.post(f"/v1/conversations/{chat}/messages", json=asked)).json()
    await client.get(f"/v1/conversations/{chat}/messages/{sent['answer']}/events")
    return sent


async def test_words_of_an_old_message_are_found_and_shown_from_any_view(devtools: str, serve: Serve) -> None:
    model = script(
        says("Anna mended the **lift** on Monday.", about="Who helped?"), says("Nobody knows.", about="number"),
        says("It was calm."),
    )  # fmt: skip
    async with serve(model) as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        old, other = [(await client.post("/v1/conversations", json={})).json()["id"] for _ in range(2)]
        await tell(client, old, "Who helped?")
        for number in range(31):
            await tell(client, old, f"Which number is {number}?")
        await tell(client, other, "How was the harbour?")
        async with page_at(devtools, url, "#/runs") as page:
            await page.until("document.title === 'Runs · Stepgate'")
            await page.until("document.body.dataset.scopes?.includes('chat')")
            await press_ctrl_k(page)
            await page.until("document.activeElement.type === 'search' && location.hash.startsWith('#/chat')")
            await page.send("Input.insertText", text="lift anna")
            await page.becomes(ROWS, ["Who helped?"])
            excerpt = "document.querySelector('.chatrow .excerpt')"
            await page.until(f"{excerpt}?.innerText.includes('Anna mended')")
            assert await page.evaluate(f"{excerpt}.querySelectorAll('mark').length") == 2
            await picture(page, "search", ("desk",))
            await page.press("Enter")
            await page.until(SEEN % "Anna mended the lift")
            await page.until(f"location.hash === '#/chat/{old}' && document.title === 'Who helped? · Stepgate'")

            await page.evaluate("location.hash = '#/chat'")
            await page.until("document.title === 'Chat · Stepgate'")
            await page.write(".seek input", "no such word")
            await page.until(
                "document.querySelector('.past').innerText.includes('No chat contains all of these words')"
            )


async def test_a_message_of_another_branch_is_shown_with_its_branch(devtools: str, serve: Serve) -> None:
    model = script(says("Under the bridge.", about="boat"), says("In the shed.", about="car"))
    async with serve(model) as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        chat = (await client.post("/v1/conversations", json={})).json()["id"]
        await tell(client, chat, "Where is the boat?")
        await tell(client, chat, "Where is the car?", parent="root")
        async with page_at(devtools, url, f"#/chat/{chat}") as page:
            await page.until("document.querySelector('.prose')?.innerText.includes('In the shed')")
            await page.write(".seek input", "bridge")
            await page.until("document.querySelector('.chatrow .excerpt')?.innerText.includes('Under the bridge')")
            await page.click(".chatrow .item")
            await page.until(SEEN % "Under the bridge")


async def test_an_edited_question_asks_once(devtools: str, serve: Serve) -> None:
    asks = plans({"tool": "calculator", "inputs": {"expression": "6*7"}}, {"tool": "completion"}, about="Compute")
    async with serve(script(asks, says("It is 42."))) as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        room = {"id": "careful", "name": "Careful", "approval": "always", "supervision": "checks"}
        assert (await client.post("/v1/rooms", json=room)).status_code == 201
        async with page_at(devtools, url) as page:
            await send(page, "Compute it", "careful")
            await page.until("document.querySelector('.decision')")
            await page.click("button[title='Edit and send again']")
            await page.write(".edit textarea", "Compute it, please")
            await page.click(".edit .primary")
            await page.until("document.querySelector('.pager')?.innerText === '2 / 2'")
            await page.until("document.querySelector('.decision')")
            waiting = (await client.get("/v1/approvals")).json()["data"]
            assert [one["title"] for one in waiting] == ["Compute it, please"]
            await page.click(".decision .primary")
            await page.until(f"{IS_DONE}?.innerText.includes('It is 42')")
            await page.click("button[title='Earlier version']")
            await page.until("document.querySelector('.answer .tag')?.innerText.includes('stopped')")


async def test_a_picture_of_another_host_is_a_link(devtools: str, serve: Serve) -> None:
    address = "https://pictures.example/harbour.png"
    answer = f"![The harbour]({address})\n\n[![Build](https://pictures.example/b.svg)](https://ci.example/runs)"
    async with serve(script(says(answer))) as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        room = {"id": "eyes", "name": "Eyes", "planning": False, "vision": True}
        assert (await client.post("/v1/rooms", json=room)).status_code == 201
        chat = (await client.post("/v1/conversations", json={})).json()["id"]
        await tell(client, chat, "What is this?", room="eyes", images=[address])
        async with page_at(devtools, url, f"#/chat/{chat}") as page:
            await page.until("document.querySelector('.answer .prose a')")
            links = "[...document.querySelectorAll('.log a[target]')].map((one) => [one.href, one.innerText])"
            await page.becomes(links, [
                [address, "Picture at pictures.example"], [address, "image: The harbour"],
                ["https://ci.example/runs", "Build"],
            ])  # fmt: skip
            assert await page.evaluate("document.querySelectorAll('.log img').length") == 0
