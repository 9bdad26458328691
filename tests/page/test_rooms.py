"""Rooms that are made in the studio: what is chosen there is what they have."""

import httpx
import pytest

from tests.integration.conftest import Serve
from tests.page.journey import page_at, picture
from tests.support.browser import BROWSER_TEST

pytestmark = BROWSER_TEST

LIMIT = "[...document.querySelectorAll('.studio fieldset')].find((one) => one.innerText.startsWith('{}'))"
"""The part of a room's form with this legend."""


@pytest.mark.parametrize(("limited", "expected"), [(("Tools", "Skills"), []), ((), None)])
async def test_a_new_room_has_the_tools_and_skills_that_were_chosen(
    devtools: str, serve: Serve, limited: tuple[str, ...], expected: list[str] | None
) -> None:
    """ "Only these" with nothing ticked is none of them; without it, a room has all."""
    async with serve() as url, page_at(devtools, url, "#/studio/rooms/new") as page:
        await page.until("document.querySelector('.studio form input[name=name]')?.checkVisibility()")
        await page.write(".studio form input[name=name]", "Quiet")
        for legend in limited:
            await page.evaluate(f"{LIMIT.format(legend)}.querySelector('input').click()")
        await picture(page, "room-without-tools" if limited else "room-with-all-tools")
        await page.evaluate("[...document.querySelectorAll('.studio .primary')].at(-1).click()")
        await page.until("!location.hash.endsWith('/new')")
        room = str(await page.evaluate("location.hash.split('/').at(-1)"))
        async with httpx.AsyncClient(base_url=url, timeout=30) as client:
            made = (await client.get(f"/v1/rooms/{room}")).json()["room"]
        assert [made["tools"], made["skills"]] == [expected, expected]
