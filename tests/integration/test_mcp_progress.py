"""How far a foreign tool is, told to who waits for the whole run: bounded, newest first, and never backwards."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from tests.integration.conftest import Serve
from tests.integration.test_mcp_content import ERAS, gateway
from tests.support.approvals import ids_of
from tests.support.mcp_client import offered
from tests.support.script import judges, plans, says, script

BACK = "srv__work: back again (0.5 of 3)"


class ProgressRecorder:
    """What a client was told, in order; the file `done` is made once `word` was among it."""

    def __init__(self, word: str, done: Path) -> None:
        self._word, self._done = word, done
        self.numbers: list[float] = []
        self.lines: list[str] = []
        self.totals: list[float | None] = []

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        self.numbers.append(progress)
        self.totals.append(total)
        self.lines.append(message or "")
        if self._word in (message or ""):
            self._done.touch()

    def check(self) -> None:
        """That it is as the protocol has it: a number that only grows, and a total that it does not exceed."""
        assert self.numbers == sorted(set(self.numbers)), self.numbers
        for number, total in zip(self.numbers, self.totals, strict=True):
            assert total is None or number < total
        planned = [total for line, total in zip(self.lines, self.totals, strict=True) if line.startswith("step ")]
        assert None not in planned


def working(*calls: dict[str, Any]) -> Any:
    """A model that has `work` done so often, at the same time, and says so."""
    steps = [{"tool": "srv__work", "inputs": inputs} for inputs in calls]
    done = says("Done.", to="completion", about="worked")
    return script(plans(*steps, {"tool": "completion"}), judges("SUCCESS"), done)


async def run(client: Client, heard: ProgressRecorder, name: str = "agent_run", **arguments: Any) -> Any:
    task = {"task": "search, then tell"} if name == "agent_run" else {}
    async with asyncio.timeout(60):
        return (await client.call_tool(name, {**task, **arguments}, progress_callback=heard)).structured_content


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcp_tools.server.progress.PROGRESS_INTERVAL_SECONDS", 0.05)


@pytest.mark.row("Scard-02")
@pytest.mark.parametrize("transport", ["stdio", "http"])
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.usefixtures("quick")
async def test_who_waits_for_a_run_hears_how_far_its_tool_is(
    tmp_path: Path, serve: Serve, transport: str, era: str
) -> None:
    done = tmp_path / "done"
    heard, model = ProgressRecorder(BACK, done), working({"count": 3, "until": str(done)})
    with offered("mcp_server_media", transport) as entry:
        async with gateway(tmp_path, serve, entry, era, script=model) as client:
            report = await run(client, heard)
            again = await client.read_resource(f"run://{report['run_id']}/steps")
    assert report["response"] == "Done."
    heard.check()
    assert [line for line in heard.lines if not line.startswith("srv__work: ")][:2] == [
        "plan: 2 steps",
        "step 1/2: srv__work",
    ]
    assert BACK in heard.lines
    (completion,) = [line for line in heard.lines if line.startswith("step 2/2: ")]
    assert heard.lines.index(BACK) < heard.lines.index(completion)
    assert "back again" not in json.dumps([getattr(one, "text", "") for one in again.contents]), "it is not kept"


async def test_a_flood_of_progress_is_one_line_in_a_while(
    tmp_path: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcp_tools.server.progress.PROGRESS_INTERVAL_SECONDS", 1_000.0)
    done = tmp_path / "done"
    heard, model = ProgressRecorder("srv__work: ", done), working({"count": 500, "until": str(done)})
    direct = ProgressRecorder("srv__work: ", done)
    with offered("mcp_server_media", "stdio") as entry:
        async with gateway(tmp_path, serve, entry, "legacy", script=model) as client:
            assert (await run(client, heard))["response"] == "Done."
            done.unlink()
            await client.call_tool("srv__work", {"count": 500, "until": str(done)}, progress_callback=direct)
    for one in (heard, direct):
        one.check()
        assert len([line for line in one.lines if line.startswith("srv__work: ")]) == 1


@pytest.mark.usefixtures("quick")
async def test_tools_at_work_side_by_side_are_told_in_one_row(tmp_path: Path, serve: Serve) -> None:
    done = tmp_path / "done"
    calls = [{"count": count, "until": str(done)} for count in (3, 4)]
    heard = ProgressRecorder("srv__work: ", done)
    with offered("mcp_server_media", "http") as entry:
        async with gateway(tmp_path, serve, entry, "legacy", script=working(*calls)) as client:
            assert (await run(client, heard))["response"] == "Done."
    heard.check()


@pytest.mark.usefixtures("quick")
async def test_a_run_that_went_on_after_an_approval_is_heard_too(tmp_path: Path, serve: Serve) -> None:
    done = tmp_path / "done"
    heard, model = ProgressRecorder(BACK, done), working({"count": 3, "until": str(done)})
    with offered("mcp_server_media", "stdio") as entry:
        async with gateway(tmp_path, serve, entry, "legacy", script=model) as client:
            waiting = await run(client, heard, approve_plan=True)
            assert waiting["status"] == "awaiting_approval"
            report = await run(
                client, heard, "run_respond", run_id=waiting["run_id"], approvals=ids_of(waiting), approve=True
            )
    assert report["response"] == "Done."
    assert BACK in heard.lines


@pytest.mark.usefixtures("quick")
async def test_progress_lets_no_secret_out(tmp_path: Path, serve: Serve) -> None:
    secret, done = "sk-of-the-gateway-0815-4711-0000", tmp_path / "done"
    call = {"count": 1, "until": str(done), "codes": [ord(char) for char in f"key {secret}"]}
    heard = ProgressRecorder("srv__work: key", done)
    with offered("mcp_server_media", "stdio") as entry:
        async with gateway(tmp_path, serve, entry, "legacy", llm_api_key=secret) as client:
            await client.call_tool("srv__work", call, progress_callback=heard)
    assert "srv__work: key [removed: CONFIGURED_SECRET] (0.5 of 1)" in heard.lines
