"""What the engine relies on holds with a real model: `make check-model` runs this, `make test` does not.

The endpoint is that of AGENT_LLM_BASE_URL, the model AGENT_MODEL_FAST or the endpoint's first one.
"""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
import yaml

from agent.core.models import JsonObject, Room
from agent.core.settings import Settings
from agent.llm.http import HttpModelClient
from agent.llm.port import ModelRequest
from agent.planning.request import NOTHING, PlanningRequest
from agent.planning.rounds.tool_need import ask_need
from agent.tools.catalogue import Catalogue
from gateway.model_probe import PROBE_TASKS, AskedModel, ModelProbe, build_record
from gateway.model_probe.report import format_record
from tests.support.serving import serving

pytestmark = pytest.mark.model
SECONDS = 300
README_EXAMPLE = "What is 17.5 * 240, and what time is it in Stockholm?"


@pytest.fixture
def url() -> str:
    address = os.environ.get("AGENT_LLM_BASE_URL")
    if not address:
        pytest.fail("set AGENT_LLM_BASE_URL to an endpoint with a real model (docs/local-models.md)")
    return address


@pytest.fixture
async def client(url: str) -> AsyncIterator[HttpModelClient]:
    client = HttpModelClient(url)
    yield client
    await client.aclose()


@pytest.fixture
async def model(client: HttpModelClient) -> str:
    return os.environ.get("AGENT_MODEL_FAST") or (await client.list_models())[0]


def ask(model: str, text: str, tokens: int = 20) -> ModelRequest:
    message: tuple[JsonObject, ...] = ({"role": "user", "content": text},)
    return ModelRequest(model, message, "probe", temperature=0.0, max_tokens=tokens, timeout_s=SECONDS)


async def test_whole_and_streamed_calls_alternate_on_one_client(client: HttpModelClient, model: str) -> None:
    for _ in range(3):
        chunks = [chunk async for chunk in client.stream(ask(model, "Say hello."))]
        assert "".join(chunk.text for chunk in chunks).strip()
        assert any(chunk.usage for chunk in chunks)
        reply = await client.complete(ask(model, "Say hello."))
        assert reply.text.strip()
        assert reply.usage.completion_tokens <= 20


async def test_the_beginning_of_a_prompt_that_was_read_before_comes_from_the_cache(
    client: HttpModelClient, model: str
) -> None:
    text = "These are the rules of the house: be kind, be brief, be true. " * 20
    await client.complete(ask(model, text + "Say yes."))
    again = await client.complete(ask(model, text + "Say no."))
    if again.usage.cached_tokens == 0:
        pytest.skip("this endpoint does not tell what was in its cache")
    assert again.usage.cached_tokens > again.usage.prompt_tokens / 2


async def test_the_probe_measures_the_model(client: HttpModelClient, model: str) -> None:
    probe = ModelProbe(AskedModel(client, model, timeout_s=SECONDS))
    await probe.run(seconds=1200)
    record = build_record(probe, model=model, base_url="", fingerprint="", context_tokens=None, at=0.0)
    print(format_record(record))
    assert len(probe.outcomes) == len(PROBE_TASKS)
    assert record.takes_schema, "the planner relies on it; other endpoints get the lenient reader"
    assert record.counts["rounds"].right >= 4
    assert record.longest_catalogue == 40
    assert record.tokens_per_s > 0


async def test_the_first_example_of_the_readme_is_right(url: str, model: str, tmp_path: Path) -> None:
    settings = Settings(
        _env_file=None, data_dir=tmp_path, port=0, llm_base_url=url, model_fast=model, llm_timeout_s=SECONDS,
        model_profile="auto", model_probe="off", skills_dirs=(),
    )  # fmt: skip
    async with serving(settings) as gateway, httpx.AsyncClient(base_url=gateway, timeout=SECONDS) as http:
        answer = (await http.post("/v1/agent", json={"prompt": README_EXAMPLE})).json()
    assert "4200" in answer["response"].replace(",", ""), answer["response"]
    tools = [result["tool"] for result in answer["metadata"]["tool_results"]]
    assert {"calculator", "current_time"} <= {*tools}


@pytest.mark.parametrize(("kind", "most_wrong"), [("writing", 2), ("looking", 5)])
async def test_what_turns_need_that_name_files_and_addresses(
    client: HttpModelClient, model: str, kind: str, most_wrong: int
) -> None:
    turns = yaml.safe_load(Path(__file__).with_name("turns.yaml").read_text("utf-8"))[kind]
    asked = AskedModel(client, model, timeout_s=SECONDS)
    requests = [PlanningRequest(turn, Room(id="test"), Catalogue()) for turn in turns]
    needs = [await ask_need(asked, request, ()) for request in requests]
    wrong = [(turn, need) for turn, need in zip(turns, needs, strict=True) if (need == NOTHING) != (kind == "writing")]
    print(f"{kind}: {len(turns) - len(wrong)} of {len(turns)} right; wrong: {wrong}")
    assert len(wrong) <= most_wrong
