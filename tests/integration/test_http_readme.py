"""What the README and the page of the agent API tell people to send works as written, on a fresh gateway."""

import asyncio
import json
import re
import sys

import httpx

from agent.core.models import MODEL_OPTIONS, AgentRequest
from gateway.doors.openai_wire import ChatCompletionRequest
from tests.integration.conftest import Serve
from tests.support.processes import ROOT

README = (ROOT / "README.md").read_text("utf-8")
AGENT_PAGE = (ROOT / "docs" / "agent.md").read_text("utf-8")
IDE_PAGE = (ROOT / "docs" / "ides" / "README.md").read_text("utf-8")
HERE = "http://127.0.0.1:8010"


async def test_every_curl_gets_its_answer(serve: Serve) -> None:
    calls = re.findall(
        rf"curl -s {HERE}(\S+) -H 'content-type: application/json' -d '(.*?)'", README + AGENT_PAGE, re.DOTALL
    )
    assert {path for path, _ in calls} == {"/v1/chat/completions", "/v1/agent"}
    async with serve() as url, httpx.AsyncClient(timeout=30) as client:
        for path, body in calls:
            response = await client.post(f"{url}{path}", json=json.loads(body))
            assert response.status_code == 200, response.text
            answer = response.json()
            text = answer["response"] if path == "/v1/agent" else answer["choices"][0]["message"]["content"]
            assert "Europe/Stockholm" in text
            assert answer["metadata"]["status"] == "complete"


async def test_the_sdk_example_runs_and_prints_the_steps(serve: Serve) -> None:
    (program,) = re.findall(r"```python\n(from openai.*?)```", README, re.DOTALL)
    async with serve() as url:
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-c", program.replace(HERE, url), stdout=asyncio.subprocess.PIPE
        )
        async with asyncio.timeout(60):
            output, _ = await child.communicate()
    assert child.returncode == 0
    assert "17.5 * 240 = 4200" in output.decode()
    assert "step calculator done" in output.decode()


def test_the_table_of_the_body_names_every_field_and_only_those() -> None:
    (table,) = re.findall(r"\| field \| meaning \|\n(.*?)\n\n", AGENT_PAGE, re.DOTALL)
    named = {name for line in table.splitlines() for name in re.findall(r"`(\w+)[`.]", line.split("|")[1])}
    assert named == set(AgentRequest.model_fields)


def test_the_ides_example_is_json_with_absolute_paths() -> None:
    (example,) = re.findall(r"```json\n(.*?)```", IDE_PAGE, re.DOTALL)
    server = json.loads(example)["mcpServers"]["stepgate"]
    assert server["command"].startswith("/")
    assert server["env"]["AGENT_DATA_DIR"].startswith("/")


def test_the_page_of_the_openai_door_names_every_parameter() -> None:
    table, *_ = re.findall(r"(\| parameter \| .*?)\n\n", (ROOT / "docs" / "openai.md").read_text("utf-8"), re.DOTALL)
    named = {name for line in table.splitlines() for name in re.findall(r"`(\w+)", line.split("|")[1])}
    assert named >= {*ChatCompletionRequest.model_fields, *MODEL_OPTIONS}
