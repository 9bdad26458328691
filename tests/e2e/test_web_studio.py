"""The studio, recipes, forks and past chats on the web page, in a real Chromium."""

import json
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from agent.sandbox.probe import find_missing_feature
from tests.e2e.test_web_page import page_at
from tests.integration.conftest import Serve
from tests.integration.test_generated_tools import REQUEST
from tests.page.conftest import devtools, model_server, serve
from tests.support.browser import BROWSER_TEST, Page
from tests.support.postgres import fresh_database
from tests.support.script import answers, plans, says, script
from tests.support.tool_scripts import ToolScript

__all__ = ["devtools", "model_server", "serve"]  # fixtures

pytestmark = BROWSER_TEST

SUM = (
    plans({"tool": "calculator", "inputs": {"expression": "12*12"}}, {"tool": "completion"}, about="12*12"),
    says("It is computed.", to="completion"),
)


async def press(page: Page, word: str, within: str = "main") -> None:
    """Press the button with this text."""
    all_buttons = f"[...document.querySelectorAll('{within} button')]"
    found = f"{all_buttons}.find((one) => one.checkVisibility() && one.innerText.trim() === {json.dumps(word)})"
    await page.until(f"{found} && !{found}.disabled")
    await page.evaluate(f"{found}.setAttribute('data-press', '')")
    await page.click("[data-press]")
    await page.evaluate("document.querySelectorAll('[data-press]').forEach((one) => one.removeAttribute('data-press'))")


async def run_sum(url: str) -> str:
    async with httpx.AsyncClient(base_url=url, timeout=30) as client:
        answer = (await client.post("/v1/agent", json={"prompt": "What is 12*12?"})).json()
    return str(answer["metadata"]["run_id"])


async def test_a_run_is_saved_confirmed_and_called_from_the_page(devtools: str, serve: Serve) -> None:
    async with serve(script(*SUM)) as url, page_at(devtools, url) as page:
        run_id = await run_sum(url)
        await page.evaluate(f"location.hash = '#/runs/{run_id}'")
        await page.click(".offer summary")
        await page.write(".offer input[name=name]", "multiply")
        await press(page, "Create recipe")
        await page.until("location.hash === '#/studio/recipes/multiply'")
        await page.until("document.querySelector('.studio .stage h1')?.innerText === '/multiply'")
        shown = await page.text(".studio .stage")
        assert "expression (text)" in shown
        assert "no other value is known" in shown
        await page.write(".studio .stage input[name=expression]", "sum")
        await press(page, "Confirm")
        await page.until("document.querySelector('.studio .stage input[name=sum]')")
        await page.write(".studio .stage input[name=sum]", "6*7")
        await press(page, "Put it into the chat")
        await page.until("document.querySelector('.chat textarea').value.startsWith('/multiply')")
        assert await page.evaluate("document.querySelector('.chat textarea').value") == '/multiply sum="6*7"'
        await page.press("Enter")
        await page.until("document.querySelector('.answer[aria-busy=false]')")
        assert "It is computed." in await page.text(".answer")


async def test_a_run_is_forked_from_the_page(devtools: str, serve: Serve) -> None:
    async with serve(script(*SUM)) as url, page_at(devtools, url) as page:
        run_id = await run_sum(url)
        await page.evaluate(f"location.hash = '#/runs/{run_id}'")
        await page.click(".offer + .offer summary")
        await page.write(".offer textarea[name=args]", '{"expression": "6*')
        await press(page, "Start the fork")
        await page.until("document.querySelector('.offer .problem')?.innerText.includes('not valid JSON')")
        await page.write(".offer textarea[name=args]", '{"expression": "6*7"}')
        await press(page, "Start the fork")
        await page.until(f"location.hash.startsWith('#/runs/run_') && location.hash !== '#/runs/{run_id}'")
        await page.until(f"document.querySelector('.facts a')?.hash === '#/runs/{run_id}'")
        await page.until("document.querySelector('.run .dot.succeeded')")
        await page.until("document.querySelector('.run .trace')?.textContent.includes('42')")


