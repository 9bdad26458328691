"""Branches and forks of what external text has shaped: nothing is done unasked in them, with a key or without."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.integration.test_history_labels import (
    FIRST,
    READ,
    STOLEN,
    THANKS,
    Bank,
    assistant,
    bank,
    text_of,
    user,
)
from tests.support.approvals import ids_of
from tests.support.keys import bearer, created_key
from tests.support.script import plans

__all__ = ["bank"]

COMPLETE = {"tool": "completion"}


async def read_stopped(it: Bank, run_id: str) -> dict[str, Any]:
    """A run once it has ended or waits."""
    async with asyncio.timeout(20):
        while (run := (await it.client.get(f"/v1/runs/{run_id}")).json())["status"] in ("queued", "running"):  # noqa: ASYNC110 - polling is what a client does
            await asyncio.sleep(0.05)
    return dict(run)


@pytest.mark.parametrize("is_key", [False, True])
async def test_a_fork_of_a_rejected_plan_that_a_page_shaped_asks_again(bank: Any, tmp_path: Path, is_key: bool) -> None:
    async with bank(*FIRST, plans(STOLEN, COMPLETE, about=THANKS, times=1)) as it:
        if is_key:
            it.client.headers.update(bearer(await created_key(tmp_path / "data", "app", owner="local")))
        first = await it.chat(user(READ))
        asked = await it.chat(user(READ), assistant(text_of(first)), user(THANKS))
        run_id = asked["metadata"]["run_id"]
        waiting = await read_stopped(it, run_id)
        assert waiting["status"] == "awaiting_approval"
        decision = {"approvals": ids_of(waiting["response"])}
        rejected = await it.client.post(f"/v1/runs/{run_id}/reject", json=decision)
        assert rejected.is_success, rejected.text
        await read_stopped(it, run_id)
        for fork in ({"step": "s1"}, {"step": "s1", "args": {"amount": 1}}):
            forked = await it.client.post(f"/v1/runs/{run_id}/fork", json=fork)
            assert forked.is_success, forked.text
            stopped = await read_stopped(it, forked.json()["id"])
            assert stopped["status"] == "awaiting_approval"
            assert it.effects == []


async def test_a_branch_after_an_answer_from_outside_asks(bank: Any) -> None:
    """Sent after the answer, as another answer to the same message, and answered again without content."""
    async with bank(*FIRST, plans(STOLEN, COMPLETE, about=THANKS)) as it:
        talk = (await it.client.post("/v1/conversations", json={})).json()["id"]
        path = f"/v1/conversations/{talk}/messages"

        async def send(body: dict[str, Any]) -> str:
            sent = await it.client.post(path, json=body)
            assert sent.is_success, sent.text
            await read_stopped(it, sent.json()["run_id"])
            return str(sent.json()["run_id"])

        read = await send({"content": READ})
        second = await send({"content": THANKS, "parent": f"msg_{read}-assistant"})
        third = await send({"content": THANKS, "parent": f"msg_{read}-assistant"})
        again = await send({"parent": f"msg_{second}-user"})
        for run_id in (second, third, again):
            assert (await read_stopped(it, run_id))["status"] == "awaiting_approval"
        assert it.effects == []
