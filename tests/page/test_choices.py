"""What people choose on the page: a model for a chat, a folder, filters of runs; and what is said without a choice."""

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx

from tests.integration.conftest import Serve
from tests.page.journey import choose_room, page_at, picture, reload, send, wait_until_loaded
from tests.support.browser import BROWSER_TEST
from tests.support.model_endpoint import list_of, model_endpoint
from tests.support.script import says, script
from tests.support.scripted_server import ScriptedServer

pytestmark = BROWSER_TEST

ANSWER = "document.querySelector('.answer:last-of-type .prose')?.innerText ?? ''"
PICKS = "document.querySelector('select[aria-label=Model]')"
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
"""A PNG of one pixel, in base64."""

DROP_NOISE = """(async () => {
    const canvas = new OffscreenCanvas(2_700, 2_600);
    const paint = canvas.getContext("2d");
    const data = paint.createImageData(canvas.width, canvas.height);
    for (let at = 0; at < data.data.length; at += 16_384) crypto.getRandomValues(data.data.subarray(at, at + 16_384));
    for (let at = 3; at < data.data.length; at += 4) data.data[at] = 255;
    paint.putImageData(data, 0, 0);
    const file = new File([await canvas.convertToBlob({ type: "image/png" })], "noise.png", { type: "image/png" });
    const drop = new DataTransfer();
    drop.items.add(file);
    const event = new DragEvent("drop", { dataTransfer: drop, bubbles: true });
    document.querySelector(".chat .composer").dispatchEvent(event);
    return file.size;
})()"""
"""Drops a picture that cannot be compressed; its size in bytes."""
DROP_BROKEN = """(() => {
    const drop = new DataTransfer();
    drop.items.add(new File([new Uint8Array(30)], "broken.png", { type: "image/png" }));
    const event = new DragEvent("drop", { dataTransfer: drop, bubbles: true });
    document.querySelector(".chat .composer").dispatchEvent(event);
})()"""
IS_DONE = "document.querySelector('.answer:last-of-type[aria-busy=false]')"
COUNT_REFUSALS = """(() => {
    const real = window.fetch;
    window.refusals = 0;
    window.fetch = async (path, options) => {
        const response = await real(path, options);
        if (response.status === 401 && path.startsWith("v1/conversations?")) window.refusals += 1;
        return response;
    };
})()"""
"""Counts in `refusals` how often the list of chats was refused for want of a key."""
FILTERS = (("Model", "large", 1), ("Model", "", 2), ("Cost", "0.001", 1), ("Cost", "", 2))
"""A choice, its value, and how many of the two runs fit."""


def say_model(body: dict[str, Any]) -> str:
    return f"I am {body['model']}."


async def test_a_chat_has_a_model_of_its_own(devtools: str, serve: Serve) -> None:
    async with model_endpoint(list_of("small", "vendor/large"), answer=say_model) as endpoint:
        options = {"llm_base_url": endpoint.url, "model_fast": "small", "model_high": "vendor/large"}
        async with serve(None, **options) as url, page_at(devtools, url) as page:
            await choose_room(page, "chat")
            await page.evaluate("document.querySelector('.composer select').dispatchEvent(new Event('change'))")
            await page.until(f"{PICKS}.checkVisibility() && {PICKS}.options.length === 3")
            assert await page.evaluate(f"{PICKS}.selectedOptions[0].innerText") == "Usual model"
            await page.evaluate(f"{PICKS}.value = 'vendor/large'")
            await send(page, "Who are you?")
            await page.until(f"({ANSWER}).includes('I am vendor/large')")
            await picture(page, "model-choice", ("phone", "desk"))
            await reload(page)
            await page.until(f"({ANSWER}).includes('I am vendor/large') && {PICKS}.value === 'vendor/large'")
            await page.click("button[title='Answer again']")
            await page.until("document.querySelector('.pager')?.innerText === '2 / 2'")
            await page.until(f"({ANSWER}).includes('I am vendor/large')")
            await page.evaluate(f"{PICKS}.value = ''")
            await send(page, "And now?")
            await page.until(f"({ANSWER}).includes('I am small')")


