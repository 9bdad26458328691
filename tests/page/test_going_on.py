"""Work that goes on while its page is loaded again, or looked at: it is shown as it is, and can be stopped."""

import json
from pathlib import Path

import httpx

from tests.integration.conftest import Serve
from tests.page.journey import page_at, picture, send
from tests.support.browser import BROWSER_TEST
from tests.support.script import says, script
from tests.support.talks import papers, talk

pytestmark = BROWSER_TEST

LONG = "The chunkers cut documents by sentence, by structure and by size. " * 60
LOG = "(document.querySelector('.talk .log')?.innerText ?? '')"
IS_DONE = "document.querySelector('.chat .answer:last-of-type[aria-busy=false]')"
HOLD_MESSAGES = """(() => {
    const real = window.fetch;
    const held = new Promise((go) => (window.letGo = go));
    window.fetch = async (path, options) => {
        if (options?.method === "POST" && path.endsWith("/messages")) await held;
        return real(path, options);
    };
})()"""
"""Messages are sent once `letGo()` is called."""
FAIL_BUILD = """(() => {
    const real = window.fetch;
    window.failing = true;
    window.fetch = async (path, options) => {
        const isOne = /conversations\\/\\w+$/.test(path) && path.startsWith("api/v2/");
        return window.failing && isOne ? new Response("{}", { status: 500 }) : real(path, options);
    };
})()"""
ITEMS = "[...document.querySelectorAll('[aria-label=Runs] .items .item b')].map((one) => one.innerText)"
LOOK = "document.dispatchEvent(new Event('visibilitychange'))"
"""The person comes back to the tab."""


async def test_an_answer_of_build_goes_on_after_a_reload_and_is_stopped(
    devtools: str, serve: Serve, tmp_path: Path
) -> None:
    model = script(says(LONG, to="skill", chunk=12, pause_s=0.05))
    async with serve(model) as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        mine = await talk(client, papers(tmp_path / "data", 1))
        async with page_at(devtools, url, f"#/build/{mine.id}") as page:
            await page.until("document.querySelector('.talk textarea')?.checkVisibility()")
            await page.write(".talk textarea", "What chunkers are there?")
            await page.press("Enter")
            await page.until(f"{LOG}.includes('by structure')")
            await page.write(".talk textarea", "and half a thought")
            await page.go("about:blank")
            await page.go(f"{url}/#/build/{mine.id}")
            await page.until(f"{LOG}.includes('What chunkers are there?') && {LOG}.includes('by structure')")
            assert (await mine.look())["run_id"]
            await picture(page, "build-goes-on", ("phone", "desk"))
            assert await page.evaluate("document.querySelector('.talk textarea').value") == "and half a thought"
            await page.click(".talk .send[aria-label=Stop]")
            await page.until("document.querySelector('.talk .send[aria-label=Send]')")
            assert not (await mine.look())["run_id"]
            assert await page.evaluate(f"{LOG}.length") < len(LONG)


async def test_a_conversation_of_build_that_was_not_loaded_is_tried_again(
    devtools: str, serve: Serve, tmp_path: Path
) -> None:
    async with serve(conversations_require_llm=False) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        mine = await talk(client, papers(tmp_path / "data", 1))
        async with page_at(devtools, url, "#/build") as page:
            await page.until("document.querySelector('.guide')?.checkVisibility()")
            await page.evaluate(FAIL_BUILD)
            await page.evaluate(f"location.hash = '#/build/{mine.id}'")
            await page.until("document.querySelector('.build .stage .banner')")
            await picture(page, "build-not-loaded")
            await page.evaluate("window.failing = false")
            await page.click(".build .stage .row .button")
            await page.until("document.querySelector('.talk textarea')?.checkVisibility()")


async def test_stop_while_a_message_is_being_sent_stops_its_answer(devtools: str, serve: Serve) -> None:
    async with serve(script(says(LONG, chunk=12, pause_s=0.05))) as url, page_at(devtools, url) as page:
        await page.until("document.querySelector('.composer option')")
        await page.evaluate(HOLD_MESSAGES)
        await send(page, "What chunkers are there?")
        await page.click(".chat .send[aria-label=Stop]")
        await page.evaluate("window.letGo()")
        await page.until(f"{IS_DONE} && document.querySelector('.chat .answer').innerText.includes('stopped')")
        assert await page.evaluate("document.querySelector('.chat .answer').innerText.length") < len(LONG)


async def test_the_list_of_runs_shows_what_began_meanwhile(devtools: str, serve: Serve) -> None:
    async with (
        serve(script(says("It was calm."))) as url,
        httpx.AsyncClient(base_url=url, timeout=30) as client,
        page_at(devtools, url, "#/runs") as page,
    ):
        await page.until("document.querySelector('[aria-label=Runs] .items li')?.checkVisibility()")
        for prompt in ("How was the harbour?", "And the sea?"):
            await client.post("/v1/agent", json={"prompt": prompt, "room": "chat"})
            await page.evaluate(LOOK)
            await page.until(f"{ITEMS}[0] === {json.dumps(prompt)}")
        assert await page.evaluate(f"{ITEMS}.length") == 2
        await page.evaluate("document.querySelector('[aria-label=Runs] .items .item').focus()")
        await client.post("/v1/agent", json={"prompt": "And the sky?", "room": "chat"})
        await page.evaluate(LOOK)
        await page.until(f"{ITEMS}.length === 3")
        assert await page.evaluate("document.activeElement.innerText.includes('And the sea?')")
        statuses = "[...document.querySelector('[aria-label=Status]').options].map((one) => one.value)"
        assert "queued" in await page.evaluate(statuses)
