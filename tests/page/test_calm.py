"""Nothing jumps and nothing is lost: a connection that is cut, a branch that is drawn again, and a keyboard alone."""

import httpx

from tests.integration.conftest import Serve
from tests.page.journey import page_at, picture, send
from tests.support.browser import BROWSER_TEST, Page
from tests.support.cutting_proxy import cutting_proxy
from tests.support.script import plans, says, script

pytestmark = BROWSER_TEST

IS_DONE = "document.querySelector('.answer:last-of-type[aria-busy=false]')"
PROSE = "document.querySelector('.answer:last-of-type .prose')"
SCROLL = "document.querySelector('.talking > .scroll')"
LOOK = "dispatchEvent(new Event('focus'))"
FOCUSED = "((one) => one.title || one.getAttribute('aria-label') || one.tagName)(document.activeElement)"
WATCH_PROSE = f"""(() => {{
    window.least = Infinity;
    window.first = {PROSE}.querySelector('p');
    getSelection().selectAllChildren(window.first);
    new MutationObserver(() => (window.least = Math.min(window.least, {PROSE}.textContent.length)))
        .observe({PROSE}, {{ childList: true, subtree: true, characterData: true }});
}})()"""
"""Notes how little of an answer is ever displayed from now on; its first paragraph is selected."""
PARAGRAPHS = "".join(f"Paragraph {number} says that the harbour was quiet on that day.\n\n" for number in range(160))
NOTE_SPOKEN = """(() => {
    window.spoken = [];
    const isSpoken = (one) => {
        const region = one.closest("[aria-live], [role=status], [role=alert], [role=log]");
        const isQuiet = one.closest("[aria-busy=true]") || region?.getAttribute("aria-live") === "off";
        return region && !isQuiet && one.checkVisibility();
    };
    new MutationObserver((changes) => {
        for (const { target, addedNodes } of changes)
            for (const added of addedNodes)
                if (isSpoken(added.nodeType === Node.TEXT_NODE ? target : added)) window.spoken.push(added.textContent);
    }).observe(document.body, { childList: true, subtree: true });
})()"""
"""Keeps in `spoken` what a screen reader reads out: what is put visibly into a live region that is not busy."""
RIGHT_TO_LEFT = """# דוח

המספר $x = a - 1$ קטן. להלן `code(1)` ורשימה:

1. הרץ את הפקודה:

   ```python
   print("a", 1 - 2)
   ```

2. סיום

| אזור | מכירות |
| --- | --: |
| צפון | 12 |

English again.
"""


async def tab(page: Page, *, back: bool = False) -> None:
    """Press Tab, or Shift+Tab."""
    for kind in ("keyDown", "keyUp"):
        key = {"key": "Tab", "code": "Tab", "windowsVirtualKeyCode": 9, "modifiers": 8 if back else 0}
        await page.send("Input.dispatchKeyEvent", type=kind, **key)


async def fill_chat(client: httpx.AsyncClient, exchanges: int) -> str:
    chat = (await client.post("/v1/conversations", json={})).json()["id"]
    for number in range(exchanges):
        asked = {"prompt": f"What is {number} + 1?", "conversation_id": chat}
        assert (await client.post("/v1/agent", json=asked)).status_code == 200
    return str(chat)


