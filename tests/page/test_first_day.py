"""The first day of a person with Ollama on their machine: one click, an answer, and all that is done with a chat."""

import json

import httpx
import pytest

from agent.llm import discovery
from tests.integration.conftest import Serve
from tests.page.journey import page_at, reload, send
from tests.support.browser import BROWSER_TEST
from tests.support.model_endpoint import list_of, model_endpoint
from tests.support.script import says, script
from tests.support.scripted_server import ScriptedServer

pytestmark = BROWSER_TEST

STORY = "The harbour was quiet, and the boats lay still. " * 240
ANSWER = "document.querySelector('.answer:last-of-type .prose')?.innerText ?? ''"
IS_DONE = "document.querySelector('.answer:last-of-type[aria-busy=false]')"
SAVED = """(() => {
    window.saved = [];
    const make = URL.createObjectURL;
    URL.createObjectURL = (blob) => (blob.text().then((text) => window.saved.push(text)), make.call(URL, blob));
})()"""
"""Keeps the text of each file that the page saves."""


async def test_one_click_an_answer_and_a_chat_that_is_kept(
    devtools: str, serve: Serve, model_server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = int(model_server.root.rsplit(":", 1)[1])
    monkeypatch.setattr(discovery, "USUAL_PORTS", (discovery.UsualPort("Ollama", port),))
    model_server.load(script(
        says("It was **calm**.", about="One word", chunk=4), says(STORY, about="harbour", chunk=16, pause_s=0.05),
        says("ready"),
    ))  # fmt: skip
    async with serve(discover="on", model_profile="capable") as url, page_at(devtools, url) as page:
        await page.until("document.querySelector('.unconnected .primary')?.innerText.includes('Use scripted')")
        await page.click(".unconnected .primary")
        await page.until("document.querySelector('#state').innerText.includes('scripted')")
        await send(page, "Tell me about the harbour")
        await page.until(f"({ANSWER}).length > 100")
        await reload(page)
        await page.until(f"({ANSWER}).length > 300")
        await page.click(".send[aria-label=Stop]")
        await page.until(IS_DONE)
        stopped = (await page.evaluate(ANSWER)).strip()
        assert STORY.startswith(stopped)
        assert "stopped" in await page.text(".answer .tools")

        await page.click("button[title='Edit and send again']")
        await page.write(".edit textarea", "One word, please")
        await page.click(".edit .primary")
        await page.until(f"{IS_DONE} && ({ANSWER}).includes('calm')")
        assert await page.text(".pager") == "2 / 2"
        await page.click("button[title='Earlier version']")
        await page.until(f"({ANSWER}).trim() === {json.dumps(stopped)}")
        await page.click("button[title='Later version']")
        await page.until(f"({ANSWER}).includes('calm')")

        await page.evaluate(SAVED)
        for name in ("Markdown", "JSON"):
            await page.click(".menu .tool")
            await page.until("document.querySelector('.popup:popover-open')")
            every = "[...document.querySelectorAll('.popup:popover-open .button')]"
            button = f"{every}.find((one) => one.innerText.includes('{name}'))"
            await page.evaluate(f"{button}.click()")
            await page.until("!document.querySelector('.popup:popover-open')")  # it closes once the file is there
        markdown, exported = await page.until("window.saved.length === 2 && window.saved")
        assert "It was **calm**." in markdown
        assert "One word, please" in markdown
        assert "calm" in json.dumps(json.loads(exported))
        assert "One word, please" in exported


async def test_a_program_that_is_started_later_is_offered_in_the_open_page(
    devtools: str, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(discovery, "USUAL_PORTS", ())
    async with serve(discover="on", model_profile="capable") as url, page_at(devtools, url) as page:
        await page.until("document.querySelector('.unconnected')?.innerText.includes('No language model is connected')")
        async with model_endpoint(list_of("llama3:8b"), answer=lambda _: "A list of facts.") as endpoint:
            monkeypatch.setattr(discovery, "USUAL_PORTS", (discovery.UsualPort("Ollama", endpoint.port),))
            await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")  # the person comes back
            await page.until("document.querySelector('.unconnected .primary')?.innerText.includes('Use llama3')")
            chosen = {"base_url": f"{endpoint.origin}/v1", "model": "llama3:8b"}
            async with httpx.AsyncClient(base_url=url, timeout=30) as client:  # connected elsewhere
                assert (await client.post("/v1/admin/models", json=chosen)).status_code == 201
            await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
            await page.until("document.querySelector('.card') && !document.querySelector('.unconnected')")
