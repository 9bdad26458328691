"""No view has a barrier that axe-core finds, light or dark, at a desk or on a phone; and tables are not cut off."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest

from tests.integration.conftest import Serve
from tests.page.journey import SIZES, page_at, picture, reload
from tests.support.axe import NEEDS_NPM, find_barriers
from tests.support.browser import BROWSER_TEST
from tests.support.script import plans, says, script

pytestmark = [*BROWSER_TEST, NEEDS_NPM]

REPORT = """# Sales

Revenue rose by **12 %**, as $a^2$ says[^1].

| Region | Sales | Cost | Margin | Before | Plan |
| :-- | --: | --: | --: | --: | --: |
| Northern provinces | 1,200,000 | 800,000 | 400,000 | 1,100,000 | 1,300,000 |

- [x] read it

```python
print("x")
```

<details><summary>Method</summary>

Rounded.

</details>

[^1]: A note.
"""
MODEL = script(
    plans({"tool": "calculator", "inputs": {"expression": "6*7"}}, {"tool": "completion"}, about="Compute"),
    says("It is 42.", to="completion", about="Compute"), says(REPORT),
)  # fmt: skip
VIEWS = {
    "chat": ".card", "documents": ".drop", "documents/handbook": ".row-of", "build": ".guide .picker",
    "runs": ".items .item", "team/approvals": ".decision", "team/usage": ".team table",
    "team/people": ".team .cardrow", "team/keys": ".team .cardrow",
    "team/audit": ".team tbody tr", "studio/rooms": ".studio .item", "studio/rooms/careful": ".studio form",
    "studio/tools": ".tools-of li", "studio/prompts": ".studio .items li", "studio/recipes": ".studio .items li",
    "studio/schedules": ".studio .items li", "studio/queue": ".studio .lead", "studio/map": ".map .entity",
    "models": ".models .form",
}  # fmt: skip
"""The address of a view, and an element that is there once it is loaded."""
UNREACHABLE = """[...document.querySelectorAll("table")].filter((one) => one.checkVisibility()).filter((one) => {
    const box = one.closest(".table");
    return !box || (one.scrollWidth > box.clientWidth + 1 && getComputedStyle(box).overflowX !== "auto");
}).length"""
"""How many tables are wider than their place and cannot be scrolled."""


@asynccontextmanager
async def filled_gateway(serve: Serve) -> AsyncIterator[tuple[str, dict[str, str]]]:
    """A gateway in which every view has something to show, and the addresses of what was made."""
    async with (
        serve(MODEL, model_prices={"scripted": (1, 1)}) as url,
        httpx.AsyncClient(base_url=url, timeout=60) as client,
    ):
        room = {"id": "careful", "name": "Careful", "approval": "always", "supervision": "checks"}
        assert (await client.post("/v1/rooms", json=room)).status_code == 201
        text = b"# Travel\n\nTrain tickets are booked by the travel desk.\n"
        sent = await client.post("/v1/documents", files={"file": ("h.md", text)}, data={"collection": "handbook"})
        assert sent.status_code == 201, sent.text
        key = {"owner": "anna", "name": "laptop", "scopes": ["chat"], "limits": {"budget_tokens": 50_000}}
        assert (await client.post("/v1/admin/keys", json=key)).status_code == 201
        chat = (await client.post("/v1/conversations", json={})).json()["id"]
        asked = {"prompt": "Show the sales", "room": "chat", "conversation_id": chat}
        assert (await client.post("/v1/agent", json=asked)).status_code == 200
        done = (await client.post("/v1/agent", json={"prompt": "Compute it, please"})).json()
        await client.post("/v1/agent", json={"prompt": "Compute it, please", "room": "careful"})
        yield url, {f"chat/{chat}": ".answer table", f"runs/{done['metadata']['run_id']}": ".timeline .bar-of"}


@pytest.mark.parametrize("size", ["desk", "phone"])
@pytest.mark.parametrize("is_dark", [False, True], ids=["light", "dark"])
async def test_no_view_has_a_barrier(devtools: str, serve: Serve, size: str, is_dark: bool) -> None:
    barriers: dict[str, list[str]] = {}
    async with filled_gateway(serve) as (url, made), page_at(devtools, url) as page:
        await page.send("Page.setBypassCSP", enabled=True)
        await reload(page)
        for view, there in {**VIEWS, **made}.items():
            await page.look_like(*SIZES[size], dark=is_dark)
            await page.evaluate(f"location.hash = '#/{view}'")
            await page.until(f"[...document.querySelectorAll('{there}')].some((one) => one.checkVisibility())")
            await asyncio.sleep(0.2)
            if found := await find_barriers(page):
                barriers[view] = found
            if await page.evaluate(UNREACHABLE):
                barriers.setdefault(view, []).append("a table is cut off")
            await picture(page, f"view-{view.replace('/', '-')[:22]}", (size,), dark=is_dark)
        page.faults.clear()  # the browser reports the 409 of a gateway without a queue
    assert not barriers, "\n".join(f"{view}: {one}" for view, found in barriers.items() for one in found)