async def test_a_model_is_connected_by_its_address_and_one_that_is_down_is_a_banner(
    devtools: str, serve: Serve
) -> None:
    form = ".models .form:has(input[name=base_url])"
    async with serve(model_profile="capable") as url, page_at(devtools, url, "#/models") as page:
        async with model_endpoint(list_of("remote"), key="right", answer=say_model) as endpoint:
            await page.until("document.querySelectorAll('.models .form').length === 2")
            await page.write(f"{form} input[name=base_url]", endpoint.url)
            await page.write(f"{form} input[name=api_key]", "sk-wrong-0123456789abcdef")
            await page.click(f"{form} .primary")
            await page.until("document.querySelector('.models .banner')?.innerText.includes('401')")
            assert "0123456789" not in await page.text(".models .banner"), "a key is not repeated"
            await page.write(f"{form} input[name=api_key]", "right")
            await page.click(f"{form} .primary")
            await page.until("document.querySelector('.models .cardrow')?.innerText.includes('with a key')")
            await page.evaluate("location.hash = '#/chat'")
            await send(page, "Who are you?")
            await page.until(f"({ANSWER}).includes('I am remote')")
        await send(page, "Still there?")
        await page.until("document.querySelector('.answer:last-of-type .banner')", 60_000)
        await page.until("document.querySelector('#notice .banner')?.innerText.includes('does not answer')")
        await page.until("document.querySelector('#state').innerText.includes('model down')")
        await picture(page, "model-down", ("phone", "desk"))
        await page.click("#notice a.button")
        await page.until("document.querySelector('.models .cardrow .dot.failed')", 60_000)


async def test_a_model_file_that_cannot_be_used_says_why(devtools: str, serve: Serve, tmp_path: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"not a model")
    async with serve() as url, page_at(devtools, url, "#/models") as page:
        await page.until("document.querySelectorAll('.models .form').length === 2")
        await page.write(".models input[name=file]", str(tmp_path / "missing.gguf"))
        await page.click(".models .form:has(input[name=file]) .primary")
        await page.until("document.querySelector('.models .banner')?.innerText.includes('missing.gguf')", 90_000)
        await page.write(".models input[name=file]", str(broken))
        await page.click(".models .form:has(input[name=file]) .primary")
        await page.until("document.querySelector('.models .banner')?.innerText.includes('broken.gguf')", 90_000)
        await picture(page, "model-file", ("phone", "desk"))


async def test_a_picture_goes_to_a_room_that_sees(devtools: str, serve: Serve) -> None:
    attach = f"""(() => {{
        const bytes = Uint8Array.from(atob("{PIXEL}"), (one) => one.charCodeAt(0));
        const data = new DataTransfer();
        data.items.add(new File([bytes], "dot.png", {{ type: "image/png" }}));
        const drop = new DragEvent("drop", {{ dataTransfer: data, bubbles: true }});
        document.querySelector(".chat .composer").dispatchEvent(drop);
    }})()"""
    async with (
        serve(script(says("A red dot."))) as url,
        httpx.AsyncClient(base_url=url, timeout=30) as client,
        page_at(devtools, url) as page,
    ):
        await choose_room(page, "chat")
        await page.evaluate(attach)
        await page.until("document.querySelector('.attached .picture img')")
        await send(page, "What is this?")
        await page.until("document.querySelector('.tray .problem')?.innerText.includes('room here accepts pictures')")
        kept = await page.evaluate("document.querySelector('.chat textarea').value")
        assert kept == "What is this?", "nothing is lost"
        assert await page.evaluate("document.querySelectorAll('.attached .picture').length") == 1
        made = await client.post("/v1/rooms", json={"id": "eyes", "name": "Eyes", "planning": False, "vision": True})
        assert made.status_code == 201, made.text
        await reload(page)
        await choose_room(page, "eyes")
        await page.evaluate(attach)
        await page.until("document.querySelector('.attached .picture img')")
        await send(page, "What is this?", "eyes")
        await page.until(f"({ANSWER}).includes('A red dot')")
        assert await page.evaluate("document.querySelector('.log img')?.naturalWidth") == 1