async def test_an_answer_does_not_blink_when_its_connection_is_cut(devtools: str, serve: Serve) -> None:
    async with (
        serve(script(says(PARAGRAPHS, chunk=64, pause_s=0.02))) as url,
        cutting_proxy(url) as proxy,
        page_at(devtools, proxy.url) as page,
    ):
        await send(page, "How was the harbour?")
        await page.until(f"{PROSE}?.innerText.includes('Paragraph 40 ')")
        await page.evaluate(f"{SCROLL}.scrollTop = 200")
        await page.evaluate(WATCH_PROSE)
        shown = await page.evaluate(f"[{PROSE}.textContent.length, {SCROLL}.scrollTop]")
        for _ in range(3):
            length = await page.evaluate(f"{PROSE}.textContent.length")
            proxy.cut()
            await page.until("document.querySelector('.answer.lost')")
            await page.until(f"!document.querySelector('.answer.lost') && {PROSE}.textContent.length > {length}")
        assert await page.evaluate("window.least") >= shown[0] - 100, "at most the open block is drawn again"
        assert await page.evaluate("window.first.isConnected"), "a finished block stays the same element"
        assert str(await page.evaluate("getSelection().toString()")).startswith("Paragraph 0 ")
        assert abs(await page.evaluate(f"{SCROLL}.scrollTop") - shown[1]) <= 1, "the browser rounds lines above"
        await page.until(IS_DONE)
        words = [line for line in PARAGRAPHS.split("\n") if line]
        await page.becomes(f"[...{PROSE}.querySelectorAll('p')].map((one) => one.textContent)", words)
        page.faults.clear()  # the browser reports the cut connections


async def test_an_answer_that_is_shown_again_at_its_end_says_nothing_of_a_lost_connection(
    devtools: str, serve: Serve
) -> None:
    async with serve() as url, page_at(devtools, url) as page:
        result = await page.evaluate("""(async () => {
            const app = document.querySelector("script[type=module]").src;
            const { answer } = await import(new URL("answer.js", app));
            const reply = answer();
            reply.lost(true);
            reply.view({ status: "succeeded", steps: [], metadata: {}, replies: [], thought: "", html: "<p>It is.</p>",
                text: "It is.", seq: 3, run_id: "run_1" });
            return [reply.element.className, reply.element.innerText.includes("lost")];
        })()""")
        assert result == ["answer", False]


async def test_who_reads_further_up_stays_there_when_the_chat_goes_on_elsewhere(devtools: str, serve: Serve) -> None:
    answers = "document.querySelectorAll('.answer').length"
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        chat = await fill_chat(client, 65)
        async with page_at(devtools, url, f"#/chat/{chat}") as page:
            await page.until(f"{answers} === 30")
            await page.evaluate(f"{SCROLL}.scrollTop = 20")
            first = "document.querySelectorAll('.asked')[window.at].getBoundingClientRect().top"
            before = await page.evaluate(f"(window.at = 0, {first})")
            await page.evaluate("document.querySelector('.column > .button.plain').click()")
            await page.until(f"{answers} === 60")
            after = await page.evaluate(f"(window.at = 30, {first})")
            assert abs(after - before) < 60, "but for the button, which is above them now"
            await page.evaluate(f"new Promise((seen) => ({SCROLL}.onscroll = seen, {SCROLL}.scrollTop = 900))")
            before = await page.evaluate(f"(window.one = document.querySelectorAll('.asked')[8], {SCROLL}.scrollTop)")
            asked = {"prompt": "What is 6*7?", "conversation_id": chat}
            assert (await client.post("/v1/agent", json=asked)).status_code == 200
            await page.evaluate(LOOK)
            await page.until(f"{answers} === 61")
            assert await page.evaluate("window.one.isConnected")
            assert await page.evaluate(f"{SCROLL}.scrollTop") == before
            await page.evaluate("document.querySelector('.column > .button.plain').focus()")
            await page.press("Enter")
            await page.until(f"{answers} === 66")
            assert await page.evaluate("document.activeElement.matches('[data-message]')"), "there are no earlier ones"


