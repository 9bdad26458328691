"""Forks of runs: what is done again, what is taken over, and what is refused."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from agent.core.errors import NotFoundError
from agent.core.principal import Principal
from agent.core.settings import Settings
from agent.runs.forks import ForkRequest
from gateway.bootstrap import Stepgate, build_gateway
from tests.support.approvals import ids_of
from tests.support.loop_turns import MAX_TURN_S, measuring_turns
from tests.support.script import plans, says, script
from tests.support.scripted_server import ScriptedServer
from tests.support.serving import serving
from tests.support.tools import EFFECT, FunctionTool, returning

STEPS = (
    {"tool": "look_up", "inputs": {"x": "part 7"}},
    {"tool": "send_order", "inputs": {"x": "$s1"}, "depends_on": ["s1"]},
    {"tool": "completion", "depends_on": ["s1", "s2"]},
)
MODEL = (plans(*STEPS), says("It is done.", to="completion"))
READS = (
    plans(
        {"tool": "look_up", "inputs": {"x": "part 7"}},
        {"tool": "describe", "inputs": {"x": "$s1"}},
        {"tool": "completion"},
    ),
    says("It is a screw.", to="completion"),
)


class World:
    """A gateway with three tools whose calls are counted, and a client for it."""

    def __init__(self, client: httpx.AsyncClient, stepgate: Stepgate, tools: dict[str, FunctionTool]) -> None:
        self.client, self.stepgate, self.tools = client, stepgate, tools

    def counts(self) -> dict[str, int]:
        return {name: len(tool.calls) for name, tool in self.tools.items() if tool.calls}

    async def run(self, prompt: str = "order part 7") -> dict[str, Any]:
        response = await self.client.post("/v1/agent", json={"prompt": prompt})
        assert response.status_code == 200, response.text
        body: dict[str, Any] = response.json()
        return body

    async def fork(self, run_id: str, **body: Any) -> httpx.Response:
        return await self.client.post(f"/v1/runs/{run_id}/fork", json=body)

    async def wait(self, run_id: str) -> dict[str, Any]:
        async with asyncio.timeout(20):
            while True:
                found: dict[str, Any] = (await self.client.get(f"/v1/runs/{run_id}")).json()
                if found["status"] not in ("queued", "running"):
                    return found
                await asyncio.sleep(0.02)


@asynccontextmanager
async def world(tmp_path: Path, server: ScriptedServer, *rules: Any, **options: Any) -> AsyncIterator[World]:
    server.load(script(*rules))
    settings = Settings(
        _env_file=None, data_dir=tmp_path / "data", port=0, skills_dirs=(), drain_seconds=1,
        llm_base_url=server.url, model_fast="small", model_high="large", **options,
    )  # fmt: skip
    tools = {
        "look_up": returning("look_up", "a screw of 5 mm"),
        "describe": returning("describe", "long and thin"),
        "send_order": returning("send_order", "order 12 was sent", annotations=EFFECT),
    }
    async with build_gateway(settings) as stepgate:
        stepgate.registry.register(*tools.values())
        async with serving(settings, stepgate) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
            yield World(client, stepgate, tools)


async def test_a_fork_takes_finished_reads_over_and_does_the_rest_again(
    tmp_path: Path, model_server: ScriptedServer
) -> None:
    async with world(tmp_path, model_server, *READS) as made:
        first = (await made.run())["metadata"]["run_id"]
        asked = len(model_server.purposes())
        forked = await made.fork(first, step="s2", args={"x": "in other words"})
        assert forked.status_code == 202, forked.text
        done = await made.wait(forked.json()["id"])
        events = (await made.client.get(f"/v1/runs/{done['id']}/events", headers={"accept": "application/json"})).json()
    assert done["status"] == "succeeded"
    assert done["forked_from"] == first
    assert made.counts() == {"look_up": 1, "describe": 2}
    assert made.tools["describe"].calls[1] == {"x": "in other words"}
    assert model_server.purposes()[asked:] == ["completion"], "nothing is planned anew"
    started = {e["step_id"]: e["data"]["taken_from"] for e in events["data"] if e["type"] == "step.started"}
    assert started["s1"] == first
    assert started["s2"] == ""
    taken = next(e for e in events["data"] if e["type"] == "step.judged" and e["step_id"] == "s1")
    assert f"taken over from {first}" in taken["data"]["verdict"]["reason"]
    assert done["response"]["response"] == "It is a screw."


async def test_a_given_output_replaces_the_call(tmp_path: Path, model_server: ScriptedServer) -> None:
    async with world(tmp_path, model_server, *READS) as made:
        first = (await made.run())["metadata"]["run_id"]
        forked = await made.fork(first, step="s1", output={"kind": "nut"})
        done = await made.wait(forked.json()["id"])
    assert done["status"] == "succeeded"
    assert made.counts() == {"look_up": 1, "describe": 2}
    assert made.tools["describe"].calls[1] == {"x": '{"kind": "nut"}'}


async def test_an_edited_plan_keeps_only_what_did_not_change(tmp_path: Path, model_server: ScriptedServer) -> None:
    async with world(tmp_path, model_server, *READS) as made:
        run = await made.run()
        plan = run["metadata"]["plan"]
        plan["steps"][1]["args"] = {"x": "the colour of ${s1}"}
        plan["steps"][1]["intent"] = "find the colour"
        forked = await made.fork(run["metadata"]["run_id"], plan=plan)
        assert forked.status_code == 202, forked.text
        done = await made.wait(forked.json()["id"])
    assert done["status"] == "succeeded"
    assert made.counts() == {"look_up": 1, "describe": 2}
    assert made.tools["describe"].calls[1] == {"x": "the colour of a screw of 5 mm"}
    assert done["plan"]["steps"][1]["intent"] == "find the colour"


async def test_an_edited_argument_drops_the_intent_that_was_written_for_the_old_one(
    tmp_path: Path, model_server: ScriptedServer
) -> None:
    model = plans({"tool": "look_up", "inputs": {"x": "part 7"}, "intent": "look up part 7"}, {"tool": "completion"})
    async with world(tmp_path, model_server, model, says("It is a screw.", to="completion")) as made:
        run = await made.run()
        assert run["metadata"]["plan"]["steps"][0]["intent"] == "look up part 7"
        forked = await made.fork(run["metadata"]["run_id"], step="s1", args={"x": "part 8"})
        done = await made.wait(forked.json()["id"])
    assert done["plan"]["steps"][0]["intent"] == "", "a judge would hold the new result against it"


async def test_an_effect_behind_the_edit_is_refused_kept_or_asked_for(
    tmp_path: Path, model_server: ScriptedServer
) -> None:
    async with world(tmp_path, model_server, *MODEL) as made:
        first = (await made.run())["metadata"]["run_id"]
        assert made.counts() == {"look_up": 1, "send_order": 1}
        refused = await made.fork(first, step="s1")
        assert refused.status_code == 409
        assert "s2 (send_order)" in refused.json()["error"]["message"]
        kept = await made.wait((await made.fork(first, step="s1", effects="keep")).json()["id"])
        assert kept["status"] == "succeeded"
        assert made.counts() == {"look_up": 2, "send_order": 1}
        note = next(v["verdict"]["reason"] for v in kept["verdicts"] if v["step_id"] == "s2")
        assert "although its input has changed" in note
        asked = await made.wait((await made.fork(first, step="s1", effects="ask")).json()["id"])
        assert asked["status"] == "awaiting_approval"
        assert made.counts()["send_order"] == 1
        await made.client.post(f"/v1/runs/{asked['id']}/approve", json={"approvals": ids_of(asked)})
        done = await made.wait(asked["id"])
    assert done["status"] == "succeeded"
    assert made.counts()["send_order"] == 2


async def test_a_fork_after_the_effect_takes_it_over_and_can_be_forked_again(
    tmp_path: Path, model_server: ScriptedServer
) -> None:
    async with world(tmp_path, model_server, *MODEL) as made:
        first = await made.run()
        answer = first["metadata"]["plan"]["steps"][-1]["id"]
        second = await made.wait((await made.fork(first["metadata"]["run_id"], step=answer)).json()["id"])
        third = await made.wait((await made.fork(second["id"], step=answer)).json()["id"])
        refused = await made.fork(third["id"], step="s2", args={"x": "two of them"})
    assert second["status"] == third["status"] == "succeeded"
    assert made.counts() == {"look_up": 1, "send_order": 1}
    assert refused.status_code == 409, "a result that was taken over is still an effect that happened"


@pytest.mark.parametrize(
    ("body", "status", "told"),
    [
        ({}, 400, "name the step"),
        ({"step": "s9"}, 400, "there is no step 's9'"),
        ({"step": "s2", "args": {"nothing": 1}}, 400, "unknown input 'nothing'"),
        ({"step": "s2", "plan": {"steps": []}}, 400, 'a list "steps"'),
        ({"plan": {"steps": [{"id": "s1", "tool": "fly"}]}}, 400, "neither a skill nor a tool here"),
        ({"step": "s1", "output": "x" * 20_000}, 413, "16,000 characters"),
        ({"step": "s1", "output": 1, "args": {}}, 400, "args or output"),
        ({"output": 1}, 400, "name it"),
        ({"step": "answer", "output": "Hello"}, 400, "cannot be given"),
        ({"step": "s1", "effects": "maybe"}, 400, "effects"),
        ({"stp": "s1"}, 400, "stp"),
    ],
)
async def test_forks_that_make_no_sense_say_why(
    tmp_path: Path, model_server: ScriptedServer, body: dict[str, Any], status: int, told: str
) -> None:
    async with world(tmp_path, model_server, *READS) as made:
        run = await made.run()
        if body.get("step") == "answer":
            body = {**body, "step": run["metadata"]["plan"]["steps"][-1]["id"]}
        refused = await made.fork(run["metadata"]["run_id"], **body)
        runs = (await made.client.get("/v1/runs")).json()["data"]
    assert refused.status_code == status, refused.text
    assert told in refused.json()["error"]["message"]
    assert len(runs) == 1, "nothing was started"


async def test_a_plan_of_ever_so_many_steps_is_refused_and_holds_up_nobody(
    tmp_path: Path, model_server: ScriptedServer
) -> None:
    """Each step waits for the one before it: sorted by looking at all of them again, 2,000 took half a minute."""
    chain = [{"id": f"s{n}", "tool": "describe", "depends_on": [f"s{n - 1}"] if n else []} for n in range(2_000)]
    async with world(tmp_path, model_server, *READS) as made:
        first = (await made.run())["metadata"]["run_id"]
        async with measuring_turns() as longest:
            for steps, status in ((chain, 413), (chain[:500], 400)):
                answer = await made.fork(first, plan={"steps": steps})
                assert answer.status_code == status, answer.text
                assert f"{len(steps):,} steps" in answer.text
    assert longest.seconds < MAX_TURN_S


async def test_a_waiting_run_cannot_be_forked(tmp_path: Path, model_server: ScriptedServer) -> None:
    async with world(tmp_path, model_server, *READS) as made:
        body = {"prompt": "order part 7", "metadata": {"approve_plan": True}}
        waiting = (await made.client.post("/v1/agent", json=body)).json()["metadata"]["run_id"]
        refused = await made.fork(waiting, step="s1")
    assert refused.status_code == 409
    assert "has not ended" in refused.json()["error"]["message"]


async def test_another_owners_run_does_not_exist_and_one_key_makes_one_fork(
    tmp_path: Path, model_server: ScriptedServer
) -> None:
    async with world(tmp_path, model_server, *READS) as made:
        run_id = (await made.run())["metadata"]["run_id"]
        url = f"/v1/runs/{run_id}/fork"
        answers = [
            await made.client.post(url, json={"step": "s2"}, headers={"idempotency-key": "once"}) for _ in range(2)
        ]
        absent = await made.fork("run_" + "0" * 32, step="s1")
        await made.wait(answers[0].json()["id"])
        runs = (await made.client.get("/v1/runs")).json()["data"]
    assert [answer.status_code for answer in answers] == [202, 202]
    assert answers[0].json()["id"] == answers[1].json()["id"]
    assert absent.status_code == 404
    assert len(runs) == 2


async def test_a_fork_by_another_owner_finds_no_run(tmp_path: Path, model_server: ScriptedServer) -> None:
    async with world(tmp_path, model_server, *READS) as made:
        run_id = (await made.run())["metadata"]["run_id"]
        with pytest.raises(NotFoundError):
            await made.stepgate.intake.accept(Principal("somebody"), ForkRequest(run_id, "s1"))
        forked = await made.fork(run_id, step="s1")
        await made.wait(forked.json()["id"])
    assert forked.status_code == 202


@pytest.mark.parametrize(
    ("scopes", "status"),
    [(("agent", "approve"), "succeeded"), (("agent",), "awaiting_approval"), (None, "awaiting_approval")],
    ids=["key that approves", "key", "no key"],
)
async def test_a_fork_adds_an_effect_unasked_only_for_who_may_approve(
    tmp_path: Path, model_server: ScriptedServer, scopes: tuple[str, ...] | None, status: str
) -> None:
    rooms = tmp_path / "rooms"
    rooms.mkdir()
    (rooms / "careful.yaml").write_text("approval: side_effects\nsupervision: checks\n")
    async with world(tmp_path, model_server, says("Done.", to="completion"), rooms_dir=rooms) as made:
        if scopes is not None:
            _, key = await made.stepgate.keys.create("local", "x", scopes)
            made.client.headers["authorization"] = f"Bearer {key}"
        calls = {"tool_calls": [{"tool": "look_up", "args": {"x": "part 7"}}]}
        first = (await made.client.post("/v1/agent", json={"metadata": calls, "room": "careful"})).json()
        run_id, plan = first["metadata"]["run_id"], first["metadata"]["plan"]
        plan["steps"].append({"id": "s9", "tool": "send_order", "args": {"x": "12"}})
        forked = await made.fork(run_id, plan=plan)
        assert forked.status_code == 202, forked.text
        done = await made.wait(forked.json()["id"])
    assert done["status"] == status
    assert made.counts().get("send_order", 0) == (status == "succeeded")


@pytest.mark.parametrize(
    ("scopes", "status"),
    [(("agent", "approve"), "complete"), (("agent",), "awaiting_approval"), (None, "awaiting_approval")],
    ids=["key that approves", "key", "no key"],
)
async def test_a_named_call_is_made_at_once_only_for_a_key_that_may_approve(
    tmp_path: Path, model_server: ScriptedServer, scopes: tuple[str, ...] | None, status: str
) -> None:
    rooms = tmp_path / "rooms"
    rooms.mkdir()
    (rooms / "careful.yaml").write_text("approval: side_effects\nsupervision: checks\n")
    async with world(tmp_path, model_server, says("Done.", to="completion"), rooms_dir=rooms) as made:
        if scopes is not None:
            _, key = await made.stepgate.keys.create("local", "x", scopes)
            made.client.headers["authorization"] = f"Bearer {key}"
        calls = {"tool_calls": [{"tool": "send_order", "args": {"x": "12"}}]}
        answer = (await made.client.post("/v1/agent", json={"metadata": calls, "room": "careful"})).json()
    assert answer["metadata"]["status"] == status
    assert made.counts().get("send_order", 0) == (status == "complete")