async def test_a_room_is_made_changed_tried_and_deleted(devtools: str, serve: Serve, tmp_path: Path) -> None:
    async with serve(rooms_dir=_folder(tmp_path)) as url, page_at(devtools, url, "#/studio") as page:
        await press(page, "New room")
        await press(page, "Create room")
        await page.until("document.querySelector('.studio .stage .problem')?.innerText")
        await page.write(".studio .stage input[name=name]", "Order desk")
        await page.write(".studio .stage textarea[name=suggestions]", "What is 6*7?")
        await press(page, "Create room")
        await page.until("location.hash === '#/studio/rooms/order-desk'")
        await page.write(".studio .stage input[name=description]", "Orders parts")
        await press(page, "Save")
        await page.until("document.querySelector('.item[aria-current]')?.innerText.includes('Orders parts')")
        await press(page, "Try it")
        await page.until("document.querySelector('.chat textarea').value === 'What is 6*7?'")
        assert await page.evaluate("document.querySelector('.composer select').value") == "order-desk"
        await page.press("Enter")
        await page.until("document.querySelector('.answer[aria-busy=false]')?.innerText.includes('42')")
        await page.evaluate("(window.confirm = () => true, location.hash = '#/studio/rooms/order-desk')")
        await press(page, "Delete")
        await page.until("location.hash === '#/studio/rooms'")
        await page.until("!document.querySelector('.side').innerText.includes('Order desk')")


def _folder(tmp_path: Path) -> Path:
    (tmp_path / "rooms").mkdir()
    return tmp_path / "rooms"


async def test_a_staged_tool_is_reviewed_and_applied(devtools: str, serve: Serve) -> None:
    if find_missing_feature() is not None:
        pytest.skip("this machine has no sandbox")
    async with serve(script(*ToolScript().rules())) as url, page_at(devtools, url, "#/studio/tools/new") as page:
        await page.write(".studio .stage textarea[name=description]", str(REQUEST["description"]))
        await press(page, "Create tool")
        await page.until("/^#.studio.tools.(?!new)/.test(location.hash)", 60_000)
        await page.until("document.querySelector('.studio .stage .code')")
        shown = await page.text(".studio .stage")
        assert "async def" in shown
        assert "nothing besides computing" in shown
        assert "This version is staged" in shown
        await press(page, "Apply")
        await page.until("document.querySelector('.studio .stage .facts')?.innerText.includes('in use')")
        await page.until("document.querySelector('.item[aria-current]')?.innerText.includes('in use')")


async def test_a_prompt_is_saved_and_saved_again(devtools: str, serve: Serve) -> None:
    async with serve() as url, page_at(devtools, url, "#/studio/prompts/new") as page:
        await page.write(".studio .stage input[name=name]", "polite")
        await page.write(".studio .stage textarea[name=text]", "Be polite.")
        await press(page, "Save prompt")
        await page.until("location.hash === '#/studio/prompts/polite'")
        await page.until("document.querySelector('.studio .stage h1')?.innerText === 'polite'")
        await page.write(".studio .stage textarea[name=text]", "Be polite and brief.")
        await press(page, "Save as a new version")
        await page.until("document.querySelector('.studio .stage header')?.innerText.includes('Version 2')")


async def test_a_schedule_is_made_run_and_paused(devtools: str, serve: Serve) -> None:
    async with serve(script(*SUM)) as url, page_at(devtools, url) as page:
        await page.evaluate("location.hash = '#/studio/schedules/new'")
        await page.write(".studio .form input[name=name]", "daily-sum")
        await page.write(".studio .form textarea[name=prompt]", "What is 12*12?")
        await press(page, "Save schedule")
        await page.until("document.querySelector('.studio .stage h1')?.innerText === 'daily-sum'")
        await press(page, "Run now")
        await page.until("document.querySelector('.studio .actions a')?.innerText === 'open the run'")
        await press(page, "Pause")
        await page.until("document.querySelector('.studio .side .tag')?.innerText === 'paused'")
        await page.until("document.querySelector('.studio .stage').innerText.includes('by hand: ')")
        async with httpx.AsyncClient(base_url=url) as client:
            (made,) = (await client.get("/v1/schedules")).json()["data"]
        assert (made["enabled"], made["prompt"], made["next_ticks"]) == (False, "What is 12*12?", [])


