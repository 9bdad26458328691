"""Three people's days with the page: at home, with documents, in a team; and what goes wrong on such days."""

import asyncio
import json
import re
from pathlib import Path

import httpx
import pytest

from agent.llm import discovery
from tests.integration.conftest import Serve
from tests.page.journey import choose_room, page_at, picture, reload, send
from tests.support import warm
from tests.support.browser import BROWSER_TEST
from tests.support.mcp_client import until_listed
from tests.support.model_endpoint import list_of, model_endpoint
from tests.support.script import plans, says, script

pytestmark = BROWSER_TEST

LONG = "The harbour was quiet, and the boats lay still. " * 60
REPORT = """# Quarterly report

Revenue rose by **12 %**; the model is $a^2 + b^2 = c^2$.

| Region | Sales |
| :-- | --: |
| North | 1,200 |

- [x] read the report

```python
def total(rows: list[int]) -> int:
    return sum(rows)
```

<details><summary>Method</summary>

Figures are *rounded*.

</details>
"""
ANSWER = "document.querySelector('.answer:last-of-type .prose')?.innerText ?? ''"
IS_DONE = "document.querySelector('.answer:last-of-type[aria-busy=false]')"
CODE = REPORT.split("```")[1].removeprefix("python\n")
CLIPBOARD = """(() => {
    window.copied = [];
    navigator.clipboard.writeText = async (text) => window.copied.push(text);
    document.addEventListener("copy", () => window.copied.push(document.activeElement.value));
})()"""
"""Keeps what is copied, in either way."""
LONGEST_PAUSE = """(() => {
    window.longestPause = 0;
    let last = performance.now();
    setInterval(() => {
        window.longestPause = Math.max(window.longestPause, performance.now() - last);
        last = performance.now();
    }, 20);
})()"""
"""Measures how long the page could not be used, in milliseconds."""
CHOOSE_YEAR = """((pick) => {
    pick.value = "365d";
    pick.dispatchEvent(new Event("change"));
})(document.querySelector(".team select"))"""