async def test_the_keyboard_alone_loses_no_place(devtools: str, serve: Serve) -> None:
    step = {"tool": "calculator", "inputs": {"expression": "6*7"}}
    model = script(
        plans(step, {"tool": "completion"}, about="Compute it"),
        says("It is computed.", about="Compute it"), says("It was calm.", delay_s=0.8),
    )  # fmt: skip
    async with serve(model) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        room = {"id": "careful", "name": "Careful", "approval": "always", "supervision": "checks"}
        assert (await client.post("/v1/rooms", json=room)).status_code == 201
        async with page_at(devtools, url) as page:
            await send(page, "How was the harbour?")
            await page.until(IS_DONE)
            await page.evaluate("document.querySelector('[title=\"Edit and send again\"]').focus()")
            await page.press("Enter")
            await page.becomes(FOCUSED, "Edit message")
            await page.press("Escape")
            await page.becomes(FOCUSED, "Edit and send again")
            await page.evaluate("document.querySelector('[title=\"Answer again\"]').focus()")
            await page.press("Enter")
            await page.until("document.querySelector('.asked .pager')")
            await page.becomes(FOCUSED, "Message")
            await page.until(IS_DONE)
            await page.evaluate("document.querySelector('[title=\"Earlier version\"]').focus()")
            await page.press("Enter")
            await page.until("document.querySelector('.pager').innerText.startsWith('1')")
            await page.becomes(FOCUSED, "Later version")
            await page.evaluate("document.querySelector('.chatrow .menu .tool').focus()")
            await page.press("Enter")
            await page.becomes("document.activeElement.innerText", "Rename")
            await page.press("Escape")
            await page.becomes(FOCUSED, "Rename, export or delete")
            await page.evaluate("window.row = document.querySelector('.chatrow')")
            await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
            await page.evaluate("dispatchEvent(new Event('reachchange'))")
            await page.until("!window.row.isConnected")  # the list is drawn again
            await page.becomes(FOCUSED, "Rename, export or delete")
            await page.press("Enter")
            await page.press("Enter")
            await page.becomes(FOCUSED, "Name of the chat")
            await page.send("Input.insertText", text="The harbour")
            await page.press("Enter")
            await page.becomes("document.activeElement.querySelector('b')?.innerText", "The harbour")
            await send(page, "Compute it", "careful")
            await page.until("document.querySelector('.decision')")
            await page.evaluate("document.querySelector('.decision .primary').focus()")
            await page.press("Enter")
            await page.until(f"{IS_DONE} && {PROSE}.innerText.includes('It is computed')")
            assert await page.evaluate("document.activeElement.matches('.answer:last-of-type')")
            await tab(page)
            assert await page.evaluate("document.activeElement !== document.body")


async def test_a_chat_that_loads_late_takes_no_focus_from_a_menu(devtools: str, serve: Serve) -> None:
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        chat = await fill_chat(client, 1)
        async with page_at(devtools, url) as page:
            await page.until("document.querySelector('.chatrow')")
            await page.evaluate(
                "(() => { const real = window.fetch; const held = new Promise((go) => (window.letGo = go));"
                "const isHeld = (path) => path.includes('/messages?');"
                "window.fetch = async (path, options) => (isHeld(path) && (await held), real(path, options)); })()"
            )
            await page.evaluate(f"location.hash = '#/chat/{chat}'")
            await page.until("document.querySelector('.chatrow a[aria-current=page]')")
            await page.click(".menu .tool")
            await page.becomes("document.activeElement.innerText", "Rename")
            await page.evaluate("window.letGo()")
            await page.until("document.querySelector('.answer')")
            await page.evaluate("new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))")
            assert await page.evaluate("document.activeElement.innerText") == "Rename"


async def test_a_file_that_is_dropped_twice_is_attached_once(devtools: str, serve: Serve) -> None:
    drop = """(() => {
        const data = new DataTransfer();
        for (const [name, text] of [["a.md", "# Kelp"], ["b.md", "# Wrack"]])
            data.items.add(new File([text], name, { type: "text/markdown", lastModified: 1 }));
        const drop = new DragEvent("drop", { dataTransfer: data, bubbles: true });
        document.querySelector(".chat .composer").dispatchEvent(drop);
    })()"""
    async with serve(script(says("Fine."))) as url, page_at(devtools, url) as page:
        await page.until("document.querySelector('.composer option')")
        await page.evaluate(drop)
        await page.until("document.querySelectorAll('.attached .file').length === 2")
        await page.evaluate(drop)
        await page.until("document.querySelectorAll('.attached .file')[1]?.innerText.includes('in this chat')")
        assert await page.evaluate("document.querySelectorAll('.attached .file').length") == 2
        await page.evaluate("document.querySelector('.attached .file button:last-child').focus()")
        await page.press("Enter")
        await page.until("document.querySelectorAll('.attached .file').length === 1")
        await page.becomes(FOCUSED, "Remove b.md")