async def test_a_picture_of_20_megabytes_is_sent_smaller(
    devtools: str, serve: Serve, model_server: ScriptedServer
) -> None:
    room = {"id": "eyes", "name": "Eyes", "planning": False, "vision": True}
    async with (
        serve(script(says("Noise."))) as url,
        httpx.AsyncClient(base_url=url, timeout=30) as client,
    ):
        assert (await client.post("/v1/rooms", json=room)).status_code == 201
        async with page_at(devtools, url) as page:
            await choose_room(page, "eyes")
            size = await page.evaluate(DROP_NOISE)
            assert size > 20_000_000
            await send(page, "What is this?", "eyes")  # at once: it waits for the picture
            await page.until(f"({ANSWER}).includes('Noise')", 60_000)
            assert await page.evaluate("document.querySelector('.log img').naturalWidth") == 1_600
            await page.evaluate(DROP_BROKEN)
            await send(page, "And this?", "eyes")
            await page.until("document.querySelector('.tray > .problem')?.innerText.includes('cannot be read')")
            assert await page.evaluate("document.querySelector('.chat textarea').value") == "And this?"
            assert await page.evaluate("document.querySelectorAll('.mine').length") == 1
            await page.click(".attached .picture .button")
            await page.press("Escape")
            await page.evaluate("document.querySelector('.chat textarea').focus()")
            await page.press("Enter")
            await page.until("document.querySelectorAll('.mine').length === 2")
    sent = json.dumps(model_server.requests()[0]["body"])
    assert "data:image/jpeg;base64," in sent
    assert len(sent) < 5_000_000


async def test_a_folder_is_picked_read_again_and_what_is_left_out_is_named(
    devtools: str, serve: Serve, tmp_path: Path
) -> None:
    files = tmp_path / "data" / "files"
    (files / "handbook").mkdir(parents=True)
    (files / "handbook" / "travel.md").write_text("# Travel\n\nTrain tickets are booked by the travel desk.\n")
    (files / "handbook" / "broken.pdf").write_bytes(b"%PDF-1.4\nnothing")
    async with (
        serve(conversations_require_llm=False) as url,
        httpx.AsyncClient(base_url=url, timeout=60) as client,
        page_at(devtools, url, "#/build") as page,
    ):
        await page.until("document.querySelector('.guide')?.innerText.includes('You need a folder')")
        await page.click(".folders .item")
        await page.until("document.querySelector('.picker')?.innerText.includes('1 folder')")
        await page.click(".folders .item")
        await page.until("document.querySelector('.picker')?.innerText.includes('2 files')")
        assert await page.evaluate("document.querySelector('.guide label input:not([type=radio])').value") == str(
            files / "handbook"
        )
        await picture(page, "folder", ("phone", "desk"))
        body = {"source_type": "local", "source_identifier": "handbook"}
        job = (await client.post("/v1/collections/handbook/ingest", json=body)).json()
        assert (await client.get(f"/v1/jobs/{job['id']}", params={"wait_s": 60})).json()["status"] == "done"
        await page.evaluate("location.hash = '#/documents/handbook'")
        await page.until("document.querySelector('[aria-label=Documents]')?.innerText.includes('broken.pdf')")
        (files / "handbook" / "lost.md").write_text("# Devices\n\nLost devices go to the desk.\n")
        await page.click("button[title^='Reads what has changed']")
        await page.until("document.querySelectorAll('.row-of').length === 2", 90_000)
        await page.until("document.querySelector('[aria-label=Documents] .lines')?.checkVisibility()")
        await picture(page, "left-out", ("phone", "desk"))


