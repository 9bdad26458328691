"""What is longer than its place: pasted pages, names without a space, many attached files."""

import json

import httpx

from tests.integration.conftest import Serve
from tests.page.journey import OUT_OF_REACH, choose_room, page_at, picture, reload
from tests.support.browser import BROWSER_TEST
from tests.support.script import says, script

pytestmark = BROWSER_TEST

IS_DONE = "document.querySelector('.answer:last-of-type[aria-busy=false]')"
PASTED = "Summarise this log.\n" + "".join(
    f"Line {at}: the harbour was quiet, and the boats lay still.\n" for at in range(3500)
)
HEIGHT = "document.querySelector('{}').getBoundingClientRect().height"
NAME = "Averylongnameofaroom" * 5
"""Without a place at which it could be broken."""
DROP_FILES = """(() => {
    const data = new DataTransfer();
    for (let at = 0; at < 4; at += 1)
        data.items.add(new File([`# Part ${at}\\n\\nWords.\\n`], `${"quarterly".repeat(9)}${at}.md`));
    const drop = new DragEvent("drop", { dataTransfer: data, bubbles: true });
    document.querySelector(".chat .composer").dispatchEvent(drop);
})()"""
CUT_FILES = """(() => {
    const end = document.querySelector(".tray").getBoundingClientRect().right;
    const all = [...document.querySelectorAll(".attached li")];
    return all.filter((one) => one.getBoundingClientRect().right > end).length;
})()"""
"""How many files reach beyond the box that holds them."""


async def test_a_long_message_is_folded_until_all_of_it_is_wanted(devtools: str, serve: Serve) -> None:
    assert len(PASTED) > 200_000
    async with serve(script(says("It was quiet."))) as url, page_at(devtools, url) as page:
        await choose_room(page, "chat")
        await page.evaluate(f"""(() => {{
            const box = document.querySelector(".chat textarea");
            box.focus();
            box.setRangeText({json.dumps(PASTED)});
            box.dispatchEvent(new Event("input"));
        }})()""")
        await page.press("Enter")
        await page.until(IS_DONE)
        window = await page.evaluate("innerHeight")
        assert await page.evaluate(HEIGHT.format(".mine")) < window / 2
        await picture(page, "long-message", ("phone", "desk"))
        assert await page.evaluate("document.querySelector('.mine').textContent") == PASTED.strip()
        await page.click(".asked .unfold")
        assert await page.evaluate(HEIGHT.format(".mine")) > 20 * window
        assert await page.text(".asked .unfold") == "Show less"
        await page.click(".asked .unfold")
        assert await page.evaluate(HEIGHT.format(".mine")) < window / 2
        assert await page.evaluate("document.activeElement.classList.contains('unfold')")

        await page.send("Emulation.setEmulatedMedia", media="print")
        assert await page.evaluate(HEIGHT.format(".mine")) > 20 * window, "paper shows all of it"
        await page.send("Emulation.setEmulatedMedia", media="")
        await reload(page)
        await page.until(f"{IS_DONE} && document.querySelector('.asked .unfold')")
        await page.evaluate("""import(new URL("search_words.js", document.querySelector("script[type=module]").src))
            .then(({ reveal }) => reveal(document.querySelector(".asked"), ["Line 3100"]))""")
        assert await page.text(".asked .unfold") == "Show less", "a search leads to words in the middle"

        run = await page.evaluate("document.querySelector('.answer a[href^=\"#/runs/\"]').hash")
        await page.evaluate(f"location.hash = '{run}'")
        await page.until("document.querySelector('.run .unfold')?.checkVisibility()")
        assert await page.evaluate(HEIGHT.format(".run .plaintext")) < window / 2
        await page.click(".run .unfold")
        assert await page.evaluate(HEIGHT.format(".run .plaintext")) > 20 * window


async def test_names_without_a_space_are_broken_where_they_are_displayed(devtools: str, serve: Serve) -> None:
    async with serve(script(says("Fine."))) as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        room = {"id": "long", "name": NAME, "description": NAME, "suggestions": [NAME], "planning": False}
        assert (await client.post("/v1/rooms", json=room)).status_code == 201
        answered = await client.post("/v1/agent", json={"prompt": NAME, "room": "long"})
        run = answered.json()["metadata"]["run_id"]
        async with page_at(devtools, url) as page:
            await page.until("document.querySelectorAll('.card').length > 3")
            await page.evaluate(
                f"[...document.querySelectorAll('.card')].find((one) => one.innerText.includes('{NAME}')).click()"
            )
            await page.until(f"document.querySelector('.suggestion')?.innerText === '{NAME}'")
            await picture(page, "long-names", ("phone", "tablet", "desk"))
            for place, shown in (
                ("#/studio/rooms/long", ".studio h1"), (f"#/runs/{run}", ".run h1"), ("#/team/usage", ".team table"),
                ("#/team/audit", ".team table"), ("#/studio/map", ".studio h1"),
            ):  # fmt: skip
                await page.evaluate(f"location.hash = '{place}'")
                await page.until(f"[...document.querySelectorAll('{shown}')].some((one) => one.checkVisibility())")
                for width in (390, 1280):
                    await page.look_like(width, 844)
                    assert await page.evaluate(OUT_OF_REACH) == [], f"{place} at {width}"


async def test_many_files_with_long_names_stay_in_their_tray(devtools: str, serve: Serve) -> None:
    async with serve(script(says("Fine."))) as url, page_at(devtools, url) as page:
        await page.until("document.querySelector('.card')")
        await page.evaluate(DROP_FILES)
        await page.until("document.querySelectorAll('.attached li').length === 4")
        for width in (390, 1280):
            await page.look_like(width, 844)
            assert await page.evaluate(CUT_FILES) == 0, width
        await page.until("!document.querySelector('.attached').innerText.includes('reading')")
        assert await page.evaluate(CUT_FILES) == 0
