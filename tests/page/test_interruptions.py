"""What comes between a person and their chat: another tab, a lost connection behind a button, no JavaScript."""

import json
from pathlib import Path

import httpx

from tests.integration.conftest import Serve
from tests.page.journey import page_at, picture, reload, send
from tests.support.browser import BROWSER_TEST
from tests.support.script import plans, says, script
from tests.support.talks import papers, talk

pytestmark = BROWSER_TEST

ANSWER = "document.querySelector('.answer:last-of-type .prose')?.innerText ?? ''"
QUESTIONS = "[...document.querySelectorAll('.mine')].map((one) => one.innerText)"
IS_DONE = "document.querySelector('.answer:last-of-type[aria-busy=false]')"
OFFLINE = {"offline": True, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
LOSE_ANSWERS = """(() => {
    const real = window.fetch;
    window.losing = true;
    window.fetch = async (path, options) => {
        const response = await real(path, options);
        if (window.losing && options?.method === "POST" && path.endsWith("/messages")) throw new TypeError("lost");
        return response;
    };
})()"""
"""The gateway gets messages, but what it answers to them is lost."""
LOOK_ELSEWHERE = """(() => {
    window.notes = [];
    window.Notification = class {
        static permission = "granted";
        constructor(title, { tag }) { window.notes.push(tag); }
    };
    document.hasFocus = () => false;
    Object.defineProperty(document, "hidden", { get: () => true });
})()"""
"""The person has allowed notifications, and looks at another tab."""

DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
ATTACH = f"""(() => {{
    const data = new DataTransfer();
    const bytes = Uint8Array.from(atob("{DOT}"), (one) => one.charCodeAt(0));
    data.items.add(new File([bytes], "dot.png", {{ type: "image/png" }}));
    const drop = new DragEvent("drop", {{ dataTransfer: data, bubbles: true }});
    document.querySelector(".chat .composer").dispatchEvent(drop);
}})()"""
HOLD_PICTURES = """(() => {
    const real = window.createImageBitmap;
    const held = new Promise((go) => (window.letGo = go));
    window.createImageBitmap = async (file) => (await held, real(file));
})()"""
"""Pictures are made ready once `letGo()` is called."""


CUT_STREAMS = """(() => {
    const real = window.fetch;
    window.fetch = async (path, options) => {
        const response = await real(path, options);
        if (options?.headers?.accept !== "text/event-stream") return response;
        window.cuts = (window.cuts ?? 0) + 1;
        return new Response(new ReadableStream({ start: (to) => to.error(new TypeError("network error")) }), response);
    };
})()"""
"""The gateway gets messages, but the connection is lost before the first word of an answer."""


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


async def test_a_connection_that_is_back_is_seen_at_once_and_the_chats_stay_listed(devtools: str, serve: Serve) -> None:
    async with serve(script(says("Fine."))) as url, page_at(devtools, url) as page:
        await send(page, "Hello")
        await page.until(IS_DONE)
        await page.evaluate("(window.real = window.fetch, window.fetch = async () => { throw new TypeError('lost'); })")
        await page.evaluate("window.dispatchEvent(new Event('hashchange'))")
        await page.until("document.querySelector('#state').innerText.includes('unreachable')", 5_000)
        assert "Hello" in await page.text(".chatrow")
        await page.evaluate("window.fetch = window.real")
        await page.evaluate("window.dispatchEvent(new Event('hashchange'))")
        await page.until("!document.querySelector('#state').innerText.includes('unreachable')", 5_000)


async def test_a_message_that_may_have_arrived_is_sent_again_and_is_there_once(devtools: str, serve: Serve) -> None:
    async with serve(script(says("A red dot."))) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        room = {"id": "eyes", "name": "Eyes", "planning": False, "vision": True}
        assert (await client.post("/v1/rooms", json=room)).status_code == 201
        async with page_at(devtools, url) as page:
            await page.evaluate(LOSE_ANSWERS)
            await page.evaluate(ATTACH)
            await page.until("document.querySelector('.attached .picture img')")
            await send(page, "What is this?", "eyes")
            await page.until("document.querySelector('.answer .banner')?.innerText.includes('cannot be reached')")
            await page.until("document.querySelector('.attached .picture img')")
            assert await page.evaluate("document.querySelector('.chat textarea').value") == "What is this?"
            await page.evaluate("window.losing = false")
            await page.press("Enter")
            await page.until(f"{IS_DONE} && ({ANSWER}).includes('A red dot')")
            await page.becomes(QUESTIONS, ["What is this?"])
            chat = str(await page.evaluate("location.hash")).rsplit("/", 1)[1]
            stored = (await client.get(f"/v1/conversations/{chat}/messages")).json()["data"]
            assert [one["role"] for one in stored] == ["user", "assistant"]
            assert len(stored[0]["images"]) == 1
            await send(page, "What is this?", "eyes")  # the same words again are another message
            await page.until("document.querySelectorAll('.answer[aria-busy=false]').length === 2")


async def test_words_that_wait_for_a_picture_are_neither_lost_nor_sent_elsewhere(devtools: str, serve: Serve) -> None:
    box = "document.querySelector('.chat textarea').value"
    async with serve(script(says("A red dot."))) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        room = {"id": "eyes", "name": "Eyes", "planning": False, "vision": True}
        assert (await client.post("/v1/rooms", json=room)).status_code == 201
        async with page_at(devtools, url) as page:
            await send(page, "Hello", "eyes")
            await page.until(IS_DONE)
            await page.evaluate(HOLD_PICTURES)
            await page.evaluate(ATTACH)
            await send(page, "What is this?", "eyes")
            await page.becomes(box, "")
            await send(page, "And who made it?", "eyes")  # while the picture is made ready
            await page.becomes(box, "And who made it?")
            await page.evaluate("window.letGo()")
            await page.until(f"{IS_DONE} && document.querySelectorAll('.mine img, .asked img').length === 1")
            await page.becomes(QUESTIONS, ["Hello", "What is this?"])
            assert await page.evaluate(box) == "And who made it?"

            await page.evaluate(HOLD_PICTURES)
            await page.evaluate(ATTACH)
            await page.press("Enter")
            await page.becomes(box, "")
            await page.write(".chat textarea", "Or bought it?")
            await page.click(".fresh")
            await page.evaluate("window.letGo()")
            await page.becomes(box, "")
            await page.click(".chatrow .item")
            await page.becomes(box, "And who made it?\n\nOr bought it?")
            await page.becomes(QUESTIONS, ["Hello", "What is this?"])


async def test_who_looks_elsewhere_is_notified_of_what_waits(devtools: str, serve: Serve) -> None:
    model = script(
        plans({"tool": "calculator", "inputs": {"expression": "6*7"}}, {"tool": "completion"}, about="Compute"),
        says("It is 42."),
    )  # fmt: skip
    async with serve(model) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        room = {"id": "careful", "name": "Careful", "approval": "always", "supervision": "checks"}
        assert (await client.post("/v1/rooms", json=room)).status_code == 201
        async with page_at(devtools, url, "#/team/approvals") as page:
            await page.until("document.querySelector('.team')?.innerText.includes('Nothing is waiting for you')")
            await page.evaluate(LOOK_ELSEWHERE)
            await client.post("/v1/agent", json={"prompt": "Compute it, please", "room": "careful"})
            asked = (await client.get("/v1/approvals")).json()["data"]
            await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
            await page.becomes("window.notes", [one["id"] for one in asked])
            await page.until("document.querySelector('.count')?.innerText === '1'")
            await page.until("document.querySelector('.team .decision')?.checkVisibility()")
            await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
            await page.becomes("window.notes", [one["id"] for one in asked])


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
        assert "Documents" not in said, "no way to a view that cannot open"
        assert await page.evaluate("document.querySelector('noscript p').offsetHeight") < 80, "one paragraph"


async def test_a_yes_in_one_tab_approves_nothing_that_only_the_other_displays(devtools: str, serve: Serve) -> None:
    step = {"tool": "calculator", "inputs": {"expression": "6*7"}}
    model = script(
        plans(step, {"tool": "completion"}, about="Compute it"),
        plans({**step, "inputs": {"expression": "1+1"}}, {"tool": "completion"}, about="Add it"),
        says("It is computed."),
    )
    decision, box = "document.querySelector('.answer .decision')", "document.querySelector('.chat textarea').value"
    async with serve(model) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        room = {"id": "careful", "name": "Careful", "approval": "always", "supervision": "checks"}
        assert (await client.post("/v1/rooms", json=room)).status_code == 201
        async with page_at(devtools, url) as page:
            await send(page, "Compute it", "careful")
            await page.until(decision)
            await send(page, "approve", "careful")
            await page.until(f"{IS_DONE} && ({ANSWER}).includes('It is computed')")
            chat = str(await page.evaluate("location.hash")).rsplit("/", 1)[1]
            elsewhere = {"content": "Add it", "room": "careful"}
            await client.post(f"/v1/conversations/{chat}/messages", json=elsewhere)
            asked: list[dict[str, str]] = []
            while not asked:
                asked = (await client.get("/v1/approvals")).json()["data"]
            await send(page, "yes", "careful")
            await page.until("document.querySelector('.log > .banner')?.innerText.includes('decided elsewhere')")
            await page.until(decision)
            assert await page.evaluate(box) == "yes"
            assert (await client.get("/v1/approvals")).json()["data"] == asked
            await page.press("Enter")
            await page.until(f"{IS_DONE} && !{decision} && ({ANSWER}).includes('It is computed')")
            await page.becomes(QUESTIONS, ["Compute it", "approved", "Add it", "approved"])
            page.faults.clear()  # the browser reports the refused request


async def test_build_displays_a_question_before_it_is_answered_and_an_answer_whose_stream_was_cut(
    devtools: str, serve: Serve, tmp_path: Path
) -> None:
    folder = papers(tmp_path / "data", 1)
    decision = "document.querySelector('.talk .decision')"
    async with serve(conversations_require_llm=False) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        mine = await talk(client, folder)
        await mine.say("ساعدني")
        await mine.say("Help me index these research papers")
        async with page_at(devtools, url, f"#/build/{mine.id}") as page:
            await page.until("document.querySelector('.talk .log')?.innerText.includes('reports')")
            directions = "[...document.querySelectorAll('.talk .mine')].map((one) => getComputedStyle(one).direction)"
            assert await page.evaluate(directions) == ["rtl", "ltr"]
            await mine.say("apply kelp")
            await page.write(".talk textarea", "approve")
            await page.press("Enter")
            await page.until("document.querySelector('.talk .log')?.innerText.includes('decided elsewhere')")
            await page.until(
                f"{decision} && document.querySelector('.talk .log')?.innerText.includes('Approval needed')"
            )
            await page.becomes("document.querySelector('.talk textarea').value", "approve")
            assert (await mine.look())["status"] == "active"
            page.faults.clear()  # the browser reports the refused request
            await page.evaluate(CUT_STREAMS)
            await page.click(".talk .decision .primary")
            await page.until("document.querySelector('.build .dock .ended')")
            await page.until(f"!{decision} && document.querySelector('.talk .log')?.innerText.includes('approved')")
            assert await page.evaluate("window.cuts") >= 1
            assert "lost" not in await page.text(".talk .log")


async def test_a_message_of_build_whose_answer_was_lost_is_not_there_twice(
    devtools: str, serve: Serve, tmp_path: Path
) -> None:
    async with serve(conversations_require_llm=False) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        mine = await talk(client, papers(tmp_path / "data", 1))
        async with page_at(devtools, url, f"#/build/{mine.id}") as page:
            await page.until("document.querySelector('.talk textarea')")
            await page.evaluate(LOSE_ANSWERS)
            await page.write(".talk textarea", "Help me index these research papers")
            await page.press("Enter")
            box = "document.querySelector('.talk textarea').value"
            await page.until(f"({box}).startsWith('Help me') && document.querySelector('.talk .answer .banner')")
            await page.evaluate("window.losing = false")
            await page.press("Enter")
            await page.until(f"({box}) === '' && document.querySelectorAll('.talk [aria-busy=true]').length === 0")
            sent = [one["content"] for one in (await mine.look())["messages"] if one["role"] == "user"]
            assert sent == ["Help me index these research papers"]
            await page.becomes(QUESTIONS.replace(".mine", ".talk .mine"), sent)
            page.faults.clear()  # the browser reports the refused request


async def test_an_answer_whose_key_was_revoked_is_followed_with_the_next_one(devtools: str, serve: Serve) -> None:
    model = script(says("The harbour was quiet. " * 24, chunk=16, pause_s=0.4))
    async with serve(model) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        fields = {"owner": "anna", "scopes": ["chat", "agent"]}
        first, second = [
            (await client.post("/v1/admin/keys", json=fields | {"name": name})).json() for name in ("laptop", "phone")
        ]
        async with page_at(devtools, url) as page:
            await page.evaluate(f"sessionStorage.setItem('stepgate.key', {json.dumps(first['text'])})")
            await reload(page)
            await send(page, "How was the harbour?")
            await page.until(f"({ANSWER}).includes('quiet')")
            await client.delete(f"/v1/admin/keys/{first['id']}")
            await page.until("document.querySelector('#key[open]')")  # the gateway ends the stream
            await page.click("#key [value=cancel]")
            await page.until("document.querySelector('.answer .banner')?.innerText.includes('revoked')")
            await page.click("#notice .button")
            await page.write("#key input", second["text"])
            await page.press("Enter")
            await page.until(f"{IS_DONE} && ({ANSWER}).trim().split('quiet').length === 25")
            assert await page.evaluate("document.querySelector('.answer .banner')") is None
            page.faults.clear()  # the browser reports the refused requests


async def test_what_was_written_stays_when_the_model_fails(devtools: str, serve: Serve) -> None:
    story = "The harbour **was** quiet. " * 60
    model = script(says(story, about="harbour", fault="half_stream", chunk=16, pause_s=0.02))
    async with serve(model, model_profile="capable") as url, page_at(devtools, url) as page:
        await send(page, "Tell me about the harbour")
        for _ in range(2):  # at once, and when the chat is loaded again
            await page.until("document.querySelector('.answer[data-status=failed] .after .banner')")
            assert "The harbour was quiet." in await page.text(".answer .prose")
            assert await page.text(".answer .tools") == "broke off"
            assert "in mid-reply" in await page.text(".answer .after")
            assert await page.evaluate("document.querySelector('.answer .after .button').innerText") == "Try again"
            await reload(page)
        await picture(page, "broken-off", ("phone", "desk"))
        await page.click(".answer .steps summary")
        await page.click(".answer .steps a")
        await page.until("document.querySelector('.run .prose .problem')?.checkVisibility()")
        assert "The harbour was quiet." in await page.text(".run .prose")
