"""The studio with a model whose replies arrive damaged: no error for the user, and nothing half-made."""

from pathlib import Path

import httpx
import pytest

from gateway.features.evaluation.degraded import DegradedModel, serve_degraded
from tests.integration.conftest import Serve
from tests.integration.test_studio_routing import approve
from tests.support.script import Rule, plans, says, script
from tests.support.scripted_server import ScriptedServer
from tests.support.studio import acts, concludes, intent, routes

REQUESTS = 24
DECISIONS = 4
"""Approvals of one request. A damaged call may be refused and made again."""


def rules_for(number: int) -> list[Rule]:
    """What an undamaged model replies to one request: half are made by one call, half by a sub-agent's model."""
    name = f"Desk {number:02}"
    asked = f"room number {number:02}."
    action = "room_create" if number % 2 else "create"
    return [
        routes(intent("room_management", action, name=name), about=asked),
        acts("room_create", {"name": name}, about=asked, times=2),
        plans({"tool": "room_create", "inputs": {"name": name}}, about=asked),
    ]


@pytest.mark.parametrize("rate", [0.5, 1.0])
@pytest.mark.row("S002-04", "S002-53")
async def test_a_degraded_model_leaves_nothing_half_made(
    serve: Serve, tmp_path: Path, model_server: ScriptedServer, rate: float
) -> None:
    rules = [rule for number in range(REQUESTS) for rule in rules_for(number)]
    rest = (concludes("Done."), says("Done.", to="completion"))
    degraded = DegradedModel(model_server.url, rate, seed=4)
    async with (
        serve_degraded(degraded) as model_url,
        serve(script(*rules, *rest), llm_base_url=model_url) as url,
        httpx.AsyncClient(base_url=url, timeout=60) as client,
    ):
        for number in range(REQUESTS):
            body = {"message": f"please make room number {number:02}."}
            response = await client.post("/v1/studio/requests", json=body)
            assert response.status_code == 200, response.text
            shown = response.json()
            status = shown["status"]
            for _ in range(DECISIONS):
                if status != "awaiting_approval":
                    break
                await approve(url, {"metadata": {"run_id": shown["run_id"], "approvals": shown["approvals"]}})
                shown = (await client.get(f"/v1/studio/requests/{shown['run_id']}")).json()
                status = shown["status"]
            assert status in ("succeeded", "partial", "awaiting_input", "error"), status
        rooms = (await client.get("/v1/rooms")).json()["data"]
    assert degraded.counts.total() > REQUESTS, "the damage was done"
    assert [room["error"] for room in rooms if room["error"]] == []
    made = [room["name"] for room in rooms if room["origin"] == "managed"]
    expected = {f"Desk {number:02}" for number in range(REQUESTS)}
    assert set(made) <= expected
    assert len(made) >= (REQUESTS // 2 if rate < 1 else 1), made
    files = sorted(path.name for path in (tmp_path / "data" / "rooms").iterdir())
    assert len(files) == len(made), "no file but those of rooms"