async def test_a_model_of_this_machine_answers_after_one_click(
    devtools: str, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with model_endpoint(list_of("llama3:8b"), answer=lambda _: "An event log is a list of facts.") as endpoint:
        monkeypatch.setattr(discovery, "USUAL_PORTS", (discovery.UsualPort("Ollama", endpoint.port),))
        async with serve(discover="on", model_profile="capable") as url, page_at(devtools, url) as page:
            await page.until("document.querySelector('.unconnected .primary')?.innerText.includes('Use llama3')")
            assert "/v1/chat/completions" not in endpoint.paths, "nothing is sent before it is chosen"
            await picture(page, "connect", ("phone", "desk"))
            await page.click(".unconnected .primary")
            await page.until("document.querySelector('#state').innerText.includes('llama3')")
            await page.until("document.querySelector('.unconnected') === null")
            await send(page, "What is an event log?")
            await page.until(f"({ANSWER}).includes('a list of facts')")
            await page.click("#state")
            await page.until("document.querySelector('.models .cardrow .dot.succeeded')")
            await picture(page, "models", ("phone", "desk"))
            await page.click(".models .cardrow .plain")
            await page.until("document.querySelector('.models .cardrow .plain').innerText === 'Really remove?'")
            await page.click(".models .cardrow .plain")
            await page.until("document.querySelector('.models .lead').innerText.includes('No model is connected')")


async def test_a_chat_keeps_everything(devtools: str, serve: Serve) -> None:
    model = script(
        says(REPORT, about="report", chunk=40, pause_s=0.01), says(LONG, about="harbour", chunk=16, pause_s=0.08),
        says("Fine.", chunk=8),
    )  # fmt: skip
    async with serve(model) as url, page_at(devtools, url) as page:
        await page.until("document.querySelectorAll('.card').length > 2")
        await picture(page, "welcome", ("phone", "tablet", "desk"))
        await send(page, "Describe the harbour")
        await page.until("location.hash.startsWith('#/chat/conv_')")
        await page.until(f"({ANSWER}).length > 100")
        place = await page.evaluate("location.hash")

        await reload(page)  # in the middle of the answer
        assert await page.evaluate("location.hash") == place
        await page.until(f"({ANSWER}).length > 200")
        assert await page.text(".mine") == "Describe the harbour"
        assert LONG.startswith((await page.evaluate(ANSWER)).strip()), "from its beginning"

        await page.click(".fresh")  # it goes on without being watched
        await page.until("document.querySelector('.past .dot.running, .past .dot.queued')")
        await page.click(".chatrow .item")
        await page.until(f"({ANSWER}).length > 300")
        await page.click(".send[aria-label=Stop]")
        await page.until(IS_DONE)
        stopped = (await page.evaluate(ANSWER)).strip()
        assert LONG.startswith(stopped)
        assert 300 < len(stopped) < len(LONG) - 100
        assert "stopped" in await page.text(".answer .tools")
        await reload(page)
        await page.until(IS_DONE)
        assert (await page.evaluate(ANSWER)).strip() == stopped
        assert "stopped" in await page.text(".answer .tools")


async def test_a_message_has_versions_and_a_chat_a_name(devtools: str, serve: Serve) -> None:
    model = script(says(REPORT, about="report", chunk=40, pause_s=0.01), says("Quiet.", chunk=8))
    async with serve(model) as url, page_at(devtools, url) as page:
        await send(page, "Describe the harbour")
        await page.until(IS_DONE)
        await page.click("button[title='Edit and send again']")
        await page.write(".edit textarea", "Show the report")
        await page.click(".edit .primary")
        await page.until("document.querySelector('.answer[aria-busy=false] .codeblock .k')")
        assert await page.evaluate("document.querySelector('.prose math msup') !== null")
        assert await page.text(".pager") == "2 / 2"
        await picture(page, "chat", ("phone", "tablet", "desk"))
        await picture(page, "chat", dark=True)
        await page.evaluate(CLIPBOARD)
        await page.click("button[title='Copy code']")
        await page.click("button[title='Copy answer']")
        await page.becomes("window.copied.map((one) => one.trim())", [CODE.strip(), REPORT.strip()])
        await page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")  # as without TLS
        await page.click("button[title='Copy message']")
        await page.until("window.copied[2] === 'Show the report'")
        await page.click("button[title='Earlier version']")
        await page.until("document.querySelector('.mine').innerText === 'Describe the harbour'")
        await page.click("button[title='Later version']")
        await page.until("document.querySelector('.mine').innerText === 'Show the report'")
        await page.click("button[title='Answer again']")
        await page.until("document.querySelector('.pager')?.innerText === '3 / 3'")
        await page.until(IS_DONE)

        await page.write(".seek input", "rounded")
        await page.until("document.querySelectorAll('.chatrow').length === 1")
        await page.write(".seek input", "submarine")
        await page.until("document.querySelectorAll('.chatrow').length === 0")
        await page.write(".seek input", "")
        await page.until("document.querySelectorAll('.chatrow').length === 1")
        await page.click(".menu .tool")
        await page.click(".popup:popover-open .button:nth-last-child(4)")
        await page.write(".chatrow input", "Harbour")
        await page.press("Enter")
        await page.until("document.querySelector('.chatrow .item')?.innerText.includes('Harbour')")
        await page.click("#theme")
        await page.until("document.documentElement.dataset.theme === 'light'")
        await reload(page)
        assert await page.evaluate("document.documentElement.dataset.theme") == "light"
        await page.click(".menu .tool")
        await page.click(".popup:popover-open .button:nth-last-child(1)")
        await page.until("document.querySelector('.popup .sure')")
        await page.click(".popup:popover-open .sure")
        await page.until("location.hash === '#/chat' && document.querySelectorAll('.chatrow').length === 0")


async def test_nothing_is_lost_with_the_connection_or_between_tabs(devtools: str, serve: Serve) -> None:
    model = script(says(LONG, chunk=16, pause_s=0.06))
    offline = {"offline": True, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
    async with serve(model) as url, page_at(devtools, url) as page:
        await send(page, "Describe the harbour")
        await page.until(f"({ANSWER}).length > 100")
        place = await page.evaluate("location.hash")
        async with page_at(devtools, url, place) as other:
            await other.until(f"({ANSWER}).length > 100")
            await other.send("Network.enable")
            await other.send("Network.emulateNetworkConditions", **offline)
            await asyncio.sleep(0.5)
            await other.send("Network.emulateNetworkConditions", **(offline | {"offline": False}))
            await other.until(IS_DONE)
            await page.until(IS_DONE)
            shown = [(await one.evaluate(ANSWER)).strip() for one in (page, other)]
            other.faults.clear()  # the browser reports the requests that it could not send
        assert shown == [LONG.strip()] * 2


async def test_a_question_and_a_failure_are_there_after_leaving(devtools: str, serve: Serve) -> None:
    model = script(
        says(fault="status_500", about="break", times=4),
        plans({"tool": "calculator", "inputs": {"expression": "6*7"}}, {"tool": "completion"}, about="Compute"),
        says("It is 42.", to="completion"), says("It works again."),
    )  # fmt: skip
    rooms = {"approval": "always", "name": "Careful", "supervision": "checks"}
    async with serve(model) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        made = await client.post("/v1/rooms", json={"id": "careful", **rooms})
        assert made.status_code in (200, 201), made.text
        async with page_at(devtools, url) as page:
            await send(page, "Compute it, please", "careful")
            await page.until("document.querySelector('.decision .primary')")
            await page.until("document.querySelector('.count')?.innerText === '1'", 40_000)
            await reload(page)
            await page.until("document.querySelector('.decision .primary')")
            assert "calculator" in await page.evaluate(ANSWER)
            await page.click(".decision .primary")
            await page.until(f"({ANSWER}).includes('It is 42')")
            await page.until("document.querySelector('.decision') === null")
            await send(page, "Do not break", "chat")
            await page.until("document.querySelector('.answer:last-of-type .banner.blocking')")
            await reload(page)
            await page.until("document.querySelector('.answer:last-of-type .banner.blocking')")
            await choose_room(page, "chat")
            await page.click(".answer:last-of-type .after .button")
            await page.until(f"({ANSWER}).includes('It works again') || document.querySelector('.banner.blocking')")


async def test_a_question_shows_where_each_value_of_a_change_comes_from(
    devtools: str, serve: Serve, tmp_path: Path
) -> None:
    files, servers, effects = tmp_path / "files", tmp_path / "servers.json", tmp_path / "effects.txt"
    files.mkdir()
    (files / "harbour-office.txt").write_text("SE45-5000-0002")
    bank = {**warm.server("tests.support.mcp_server_bank", str(effects)), "trusted": True}
    servers.write_text(json.dumps({"mcpServers": {"bank": bank}}))
    read = {"id": "s1", "tool": "read_file", "inputs": {"path": "harbour-office.txt"}}
    pay = {"tool": "bank__send_money", "inputs": {"to": "$s1.output.text", "amount": 250}, "intent": "pay the berth"}
    model = script(plans(read, pay, {"tool": "completion"}), says("Paid: 250 to SE45-5000-0002.", to="completion"))
    options = {"file_roots": (files,), "mcp_servers": servers}
    async with serve(model, **options) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        await until_listed(client, "bank__send_money")
        async with page_at(devtools, url) as page:
            await send(page, "Pay 250 to the account in harbour-office.txt", "stepgate")
            await page.until("document.querySelector('.decision .primary')")
            asked = await page.evaluate(ANSWER)
            assert "SE45-5000-0002" in asked
            assert "from your request" in asked
            assert "harbour-office.txt" in asked
            await picture(page, "approval", ("phone", "desk"))
            assert not effects.exists()
            await page.click(".decision .primary")
            await page.until(f"({ANSWER}).includes('Paid')")
        assert json.loads(effects.read_text()) == ["send_money", {"to": "SE45-5000-0002", "amount": 250}]


async def test_documents_are_added_read_asked_and_deleted(devtools: str, serve: Serve) -> None:
    text = "# Travel\n\nTrain tickets are booked by the travel desk.\n\n# Devices\n\nLost devices go to the desk.\n"
    async with serve() as url, page_at(devtools, url, "#/documents") as page:
        await page.until("document.querySelector('.drop')?.checkVisibility()")
        drop = f"""(() => {{
            const data = new DataTransfer();
            data.items.add(new File([{json.dumps(text)}], "handbook.md", {{ type: "text/markdown" }}));
            const event = new DragEvent("drop", {{ dataTransfer: data, bubbles: true }});
            document.querySelector(".drop").dispatchEvent(event);
        }})()"""
        await page.evaluate(drop)
        await page.until("document.querySelector('.upload .cardrow')?.innerText.includes('% of its')")
        await page.evaluate(drop)
        await page.until("document.querySelector('.upload')?.innerText.includes('has this file already')")
        await page.evaluate("location.hash = '#/documents/documents'")
        await page.until("document.querySelector('.row-of')")
        await picture(page, "documents", ("phone", "desk"))
        await page.click(".row-of")
        await page.until("document.querySelector('.passages')?.innerText.includes('Train tickets')")
        await page.evaluate("location.hash = '#/documents/documents'")
        await page.click(".run .row .primary")
        await page.until("document.querySelector('.chat textarea').value.includes('documents in documents')")
        await page.write(".chat textarea", "Who books train tickets?")
        await page.press("Enter")
        await page.until("document.querySelector('.answer[aria-busy=false] .chip')")
        await reload(page)
        await page.until("document.querySelector('.answer .chip')")
        await page.click(".answer .chip")
        await page.until("document.getElementById('panel').innerText.includes('travel desk')")
        await picture(page, "cited", ("phone", "desk"))
        await page.press("Escape")
        await page.evaluate("location.hash = '#/documents/documents'")
        await page.click(".run .row .plain")
        await page.until("document.querySelector('.run .row .plain').innerText === 'Really delete?'")
        await page.click(".run .row .plain")
        await page.until("location.hash === '#/documents'")


async def test_a_team_has_keys_usage_and_a_record(devtools: str, serve: Serve) -> None:
    async with serve(script(says("Fine."))) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        await client.post("/v1/agent", json={"prompt": "hello", "room": "chat"})
        async with page_at(devtools, url, "#/team/keys") as page:
            await page.click(".team .offer summary")
            await page.write(".team input[name=owner]", "anna")
            await page.write(".team input[name=name]", "laptop")
            await picture(page, "keys", ("phone", "desk"))
            await page.click(".team .form [type=submit]")
            text = await page.until("document.querySelector('.made code')?.innerText")
            assert (await client.get("/v1/me", headers={"x-api-key": text})).json()["owner"] == "anna"
            await page.evaluate("location.hash = '#/team/usage'")
            await page.until("document.querySelector('.plot .amount')")
            await picture(page, "usage", ("phone", "desk"))
            assert "20" in await page.text(".axis")
            assert await page.evaluate(r"/\d{4}-\d\d-\d\d/.test(document.querySelector('.figure').innerText)") is False
            await page.evaluate(CHOOSE_YEAR)
            await page.until("document.querySelector('.plot')?.querySelectorAll('rect').length === 366")
            await page.evaluate("location.hash = '#/team/audit'")
            await page.until("document.querySelector('.team tbody')?.innerText.includes('key.create')")
            assert "this machine" in await page.text(".team tbody"), "who did it, in words"
        async with page_at(devtools, url) as page:
            await page.evaluate(f"sessionStorage.setItem('stepgate.key', {json.dumps(text)})")
            await reload(page)
            await page.until("[...document.querySelectorAll('header nav a')].filter((a) => !a.hidden).length > 2")
            await page.evaluate("location.hash = '#/team'")
            await page.until("document.querySelector('.tabs')?.innerText.includes('Approvals')")
            assert "Keys" not in await page.text(".wide > .tabs"), "not offered without the scope"


async def test_runs_are_searched_timed_and_compared(devtools: str, serve: Serve) -> None:
    model = script(
        plans({"tool": "calculator", "inputs": {"expression": "6*7"}}, {"tool": "completion"}, about="Compute"),
        says("It is 42.", to="completion"), says("Fine."),
    )  # fmt: skip
    async with serve(model, keep_prompts=7) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        for prompt, room in (("Compute it, please", "stepgate"), ("Hello", "chat")):
            await client.post("/v1/agent", json={"prompt": prompt, "room": room})
        async with page_at(devtools, url, "#/runs") as page:
            await page.until("document.querySelectorAll('[aria-label=Runs] .item').length === 2")
            await page.write("[aria-label=Runs] input", "compute")
            await page.until("document.querySelectorAll('[aria-label=Runs] .item').length === 1")
            await page.click("[aria-label=Runs] .item")
            await page.until("document.querySelectorAll('.timeline .bar-of').length >= 3")
            assert "15 tokens" in await page.text(".timeline")
            first = "document.querySelector('.timeline li')"
            # The times before the plan have bars where they took a hundredth of a second.
            assert re.match("waiting to start|before the plan|plan", await page.evaluate(f"{first}.innerText"))
            bars = "[...document.querySelectorAll('.timeline .bar-of')].map((bar) => parseFloat(bar.style.left))"
            places = await page.evaluate(bars)
            assert places[0] == min(places)
            await page.until("document.querySelector('.run .prose p')")
            await picture(page, "run", ("phone", "tablet", "desk"))
            all_parts = "[...document.querySelectorAll('.run section')]"
            sent = f"{all_parts}.find((one) => one.innerText.includes('models were sent'))"
            await page.until(f"{sent}?.querySelectorAll('details').length === 2")
            await page.evaluate(f"{sent}.querySelector('summary').click()")
            await page.until(f"{sent}.innerText.includes('Compute it, please')")
            await page.write("[aria-label=Runs] input", "")
            await page.until("document.querySelectorAll('[aria-label=Runs] .item').length === 2")
            await page.click("[aria-label=Runs] .item:not([aria-current])")
            pick = "document.querySelector('.run select[aria-label=\"Compare with\"]')"
            await page.until(f"{pick}?.options.length === 2")
            await page.evaluate(f"{pick}.selectedIndex = 1, {pick}.dispatchEvent(new Event('change'))")
            await page.until("document.querySelectorAll('.compare .timeline').length === 2")
            table = await page.text(".differences")
            assert re.search(r"Tools\s+none\s+calculator", table), table
            different = "[...document.querySelectorAll('.differences td:nth-child(2) b')].map((one) => one.innerText)"
            assert "chat" in await page.evaluate(different), "the rooms differ"
            assert "succeeded" not in await page.evaluate(different)
            await picture(page, "compare", ("phone", "desk"))


async def test_what_a_model_thinks_is_folded_above_its_answer(devtools: str, serve: Serve) -> None:
    thought = "document.querySelector('.answer .thought')"
    model = script(says("Paris.", reasoning="The user asks for a capital. " * 9, chunk=4, pause_s=0.6))
    async with serve(model) as url, page_at(devtools, url) as page:
        await send(page, "Which city is it?")
        await page.until("document.querySelector('.answer .steps summary')?.innerText === 'Thinking'")
        await page.until(f"{IS_DONE} && {thought}.checkVisibility() && !{thought}.open")
        await page.click(".answer .thought summary")
        await picture(page, "thought", ("phone", "desk"))
        await reload(page)
        await page.until(f"{IS_DONE} && {thought}.textContent.includes('asks for a capital')")
        assert (await page.evaluate(ANSWER)).strip() == "Paris."
        assert (await page.text(".answer .steps summary")).endswith("small"), "which model it was"
        assert await page.evaluate("new Date(document.querySelector('.asked time').dateTime) <= new Date()")
        await page.send("Input.dispatchKeyEvent", type="keyDown", key="k", code="KeyK", modifiers=2)
        await page.until("document.activeElement.matches('.past input[type=search]')")


async def test_a_run_shows_its_whole_request_and_leads_to_its_chat(devtools: str, serve: Serve) -> None:
    asked = f"Summarise this, please: {'the boats lay still; ' * 20}and the gulls were gone."
    async with serve(script(says("All was quiet.", chunk=8))) as url, page_at(devtools, url) as page:
        await send(page, asked)
        await page.until(f"{IS_DONE} && ({ANSWER}).includes('quiet')")
        place = await page.evaluate("location.hash")
        await page.evaluate("location.hash = document.querySelector('.answer .steps a').hash")
        await page.until("document.querySelector('.run .plaintext')?.innerText.endsWith('the gulls were gone.')")
        await page.click(".run .facts a")
        await page.until(f"location.hash === {json.dumps(place)} && ({ANSWER}).includes('quiet')")


async def test_long_chats_long_answers_and_other_scripts(devtools: str, serve: Serve) -> None:
    huge = "".join(f"## Part {number}\n\n{'word ' * 200}\n\n" for number in range(2_000))
    model = script(
        says(huge, about="huge", chunk=4000),
        says(
            "שלום, **עולם**\n\n`code` שלום\n\n- אחת\n- שתיים\n\n| שם | ערך |\n| -- | -- |\n| א | 1 |",
            about="שתיים",
            chunk=8,
        ),
        says("שלום", chunk=8),
    )
    async with serve(model) as url, httpx.AsyncClient(base_url=url, timeout=120) as client:
        chat = (await client.post("/v1/conversations", json={})).json()["id"]
        for number in range(40):
            asked = {"prompt": f"שאלה {number}", "conversation_id": chat, "room": "chat"}
            assert (await client.post("/v1/agent", json=asked)).status_code == 200
        async with page_at(devtools, url, f"#/chat/{chat}") as page:
            await page.until("document.querySelectorAll('.answer').length === 30")
            await page.evaluate("document.querySelector('.column > .button.plain').click()")
            await page.until("document.querySelectorAll('.answer').length === 40")
            assert await page.evaluate("getComputedStyle(document.querySelector('.mine')).direction") == "rtl"
            await send(page, "שתיים")
            await page.until(f"{IS_DONE} && document.querySelector('.answer:last-of-type .prose table')")
            for element in ("p", "p:nth-of-type(2)", "ul", ".table"):
                found = f"getComputedStyle(document.querySelector('.answer:last-of-type .prose {element}')).direction"
                assert await page.evaluate(found) == "rtl"
            for name, tokens in (("roomy", 2_000_000), ("brief", 30_000)):
                room = {"id": name, "name": name, "planning": False, "budgets": {"max_tokens": tokens}}
                assert (await client.post("/v1/rooms", json=room)).status_code == 201
            await reload(page)
            await page.evaluate(LONGEST_PAUSE)
            await send(page, "Something huge", "roomy")
            shown = "document.querySelector('.answer:last-of-type .prose').textContent"
            await page.until(f"{IS_DONE} && {shown}.includes('Part 1999')", 90_000)
            assert await page.evaluate("document.querySelectorAll('.answer:last-of-type .prose h4').length") > 100
            assert await page.evaluate("window.longestPause") < 2_000, "the page can be used meanwhile"
            await page.click(".fresh")
            await page.until("location.hash === '#/chat'")
            await send(page, "Something huge", "brief")
            await page.until("document.querySelector('.answer:last-of-type .notes')?.innerText.includes('was cut off')")


async def test_an_answer_that_is_not_whole_says_why(devtools: str, serve: Serve) -> None:
    work = plans({"tool": "calculator", "inputs": {"expression": "6*7"}}, {"tool": "completion"})
    model = script(work, says("It is 42, of 4711.", to="completion"))
    async with serve(model, model_profile="capable") as url, page_at(devtools, url) as page:
        await send(page, "Compute 6*7, please", "stepgate")
        await page.until("document.querySelector('.answer[data-status=partial] .notes')")
        said = await page.text(".answer .notes")
        assert "none of the results support: 4711" in said
        assert "This answer is not complete" not in said