async def test_runs_are_filtered_by_room_model_and_cost(devtools: str, serve: Serve) -> None:
    async with model_endpoint(list_of("small", "large"), answer=say_model) as endpoint:
        options = {
            "llm_base_url": endpoint.url, "model_fast": "small", "model_high": "large",
            "model_prices": {"large": (1000, 1000)},
        }  # fmt: skip
        async with serve(None, **options) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
            for room in ("chat@small", "chat@large"):
                assert (await client.post("/v1/agent", json={"prompt": room, "room": room})).status_code == 200
            async with page_at(devtools, url, "#/runs") as page:
                await page.until("document.querySelectorAll('[aria-label=Runs] .item').length === 2")
                for name, value, number in FILTERS:
                    chosen = f"document.querySelector('[aria-label=Runs] select[aria-label={name}]')"
                    await page.until(f"{chosen}.checkVisibility()")
                    await page.evaluate(f"{chosen}.value = '{value}', {chosen}.dispatchEvent(new Event('change'))")
                    await page.until(f"document.querySelectorAll('[aria-label=Runs] .item').length === {number}")


async def test_a_team_sees_its_people_and_a_revoked_key_is_asked_for_again(devtools: str, serve: Serve) -> None:
    async with serve(script(says("Fine."))) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        fields = {"owner": "anna", "name": "laptop", "scopes": ["chat", "agent"], "limits": {"budget_tokens": 50_000}}
        made = (await client.post("/v1/admin/keys", json=fields)).json()
        asked = {"prompt": "Hello", "room": "chat"}
        answered = await client.post("/v1/agent", json=asked, headers={"x-api-key": made["text"]})
        assert answered.status_code == 200, answered.text
        async with page_at(devtools, url, "#/team/people") as page:
            await page.until("document.querySelector('.team .budget progress')")
            assert "anna" in await page.text(".team")
            await picture(page, "people", ("phone", "desk"))
            await page.click(".team details summary")
            await page.click(".team details .button")
            await page.until("document.querySelector('.team .problem')?.innerText.includes('to confirm')")
        async with page_at(devtools, url) as page:
            await page.evaluate(f"sessionStorage.setItem('stepgate.key', {json.dumps(made['text'])})")
            await reload(page)
            await send(page, "Hello")
            await page.until(f"{IS_DONE} && ({ANSWER}).includes('Fine') && document.querySelector('.chatrow')")
            assert (await client.delete(f"/v1/admin/keys/{made['id']}")).status_code == 200
            await page.write(".chat textarea", "Still there?")
            await page.press("Enter")
            await page.until("document.querySelector('#key[open] .problem')?.innerText.length > 10")
            await page.click("#key [value=cancel]")
            await page.until("document.querySelector('.chat textarea').value === 'Still there?'")
            await page.send("Page.reload")
            await page.until("document.querySelector('#key[open]')")
            await page.click("#key [value=cancel]")
            await page.until("document.querySelector('.log .banner')?.innerText.includes('was revoked')")
            await page.until("document.querySelector('#state').innerText.includes('key needed')")
            await page.evaluate("location.hash = '#/team/usage'")
            await page.click("#notice .button")
            await page.until("document.querySelector('#key[open]')")
            await page.click("#key [value=cancel]")
            await page.evaluate("history.back()")
            assert await page.evaluate("document.querySelector('#key[open]') === null"), "it asks once"
            other = (await client.post("/v1/admin/keys", json=fields | {"name": "phone"})).json()
            await page.write(".chat textarea", "Still there?")
            await page.press("Enter")
            await page.until("document.querySelector('#key[open]')")
            await page.write("#key input", other["text"])
            await page.press("Enter")
            await page.until(f"document.querySelectorAll('.mine').length >= 2 && ({ANSWER}).includes('Fine')")
            await page.until("!document.querySelector('.answer:last-of-type .banner')")
            await page.evaluate("window.isOld = true")
            await page.click("#key-button")
            await wait_until_loaded(page)
            await page.until("document.querySelector('.card')?.checkVisibility()")
            assert await page.text(".log") == "", "the chat is another's now, and not a deleted one"
            page.faults.clear()  # the browser reports the refused requests


