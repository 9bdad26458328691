"""A team lead's inbox: many questions of several people, which stay where they are while a person decides."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx

from tests.integration.conftest import Serve
from tests.page.journey import page_at, picture, reload
from tests.support.browser import BROWSER_TEST, Page
from tests.support.script import plans, says, script

pytestmark = BROWSER_TEST

LONG = "(" + "1+" * 70 + "1)"
MODEL = script(
    plans(*[{"tool": "calculator", "inputs": {"expression": LONG}}] * 9, {"tool": "completion"}, about="Count"),
    plans({"tool": "calculator", "inputs": {"expression": "6*7"}}, {"tool": "completion"}, about="Compute"),
    says("It is 42."),
)  # fmt: skip
PEOPLE = ("anna", "bob", "a-person-with-a-very-long-name@a-department.of-a-company.example")
QUESTIONS = 30
CARDS = "document.querySelectorAll('.team .decision').length"
TITLES = "[...document.querySelectorAll('.team .cardrow b.cut')].map((one) => one.innerText)"
LOOK_ELSEWHERE = """(() => {
    window.notes = [];
    window.Notification = class {
        static permission = "granted";
        constructor(title, { body }) { window.notes.push(body); }
    };
    document.hasFocus = () => false;
})()"""
LOOK = "document.dispatchEvent(new Event('visibilitychange'))"
COUNT_ANSWERS = """(() => {
    const real = window.fetch;
    window.answered = {};
    window.fetch = async (path, options) => {
        const response = await real(path, options);
        const name = path.split("?")[0];
        window.answered[name] = (window.answered[name] ?? 0) + 1;
        return response;
    };
})()"""
"""Counts the answers of the gateway by their paths."""
HOLD_LISTS = """(() => {
    const real = window.fetch;
    window.lists = [];
    window.fetch = async (path, options) => {
        const response = await real(path, options);
        if (path.startsWith("v1/approvals")) await new Promise((go) => window.lists.push(go));
        return response;
    };
})()"""
"""Holds back the answers that list questions, until each is let go."""
ASK_TWICE = """(() => {
    const real = window.fetch;
    window.fetch = async (path, options) => {
        const response = await real(path, options);
        if (!path.startsWith("v1/approvals")) return response;
        const { data } = await response.json();
        const second = data.map((one) => ({ ...one, id: one.id + "b", question: "The second question." }));
        return new Response(JSON.stringify({ data: [...second, ...data] }));
    };
})()"""
"""Each run asks a second question at once."""
WATCH_REGIONS = """(() => {
    window.changes = 0;
    const all = { childList: true, characterData: true, subtree: true };
    for (const at of document.querySelectorAll(".team > [role=status], #notice"))
        new MutationObserver(() => (window.changes += 1)).observe(at, all);
})()"""
"""Counts the changes of what a screen reader reads out by itself."""
REST = "(() => { const now = performance.now.bind(performance); performance.now = () => now() + 10_000; })()"
"""The time passes in which nothing asks for a key again."""
SECOND_TOP = """(([first, second]) => second.getBoundingClientRect().top - first.getBoundingClientRect().top)(
    document.querySelectorAll('.team .cardrow'))"""


async def ask(client: httpx.AsyncClient, prompt: str, key: str) -> None:
    asked = {"prompt": prompt, "room": "careful"}
    answer = await client.post("/v1/agent", json=asked, headers={"x-api-key": key})
    assert answer.json()["metadata"]["status"] == "awaiting_approval", answer.text


@asynccontextmanager
async def team(serve: Serve) -> AsyncIterator[tuple[str, httpx.AsyncClient, dict[str, str]]]:
    """A gateway with a room that asks, and the keys of its people and of their lead."""
    async with serve(MODEL) as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        room = {"id": "careful", "name": "Careful", "approval": "always", "supervision": "checks"}
        assert (await client.post("/v1/rooms", json=room)).status_code == 201
        keys = {}
        for owner in (*PEOPLE, "lead"):
            scopes = ["admin"] if owner == "lead" else ["chat", "agent"]
            fields = {"owner": owner, "name": "laptop", "scopes": scopes, "limits": {"budget_usd": 2.5}}
            keys[owner] = (await client.post("/v1/admin/keys", json=fields)).json()["text"]
        yield url, client, keys


@asynccontextmanager
async def page_of(devtools: str, url: str, key: str, place: str) -> AsyncIterator[Page]:
    async with page_at(devtools, url) as page:
        await page.evaluate(f"sessionStorage.setItem('stepgate.key', {json.dumps(key)})")
        await reload(page)
        await page.evaluate(f"location.hash = {json.dumps(place)}")
        yield page


async def test_thirty_questions_of_several_people_are_read_and_decided(devtools: str, serve: Serve) -> None:
    async with team(serve) as (url, client, keys):
        for number in range(QUESTIONS):
            prompt = f"Count it, please ({number})" if number == QUESTIONS - 1 else f"Compute it, please ({number})"
            await ask(client, prompt, keys["lead" if number < 2 else PEOPLE[number % len(PEOPLE)]])
        async with page_of(devtools, url, keys["lead"], "#/team/approvals") as page:
            await page.becomes(CARDS, 2)
            await page.click(".team .check input")
            await page.becomes("document.querySelectorAll('.team .cardrow').length", QUESTIONS)
            assert await page.evaluate(CARDS) == 2, "others decide on theirs"
            assert "bob decides." in await page.text(".team")
            await page.until("document.title === '(2) Team · Stepgate'")
            text = await page.text(".team")
            assert "30 questions wait" in text
            assert all(f"asked by {owner}" in text for owner in PEOPLE)
            await picture(page, "inbox", ("phone", "desk"))
            await picture(page, "inbox", ("phone",), dark=True)
            await page.look_like(390, 844)
            bar = "document.querySelector('header nav')"
            await page.until(f"{bar}.scrollWidth <= {bar}.clientWidth + 1")
            await page.look_like(1280, 860)

            last = "[...document.querySelectorAll('.team .cardrow')].at(-1).getBoundingClientRect().bottom"
            for _ in range(40):  # with the wheel, as a person reaches it
                if await page.evaluate(last) <= 860:
                    break
                await page.send("Input.dispatchMouseEvent", type="mouseWheel", x=600, y=500, deltaX=0, deltaY=1000)
                await asyncio.sleep(0.1)
            assert await page.evaluate(last) <= 860
            assert (await page.evaluate(TITLES))[-1] == "Count it, please (29)", "those that wait longest come first"

            await page.evaluate("document.querySelector('.team .decision').scrollIntoView()")
            before = await page.evaluate(TITLES)
            await ask(client, "Compute it, please (new)", keys["bob"])
            await page.evaluate(LOOK)
            await page.becomes("document.querySelectorAll('.team .cardrow').length", QUESTIONS + 1)
            assert await page.evaluate(TITLES) == [*before, "Compute it, please (new)"], "nothing moves away"

            await page.click(".team .decision .primary")
            await page.becomes(CARDS, 1)
            await page.until(
                "document.querySelector('.team .cardrow').innerText === 'Approved: Compute it, please (0)'"
            )
            assert (await page.evaluate("document.activeElement.innerText")).startswith("Approved:")
            await page.until("document.title.startsWith('(1)')")

            others = (await client.get("/v1/approvals?owner=*", headers={"x-api-key": keys["lead"]})).json()["data"]
            second = next(one for one in others if one["title"] == before[1])
            decision = {"approvals": [second["id"]]}
            path = f"/v1/runs/{second['run_id']}/reject"
            sent = await client.post(path, json=decision, headers={"x-api-key": keys["lead"]})
            assert sent.status_code == 202, sent.text
            await page.evaluate(LOOK)
            await page.until("document.querySelectorAll('.team .cardrow')[1].innerText.startsWith('No longer open:')")

            await page.click(".team .check input")
            await page.until("document.querySelector('.team')?.innerText.includes('Nothing is waiting for you')")
            await page.until("document.title === 'Team · Stepgate'")


async def test_keys_of_people_show_their_limits(devtools: str, serve: Serve) -> None:
    async with team(serve) as (url, _, keys), page_of(devtools, url, keys["lead"], "#/team/keys") as page:
        await page.until(f"document.querySelectorAll('.team .cardrow').length === {len(keys)}")
        assert "$2.50 in total" in await page.text(".team")
        await picture(page, "keys-of-people", ("phone", "desk"))


async def test_many_questions_at_once_are_one_notification(devtools: str, serve: Serve) -> None:
    async with team(serve) as (url, client, keys), page_of(devtools, url, keys["lead"], "#/chat") as page:
        await page.until("document.querySelector('.card')?.checkVisibility()")
        await page.evaluate(LOOK_ELSEWHERE)
        for number in range(4):
            await ask(client, f"Compute it, please ({number})", keys["lead"])
        await page.evaluate(LOOK)
        await page.becomes("window.notes", ["4 questions"])
        await page.becomes("document.querySelector('header .count')?.innerText", "4")


async def measure_at_rest(page: Page) -> float:
    """`SECOND_TOP` once what is rendered by the gateway stands in its place."""
    top = None
    while top != (again := float(await page.evaluate(SECOND_TOP))):
        top = again
        await asyncio.sleep(0.4)
    return again


async def test_nothing_moves_under_the_pointer_and_the_focus_stays(devtools: str, serve: Serve) -> None:
    async with team(serve) as (url, client, keys):
        for number in range(4):
            await ask(client, f"Compute it, please ({number})", keys["lead"])
        async with page_of(devtools, url, keys["lead"], "#/team/approvals") as page:
            await page.becomes(CARDS, 4)
            await page.until("[...document.querySelectorAll('.team .prose')].every((one) => one.querySelector('p'))")
            await page.evaluate("document.querySelector('.team .decision').scrollIntoView({ block: 'center' })")
            top = await measure_at_rest(page)
            await page.click(".team .decision .primary")
            await page.becomes(CARDS, 3)
            assert await page.evaluate(SECOND_TOP) == top, "the next question stays under the pointer"

            headers = {"x-api-key": keys["lead"]}
            listed = (await client.get("/v1/approvals", headers=headers)).json()["data"]
            for place, (one, focus) in enumerate(zip(listed[:0:-1], (1, 0), strict=True), start=1):
                await page.evaluate(f"document.querySelectorAll('.team .decision .primary')[{focus}].focus()")
                path = f"/v1/runs/{one['run_id']}/reject"
                sent = await client.post(path, json={"approvals": [one["id"]]}, headers=headers)
                assert sent.status_code == 202, sent.text
                await page.evaluate(LOOK)
                closed = f"document.querySelectorAll('.team .cardrow')[{place}]"
                await page.until(f"{closed}.innerText.startsWith('No longer open:')")
                focused = (
                    "document.activeElement.matches('.team .primary')"
                    if focus
                    else f"document.activeElement === {closed}"
                )
                assert await page.evaluate(focused)

            await page.click(".team .check input")
            await page.until("document.querySelector('.team')?.innerText.includes('1 question waits')")
            assert await page.evaluate("document.activeElement.matches('.team .check input')")


async def test_a_card_shows_all_that_its_buttons_approve(devtools: str, serve: Serve) -> None:
    async with team(serve) as (url, client, keys), page_of(devtools, url, keys["lead"], "#/team/usage") as page:
        await ask(client, "Compute it, please", keys["lead"])
        await page.evaluate(ASK_TWICE)
        await page.evaluate("location.hash = '#/team/approvals'")
        await page.becomes(CARDS, 1)
        await page.until("document.querySelector('.team .cardrow').innerText.includes('The second question.')")
        assert "calculator" in await page.text(".team .cardrow")
        assert await page.evaluate("document.querySelectorAll('.team .cardrow hr').length") == 1
        assert "2 questions wait" in await page.text(".team")
        await page.becomes("document.querySelector('header .count')?.innerText", "2")
        await page.until("document.title.startsWith('(2)')")


async def test_an_answer_that_comes_late_closes_no_question(devtools: str, serve: Serve) -> None:
    async with team(serve) as (url, client, keys), page_of(devtools, url, keys["lead"], "#/team/approvals") as page:
        await ask(client, "Compute it, please (old)", keys["lead"])
        await page.evaluate(LOOK)
        await page.becomes(CARDS, 1)
        await page.evaluate(WATCH_REGIONS)
        await page.evaluate(HOLD_LISTS)
        await page.evaluate(LOOK)
        await page.until("window.lists.length === 1")
        await ask(client, "Compute it, please (new)", keys["lead"])
        await page.evaluate(LOOK)
        await page.until("window.lists.length === 2")
        await page.evaluate("window.lists[1]()")
        await page.becomes(CARDS, 2)
        changes = await page.evaluate("window.changes")
        await page.evaluate("window.lists[0]()")
        await page.evaluate(LOOK)
        await page.until("window.lists.length === 3")
        await page.becomes(CARDS, 2)
        await page.evaluate("window.lists[2]()")
        await page.evaluate(LOOK)
        await page.until("window.lists.length === 4")
        await page.becomes(CARDS, 2)
        assert "No longer open" not in await page.text(".team")
        assert await page.evaluate("window.changes") == changes, "what is the same is not read out again"

        await page.click(".team .decision .primary")  # the answer held back now lists the question still
        await page.until("window.lists.length === 5")
        await page.evaluate("window.lists[3]()")
        await page.evaluate("window.lists[4]()")
        await page.becomes(CARDS, 1)
        await page.until("document.querySelector('.team .cardrow').innerText === 'Approved: Compute it, please (old)'")
        await page.until("document.querySelector('.team')?.innerText.includes('1 question waits')")


async def test_nothing_asks_for_a_key_that_nobody_waits_for(devtools: str, serve: Serve) -> None:
    is_open = "document.querySelector('#key[open]') !== null"
    async with serve(MODEL, require_key="always") as url, page_at(devtools, url, "#/runs") as page:
        await page.until("document.querySelector('[aria-label=Runs]')")
        await page.click("#key [value=cancel]")
        await page.until("document.querySelector('#notice .button')?.checkVisibility()")
        await page.evaluate(REST)
        await page.evaluate(COUNT_ANSWERS)
        await page.evaluate(WATCH_REGIONS)
        for number in (1, 2):
            await page.evaluate(LOOK)
            await page.until(f"window.answered['v1/approvals'] >= {number} && window.answered['ready'] >= {number}")
        assert not await page.evaluate(is_open)
        assert await page.evaluate("window.changes") == 0, "the banner is not read out again"

        await page.click("#notice .button")
        await page.becomes(is_open, True)
        await page.write("#key input", "half a key")
        asked = await page.evaluate("window.answered['v1/me']")
        await page.evaluate("location.hash = '#/team'")
        await page.until(f"window.answered['v1/me'] > {asked}")
        await page.becomes("document.querySelector('#key input').value", "half a key")
        page.faults.clear()  # the browser reports the refused requests


async def test_a_waiting_run_shows_what_is_asked_above_its_buttons(devtools: str, serve: Serve) -> None:
    async with team(serve) as (url, client, keys):
        await ask(client, "Compute it, please", keys["lead"])
        headers = {"x-api-key": keys["lead"]}
        [his] = (await client.get("/v1/approvals", headers=headers)).json()["data"]
        async with page_of(devtools, url, keys["lead"], f"#/runs/{his['run_id']}") as page:
            await page.until("document.querySelector('.run .decision') && document.querySelector('.run .prose p')")
            asked = "document.querySelector('.run .prose').getBoundingClientRect().bottom"
            assert await page.evaluate(
                f"{asked} <= document.querySelector('.run .decision').getBoundingClientRect().top"
            )
            assert "What is asked" in await page.text(".run")
            await picture(page, "run-asks", ("phone", "desk"))
            await page.click(".run .decision .primary")
            await page.until("document.querySelector('.run .prose').innerText.includes('It is 42')")
            await page.becomes(
                "[...document.querySelectorAll('.run h2')].some((one) => one.innerText === 'Answer')", True
            )

            await page.look_like(390, 844)
            for place, back in (("runs/run_none", "#/runs"), ("documents/none", "#/documents")):
                await page.evaluate(f"location.hash = '#/{place}'")
                await page.until(
                    "[...document.querySelectorAll('.banner.blocking')].some((one) => one.checkVisibility())"
                )
                found = f"[...document.querySelectorAll('main a.back')].find((one) => one.hash === '{back}')"
                await page.until(f"{found}?.checkVisibility()")
        page.faults.clear()  # the browser reports what is not there


async def test_a_view_that_is_longer_than_the_window_is_scrolled(devtools: str, serve: Serve) -> None:
    async with serve(MODEL) as url, page_at(devtools, url, "#/models") as page:
        head = "[...document.querySelectorAll('main h1')].find((one) => one.checkVisibility())"
        await page.until(f"{head} && document.querySelector('.models .form')")
        await page.look_like(1280, 300)
        before = await page.evaluate(f"{head}.getBoundingClientRect().top")
        await page.send("Input.dispatchMouseEvent", type="mouseWheel", x=600, y=200, deltaX=0, deltaY=150)
        await page.until(f"{head}.getBoundingClientRect().top < {before} - 50")
