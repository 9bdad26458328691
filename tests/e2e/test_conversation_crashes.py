"""`kill -9` of the gateway while a sub-agent of a conversation works: it goes on, with what was found kept apart."""

from pathlib import Path
from time import monotonic
from typing import Any

import httpx
import pytest

from tests.support.processes import DEADLINE_S, GatewayProcess
from tests.support.talks import API, papers

INDEX = "Help me index these research papers"
SETTINGS = {"conversations_require_llm": "false"}


def start_conversation(gateway: GatewayProcess, folder: Path) -> str:
    """A conversation about the folder."""
    source = httpx.post(f"{gateway.url}/v1/sources", json={"source_identifier": str(folder)}, timeout=30).json()
    made: dict[str, Any] = httpx.post(f"{gateway.url}{API}", json={"source_id": source["id"]}, timeout=30).json()
    return str(made["id"])


def kill_at(gateway: GatewayProcess, conversation: str, message: str, agent: str) -> None:
    """Say something, and kill the gateway once this sub-agent has begun to work."""
    path = f"{gateway.url}{API}/{conversation}/messages"
    with httpx.stream("POST", path, json={"message": message}, timeout=60) as response:
        assert response.status_code == 200
        for line in response.iter_lines():
            if f'"agent": "{agent}", "status": "working"' in line:
                gateway.process.kill()
                return
    raise AssertionError(f"{agent} never worked")


def wait_until_idle(gateway: GatewayProcess, conversation: str) -> dict[str, Any]:
    """The conversation once nothing is under way."""
    until = monotonic() + DEADLINE_S
    while monotonic() < until:
        known: dict[str, Any] = httpx.get(f"{gateway.url}{API}/{conversation}", timeout=30).json()
        if known["run_id"] is None:
            return known
        httpx.get(f"{gateway.url}/v1/runs/{known['run_id']}/events", timeout=60)
    raise AssertionError("the message is still being answered")


def size(known: dict[str, Any]) -> int:
    """How long the proposed passages may be."""
    (chunker,) = [node for node in known["current_pipeline"]["nodes"] if node["kind"] == "chunker"]
    return int(chunker["options"]["size"])


@pytest.mark.row("S000-17", "S000-27")
@pytest.mark.parametrize("agent", ["source_analyzer", "pipeline_validator"])
def test_what_one_sub_agent_found_is_not_taken_for_what_another_did(tmp_path: Path, agent: str) -> None:
    folder = papers(tmp_path, 40)
    with GatewayProcess(tmp_path, **SETTINGS) as first:
        mine = start_conversation(first, folder)
        kill_at(first, mine, INDEX, agent)
    with GatewayProcess(tmp_path, **SETTINGS) as second:
        known = wait_until_idle(second, mine)
        assert known["source_analysis"]["total_files"] == 40
        assert (known["validation"]["files_tested"], known["validation"]["success_rate"]) == (40, 1.0)
        assert known["current_pipeline"]["template"] == "reports"
        spoken = [one["content"] for one in known["messages"] if one["role"] in ("user", "assistant")]
        assert spoken[0] == INDEX
        assert "100 % of 40 files are read" in spoken[1]
        assert len(spoken) == 2


def test_a_wish_that_was_interrupted_is_fulfilled_once(tmp_path: Path) -> None:
    folder = papers(tmp_path, 40)
    with GatewayProcess(tmp_path, **SETTINGS) as first:
        mine = start_conversation(first, folder)
        path = f"{first.url}{API}/{mine}/messages"
        assert httpx.post(path, json={"message": INDEX, "stream": False}, timeout=60).status_code == 200
        assert size(httpx.get(f"{first.url}{API}/{mine}", timeout=30).json()) == 1600
        kill_at(first, mine, "set chunk_size 800", "pipeline_validator")
    with GatewayProcess(tmp_path, **SETTINGS) as second:
        known = wait_until_idle(second, mine)
        assert size(known) == 800
        assert known["validation"]["success_rate"] == 1.0