async def test_who_writes_is_not_interrupted_when_a_key_is_revoked(devtools: str, serve: Serve) -> None:
    async with serve(script(says("Fine."))) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        fields = {"owner": "anna", "name": "laptop", "scopes": ["chat", "agent"]}
        made = (await client.post("/v1/admin/keys", json=fields)).json()
        async with page_at(devtools, url) as page:
            await page.evaluate(f"sessionStorage.setItem('stepgate.key', {json.dumps(made['text'])})")
            await reload(page)
            await send(page, "Hello")
            await page.until(f"{IS_DONE} && document.querySelector('.chatrow')")
            await page.evaluate(COUNT_REFUSALS)
            assert (await client.delete(f"/v1/admin/keys/{made['id']}")).status_code == 200
            await page.evaluate("dispatchEvent(new Event('reachchange'))")
            await page.until("window.refusals > 0 && document.querySelector('#notice .banner')")
            await page.evaluate("new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))")
            assert await page.evaluate("document.querySelector('#key[open]')") is None
            page.faults.clear()  # the browser reports the refused requests


async def test_a_key_of_another_person_begins_with_an_empty_page(devtools: str, serve: Serve) -> None:
    async with serve(script(says("Fine."))) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        fields = {"name": "laptop", "scopes": ["chat", "agent", "rooms"]}
        anna, bob = [
            (await client.post("/v1/admin/keys", json=fields | {"owner": owner})).json() for owner in ("anna", "bob")
        ]
        room = {"id": "desk", "name": "Desk", "planning": False}
        made = await client.post("/v1/rooms", json=room, headers={"x-api-key": bob["text"]})
        assert made.status_code == 201, made.text
        async with page_at(devtools, url) as page:
            await page.evaluate(f"sessionStorage.setItem('stepgate.key', {json.dumps(anna['text'])})")
            await reload(page)
            await send(page, "Hello from Anna")
            await page.until(f"({ANSWER}).includes('Fine')")
            await client.delete(f"/v1/admin/keys/{anna['id']}")
            await page.write(".chat textarea", "For Anna only")
            await page.press("Enter")
            await page.until("document.querySelector('#key[open]')")
            await page.evaluate("window.isOld = true")
            await page.write("#key input", bob["text"])
            await page.press("Enter")
            await wait_until_loaded(page)
            await page.until("document.querySelector('.composer option[value=desk]')")
            await page.until("document.querySelector('.past')?.innerText.includes('Your chats appear here')")
            assert "Anna" not in await page.text()
            assert await page.evaluate("document.querySelector('.chat textarea').value") == ""
            mine = await client.get("/v1/runs", headers={"x-api-key": bob["text"]})
            assert mine.json()["data"] == [], "what Anna wrote was not sent by Bob"
            page.faults.clear()  # the browser reports the refused requests


async def test_the_studio_says_what_is_there(devtools: str, serve: Serve) -> None:
    async with serve() as url, page_at(devtools, url, "#/studio/tools") as page:
        await page.until("/^\\d\\d+ tools$/.test(document.querySelector('.studio .stage h1')?.innerText)")
        await page.write(".studio input[type=search]", "calculator")
        await page.until("document.querySelectorAll('.tools-of > li:not([hidden])').length < 5")
        await picture(page, "tools", ("phone", "desk"))
        await page.evaluate("location.hash = '#/studio/queue'")
        await page.until("document.querySelector('.studio .lead')?.innerText.includes('needs no queue')")
        assert await page.evaluate("document.querySelector('.studio .problem') === null")
        page.faults.clear()  # the browser reports the 409 of a gateway without a queue


async def test_a_suggestion_is_never_behind_the_message_box(devtools: str, serve: Serve) -> None:
    async with serve() as url, page_at(devtools, url) as page:
        await page.until("document.querySelectorAll('.suggestion').length > 0")
        for width, height in ((1280, 800), (768, 1000), (390, 844), (320, 568)):
            await page.look_like(width, height)
            await asyncio.sleep(0.2)
            await page.evaluate("document.querySelector('.suggestion:last-child').scrollIntoView({ block: 'end' })")
            await page.until("""(() => {
                const at = document.querySelector('.suggestion:last-child').getBoundingClientRect();
                const seen = document.elementFromPoint(at.left + at.width / 2, at.bottom - 4);
                return seen?.closest('.suggestion') !== null;
            })()""")