async def test_words_from_right_to_left_leave_code_and_formulas_as_they_are(devtools: str, serve: Serve) -> None:
    directions = "[...document.querySelectorAll('.prose {}')].map((one) => getComputedStyle(one).direction)"
    async with serve(script(says(RIGHT_TO_LEFT))) as url, page_at(devtools, url) as page:
        await send(page, "מה המצב?\nwhat is it?")
        await page.until(IS_DONE)
        for selector in ("pre", "code", "math"):
            assert set(await page.evaluate(directions.format(selector))) == {"ltr"}, selector
        assert await page.evaluate(directions.format(".table")) == ["rtl"]
        assert await page.evaluate(directions.format("ol")) == ["rtl"]
        bidi = "getComputedStyle(document.querySelector('.mine p')).unicodeBidi"
        assert await page.evaluate(bidi) == "plaintext", "each line of a message as in the box that it was written in"
        await picture(page, "right-to-left", ("phone", "desk"))


async def test_at_twice_the_size_a_long_draft_leaves_room_to_read(devtools: str, serve: Serve) -> None:
    async with serve(script(says(PARAGRAPHS[:3000]))) as url, page_at(devtools, url) as page:
        await send(page, "How was the harbour?")
        await page.until(IS_DONE)
        await page.write(".chat textarea", "A line of a long draft\n" * 30)
        for width, height in ((640, 430), (390, 420)):  # 200 %, and a phone with its keyboard
            await page.look_like(width, height)
            await page.becomes("[innerWidth, innerHeight]", [width, height])
            await page.evaluate("new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))")
            assert await page.evaluate(f"{SCROLL}.clientHeight") >= 60, "some lines of the answer"
            box = "document.querySelector('.chat .send').getBoundingClientRect()"
            assert await page.evaluate(f"{box}.bottom <= innerHeight && {box}.top > 0")


async def test_what_a_chat_said_before_is_not_read_out_again(devtools: str, serve: Serve) -> None:
    live = "document.querySelector('.log').getAttribute('aria-live')"
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        chat = await fill_chat(client, 3)
        async with page_at(devtools, url) as page:
            await page.evaluate(
                "(window.seen = [], new MutationObserver(() => window.seen.push("
                f"{live})).observe(document.querySelector('.log'), {{ childList: true }}))"
            )
            await page.evaluate(f"location.hash = '#/chat/{chat}'")
            await page.until("document.querySelectorAll('.answer').length === 3")
            assert set(await page.evaluate("window.seen")) == {"off"}
            await page.becomes(live, None)  # a log is polite
            await send(page, "What is 6*7?", "stepgate")
            await page.until(IS_DONE)
            assert await page.evaluate("window.seen.at(-1)") is None, "what comes now is read out"


async def test_what_is_done_for_an_answer_is_read_out_and_its_words_once_at_its_end(
    devtools: str, serve: Serve
) -> None:
    answer = "Boats lay still. " * 40
    async with serve(script(says(answer, chunk=16, pause_s=0.05))) as url, page_at(devtools, url) as page:
        await page.until("document.querySelector('.composer option')")
        await page.evaluate(NOTE_SPOKEN)
        await send(page, "How was the harbour?")
        await page.until(f"{PROSE}?.innerText.includes('still')")
        assert await page.evaluate("document.getAnimations().length") == 0, "this person wants nothing to move"
        await page.until(IS_DONE)
        spoken = await page.evaluate("window.spoken")
        assert "Writing the answer" in spoken
        assert [one.strip() for one in spoken if "still" in one] == [answer.strip()]