async def test_the_queue_is_shown_and_a_dead_letter_decided_about(devtools: str, serve: Serve) -> None:
    with fresh_database() as database:
        options: dict[str, Any] = {"database_url": database, "dispatch": "queue", "queue_lanes": ("ingest",)}
        async with serve(**options) as url, page_at(devtools, url) as page:
            async with httpx.AsyncClient(base_url=url) as client:
                body = {"prompt": "What is 6*7?", "background": True}
                runs = [(await client.post("/v1/agent", json=body)).json()["run_id"] for _ in range(2)]
            statement = "UPDATE procrastinate_jobs SET status = 'failed' WHERE queueing_lock = %s"
            with psycopg.connect(database, autocommit=True) as connection:
                connection.execute(statement.encode(), (runs[0],))
            await page.evaluate("location.hash = '#/studio/queue'")
            await page.until("document.querySelector('.queue .lines')")
            shown = await page.text(".queue")
            assert "No process takes the waiting jobs of runs@" in shown
            assert "ingest 0 of 2" in shown
            letter = await page.text(".queue .lines")
            assert "given up after" in letter
            assert runs[0] in letter
            await page.evaluate("window.confirm = () => true")
            await press(page, "Discard")
            await page.until(f"document.querySelector('.queue .problem[role=status]')?.innerText.includes('{runs[0]}')")
            await press(page, "Retry")
            await page.until("document.querySelector('.queue').innerText.includes('None. Jobs that were given up')")
            cells = await page.evaluate("[...document.querySelectorAll('.queue tr')].map((one) => one.innerText)")
            assert [line.split("\t")[1:4] for line in cells if line.startswith("runs")] == [["2", "0", "0"]]


async def test_the_map_says_what_is_linked_with_what(devtools: str, serve: Serve) -> None:
    async with serve() as url, page_at(devtools, url, "#/studio/map") as page:
        await page.until("document.querySelectorAll('.entity').length > 20")
        await page.write(".studio .stage input[type=search]", "incident")
        await page.until("[...document.querySelectorAll('.entity')].filter((one) => one.checkVisibility()).length < 20")
        await page.click(".entity:not([hidden])")
        await page.until("document.querySelector('.linkage li')")
        assert await page.evaluate("document.querySelectorAll('.entity[aria-pressed=true]').length") == 1
        assert await page.evaluate("document.querySelectorAll('.map path.own').length") > 0


async def test_past_chats_are_listed_and_continued(devtools: str, serve: Serve) -> None:
    model = script(answers("Hello, I am here.", about="Hello out there"), answers("Yes, it is you again."))
    async with serve(model) as url, page_at(devtools, url) as page:
        await page.until("document.querySelector('.composer select option')")
        await page.write(".chat textarea", "Hello out there")
        await page.press("Enter")
        await page.until("document.querySelector('.past .item[aria-current]')?.innerText.includes('Hello out there')")
        await page.click(".fresh")
        await page.until("!document.querySelector('.past .item[aria-current]')")
        assert await page.evaluate("document.querySelectorAll('.log > *').length") == 0
        await page.click(".past .item")
        await page.until("document.querySelector('.log .answer')?.innerText.includes('Hello, I am here.')")
        address = await page.evaluate("location.hash")
        await page.evaluate("location.reload()")
        await page.until("document.querySelector('.log .answer')?.innerText.includes('Hello, I am here.')")
        assert await page.evaluate("location.hash") == address
        await page.write(".chat textarea", "Is it me?")
        await page.press("Enter")
        await page.until("document.querySelectorAll('.log .answer').length === 2")
        await page.until("document.querySelector('.answer[aria-busy=false]')")
        assert await page.evaluate("document.querySelectorAll('.past .item').length") == 1


async def test_the_studio_reads_well_on_a_narrow_screen_and_aloud(devtools: str, serve: Serve) -> None:
    roles = {"button", "link", "textbox", "combobox", "checkbox", "navigation", "searchbox", "region", "group"}
    async with serve() as url, page_at(devtools, url) as page:
        await page.look_like(390, 844)
        views = {
            "#/studio/rooms": ".studio .item",
            "#/studio/rooms/new": ".studio input[name=name]",
            "#/studio/tools/new": ".studio textarea",
            "#/studio/recipes": ".studio .tabs",
            "#/studio/queue": ".studio .stage code",  # a gateway without a queue says what it takes
            "#/studio/map": ".entity",
        }
        for hash_, there in views.items():
            await page.evaluate(f"location.hash = '{hash_}'")
            await page.until(f"document.querySelector('{there}')?.checkVisibility()")
            assert await page.evaluate("document.documentElement.scrollWidth") <= 390
            nodes = (await page.send("Accessibility.getFullAXTree"))["nodes"]
            unnamed = [
                node["role"]["value"]
                for node in nodes
                if not node["ignored"] and node["role"]["value"] in roles and not node.get("name", {}).get("value")
            ]
            assert unnamed == [], hash_
