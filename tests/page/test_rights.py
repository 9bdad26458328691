"""What a key may not do is not offered to its person, and nothing that is offered is refused."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest

from agent.storage.api_keys import ApiKey
from tests.integration.conftest import Serve
from tests.page.journey import page_at, picture, reload, send
from tests.support.browser import BROWSER_TEST, Page

pytestmark = BROWSER_TEST

IS_DONE = "document.querySelector('.answer:last-of-type[aria-busy=false]')"
NOTE_REFUSALS = """(() => {
    const real = window.fetch;
    window.refusals = [];
    window.fetch = async (path, options) => {
        const response = await real(path, options);
        if (response.status === 403) window.refusals.push(`${options?.method ?? "GET"} ${path}`);
        return response;
    };
})()"""
DROP_A_FILE = """(() => {
    const data = new DataTransfer();
    data.items.add(new File(["Lost devices go to the red desk."], "mine.md", { type: "text/markdown" }));
    const drop = new DragEvent("drop", { dataTransfer: data, bubbles: true });
    document.querySelector(".chat .composer").dispatchEvent(drop);
})()"""
VISIBLE = """((selector) => [...document.querySelectorAll(selector)].some((one) => one.checkVisibility()))"""


@asynccontextmanager
async def page_of(devtools: str, serve: Serve, scopes: list[str]) -> AsyncIterator[Page]:
    """The page of a person whose key has these scopes, beside a document of theirs."""
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        made = {}
        for name, owned in (("laptop", scopes), ("admin", ["admin"])):
            fields = {"owner": "anna", "name": name, "scopes": owned}
            made[name] = (await client.post("/v1/admin/keys", json=fields)).json()["text"]
        sent = await client.post(
            "/v1/documents", files={"file": ("a.md", b"# Devices\n\nLost devices go to the blue desk.\n")},
            data={"collection": "shared"}, headers={"x-api-key": made["admin"]},
        )  # fmt: skip
        assert sent.status_code == 201, sent.text
        async with page_at(devtools, url) as page:
            await page.evaluate(f"sessionStorage.setItem('stepgate.key', {json.dumps(made['laptop'])})")
            await reload(page)
            await page.evaluate(NOTE_REFUSALS)
            yield page


@pytest.mark.parametrize("scopes", [["chat"], ["chat", "agent"]])
async def test_an_answer_offers_what_its_key_may_open(devtools: str, serve: Serve, scopes: list[str]) -> None:
    async with page_of(devtools, serve, scopes) as page:
        await send(page, "Where do lost devices go?", "knowledge")
        await page.until(f"{IS_DONE} && document.querySelector('.answer .cite')")
        await page.click(".answer .steps summary")
        await page.click(".answer .cite")
        await page.until("document.querySelector('#panel blockquote')?.checkVisibility()")
        await page.until("document.querySelector('#panel .row .button')")  # their module is loaded now
        await picture(page, f"rights-{len(scopes)}")
        buttons = await page.evaluate(f"{VISIBLE}('#panel .row .button')")
        link = await page.evaluate(f"{VISIBLE}('.answer a[href^=\"#/runs/\"]')")
        assert [buttons, link] == ["agent" in scopes] * 2
        assert await page.evaluate("window.refusals") == []


async def test_a_key_that_adds_no_files_attaches_pictures_only(devtools: str, serve: Serve) -> None:
    async with page_of(devtools, serve, ["chat", "agent", "approve"]) as page:
        await page.becomes("document.querySelector('.clip').title", "Attach pictures")
        await page.evaluate(DROP_A_FILE)
        await page.until("document.querySelector('.tray > .problem')?.innerText.includes('“ingest”')")
        await picture(page, "rights-files", ("phone", "desk"))
        assert not await page.evaluate("document.querySelector('.attached .file')")
        assert await page.evaluate("window.refusals") == []


async def test_a_picture_that_a_key_may_not_see_says_so(devtools: str, serve: Serve) -> None:
    async with page_of(devtools, serve, ["chat"]) as page:
        result = await page.evaluate("""(async () => {
            const app = document.querySelector("script[type=module]").src;
            const { showHtml } = await import(new URL("html.js", app));
            const prose = document.querySelector(".log").appendChild(document.createElement("div"));
            showHtml(prose, '<p>Here: <img alt="The plot" src="/v1/runs/run_1/artifacts/plot.png"></p>');
            await new Promise((done) => setTimeout(done, 500));
            return prose.innerText;
        })()""")
        assert result.startswith("Here: The plot: ")
        assert "“agent”" in result
        assert await page.evaluate("window.refusals") == []


async def test_a_right_that_a_key_loses_is_not_offered_any_more(
    devtools: str, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    views = "[...document.querySelectorAll('header nav a:not([hidden])')].map((one) => one.innerText)"
    real = ApiKey.has_scope
    async with page_of(devtools, serve, ["chat", "agent", "ingest"]) as page:
        await page.evaluate("location.hash = '#/documents/shared'")
        await page.until("document.querySelector('.drop')?.checkVisibility()")
        assert "Build" in await page.evaluate(views)
        monkeypatch.setattr(ApiKey, "has_scope", lambda key, scope: scope != "ingest" and real(key, scope))
        await page.evaluate(DROP_A_FILE.replace(".chat .composer", ".drop"))
        await page.until("document.querySelector('.upload .problem')?.innerText.includes('ingest')")
        await page.until(f"!({views}).includes('Build')")
        assert "ingest" in await page.text(".upload .problem"), "it is still said"
        await picture(page, "rights-lost", ("phone", "desk"))
        monkeypatch.undo()
        await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
        await page.until(f"({views}).includes('Build')")


@pytest.mark.parametrize("view", ["documents/shared", "build", "runs", "team/usage", "studio/rooms", "chat"])
async def test_every_view_says_that_its_key_was_revoked(devtools: str, serve: Serve, view: str) -> None:
    async with page_of(devtools, serve, ["chat", "agent", "ingest", "rooms", "approve"]) as page:
        await page.until("document.querySelectorAll('.card').length > 2")
        async with httpx.AsyncClient(base_url=await page.evaluate("location.origin"), timeout=30) as client:
            (key,) = [one for one in (await client.get("/v1/admin/keys")).json()["data"] if one["name"] == "laptop"]
            assert (await client.delete(f"/v1/admin/keys/{key['id']}")).status_code == 200
        await page.evaluate(f"location.hash = '#/{view}'")
        if view != "chat":
            await page.until("document.querySelector('#key[open]')")
            await page.click("#key [value=cancel]")
        await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
        await page.until("document.querySelector('#notice')?.innerText.includes('A key is needed')")
        await page.until(f"!{VISIBLE}('main [aria-busy=true]') && !/(Loading|Looking) …/.test(document.body.innerText)")
        await picture(page, f"revoked-{view.replace('/', '-')}", ("phone", "desk"))
        page.faults.clear()  # the browser reports the refused requests
