"""Several models or endpoints in order: what another one mends, what it does not, and where one sees it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from agent.core.errors import ConfigError
from agent.core.settings.loading import load_settings
from tests.integration.conftest import Serve
from tests.integration.test_openai_door import ASK, STEPS, sdk, user
from tests.support.script import Script, plans, says, script
from tests.support.scripted_server import ScriptedServer

KEY = "sk-backup-7c1f0a9e2b"


@pytest.fixture(scope="module")
def backup_server() -> Iterator[ScriptedServer]:
    """A second endpoint."""
    with ScriptedServer(Script()) as server:
        yield server


@pytest.fixture
def options(backup_server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Settings of a gateway with a second endpoint, whose model is asked after `small`."""
    monkeypatch.setenv("BACKUP_KEY", KEY)
    backup_server.load(script(plans(*STEPS), says("The other one: 42.", to="completion")))
    return {
        "model_fast": "small,spare@backup",
        "model_high": None,
        "model_endpoints": {"backup": {"base_url": backup_server.url, "key": "BACKUP_KEY"}},
    }


def failing(fault: Any, **reply: Any) -> Script:
    return script(says("Half of the text.", fault=fault, **reply))


async def fetch(url: str) -> str:
    async with httpx.AsyncClient(timeout=60) as client:
        return (await client.get(url)).text


async def ask(url: str, **body: Any) -> dict[str, Any]:
    async with httpx.AsyncClient(timeout=60) as client:
        sent = {"model": "chat", "messages": user(), **body}
        response = await client.post(f"{url}/v1/chat/completions", json=sent)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        ("status_401", "ERR_MODEL_AUTH"),
        ("status_429", "ERR_MODEL_RATE_LIMIT"),
        ("status_500", "ERR_MODEL_DOWN"),
        ("status_503", "ERR_MODEL_DOWN"),
        ("disconnect", "ERR_MODEL_DOWN"),
        ("hang", "ERR_MODEL_TIMEOUT"),
        ("garbage", "ERR_MODEL_OUTPUT"),
    ],
)
async def test_another_model_mends_an_endpoint_that_fails(
    serve: Serve, options: dict[str, Any], backup_server: ScriptedServer, fault: str, code: str
) -> None:
    async with serve(failing(fault, retry_after=30), llm_timeout_s=1, **options) as url:
        answer = await ask(url)
        metrics = await fetch(f"{url}/metrics")
    assert answer["choices"][0]["message"]["content"] == "The other one: 42."
    runtime = answer["stepgate"]["runtime"]
    assert runtime["failed_upstreams"] == [{"model": "small", "error_code": code}]
    assert runtime["answer"]["model"] == "spare@backup"
    (notice,) = [step for step in answer["steps"] if step["type"] == "notice"]
    assert notice["title"] == "small did not answer; spare@backup answered"
    assert f'stepgate_model_fallbacks_total{{error="{code}",model="small"}} 1.0' in metrics
    assert backup_server.requests()[-1]["body"]["model"] == "spare"


async def test_an_unreachable_endpoint_is_replaced_in_planning_too(serve: Serve, options: dict[str, Any]) -> None:
    options |= {"llm_base_url": "http://127.0.0.1:1/v1"}
    async with serve(**options) as url:
        answer = await ask(url, model="stepgate", messages=user(ASK))
        ready = json.loads(await fetch(f"{url}/ready"))
    assert answer["choices"][0]["message"]["content"] == "The other one: 42."
    assert answer["stepgate"]["runtime"]["planner"]["effective"] == "llm"
    assert ready["components"]["models"]["ok"] is True, "one endpoint that answers is enough"


@pytest.mark.parametrize(("fault", "status"), [("status_400", 400), ("context", 400)])
async def test_a_refused_request_is_not_sent_to_another(
    serve: Serve, options: dict[str, Any], backup_server: ScriptedServer, fault: str, status: int
) -> None:
    async with serve(failing(fault), **options) as url, sdk(url) as client:
        with pytest.raises(openai.APIStatusError) as caught:
            await client.chat.completions.create(model="chat", messages=user())
    assert caught.value.status_code == status
    assert backup_server.requests() == []


async def test_a_stream_that_has_begun_is_not_continued_by_another(
    serve: Serve, options: dict[str, Any], backup_server: ScriptedServer
) -> None:
    async with serve(failing("half_stream"), **options) as url, sdk(url) as client:
        with pytest.raises(openai.APIStatusError):
            await client.chat.completions.create(model="chat", messages=user())
    assert backup_server.requests() == []


async def test_an_upstream_that_keeps_failing_is_left_out(
    serve: Serve, options: dict[str, Any], model_server: ScriptedServer
) -> None:
    async with serve(failing("status_401"), **options) as url:
        await ask(url)
        again = await ask(url)
    assert len(model_server.requests()) == 1
    assert again["stepgate"]["runtime"]["failed_upstreams"] == [{"model": "small", "error_code": "skipped"}]


async def test_the_error_of_a_call_that_nobody_answers(
    serve: Serve, options: dict[str, Any], backup_server: ScriptedServer
) -> None:
    backup_server.load(failing("status_401"))
    async with serve(failing("status_429", retry_after=0), **options) as url, httpx.AsyncClient(timeout=60) as client:
        response = await client.post(f"{url}/v1/chat/completions", json={"model": "chat", "messages": user()})
        run_id = response.headers["x-stepgate-run-id"]
        run = (await client.get(f"{url}/v1/runs/{run_id}")).json()
    assert response.status_code == 429
    failed = run["response"]["metadata"]["runtime"]["failed_upstreams"]
    assert {"model": "spare@backup", "error_code": "ERR_MODEL_AUTH"} in [*failed] or {
        "model": "spare@backup",
        "error_code": "skipped",
    } in failed
    assert KEY not in response.text


async def test_the_key_goes_to_its_own_endpoint_and_into_no_answer(
    serve: Serve, options: dict[str, Any], backup_server: ScriptedServer
) -> None:
    backup_server.load(script(says(f"The key is {KEY}.", to="completion")))
    async with serve(failing("status_500"), **options) as url:
        answer = await ask(url, messages=user(f"Is it {KEY}?"))
    assert KEY not in str(answer)
    assert KEY not in str(backup_server.requests()[-1]["body"])


async def test_a_room_may_have_a_list_of_its_own_and_a_version_in_a_name(
    serve: Serve, options: dict[str, Any], model_server: ScriptedServer, tmp_path: Path
) -> None:
    (tmp_path / "rooms").mkdir()
    (tmp_path / "rooms" / "own.yaml").write_text("id: own\nplanning: false\nfast_model: spare@backup, old@20240620\n")
    async with serve(script(says("Hi.", to="completion")), rooms_dir=tmp_path / "rooms", **options) as url:
        first = await ask(url, model="own")
        (tmp_path / "rooms" / "own.yaml").unlink()
    assert first["choices"][0]["message"]["content"] == "The other one: 42."
    assert model_server.requests() == []
    (tmp_path / "rooms" / "own.yaml").write_text("id: own\nplanning: false\nfast_model: old@20240620\n")
    async with serve(script(says("Hi.", to="completion")), rooms_dir=tmp_path / "rooms", **options) as url:
        await ask(url, model="own")
    assert model_server.requests()[-1]["body"]["model"] == "old@20240620"


async def test_cache_markers_are_sent_where_the_operator_wants_them(
    serve: Serve, options: dict[str, Any], backup_server: ScriptedServer
) -> None:
    options["model_fast"] = "spare@backup"
    options["model_endpoints"]["backup"]["cache_markers"] = True
    async with serve(script(), **options) as url:
        await ask(url, messages=[{"role": "system", "content": "Be brief."}, *user()])
    system, asked = backup_server.requests()[-1]["body"]["messages"]
    assert system["content"] == [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}]
    assert asked["content"] == ASK


@pytest.mark.parametrize(
    ("endpoints", "told"),
    [
        ({"b": {"base_url": "ftp://x"}}, "http://"),
        ({"b": {"base_url": "http://x", "key": "NO_SUCH_KEY_7"}}, "NO_SUCH_KEY_7"),
        ({"B!": {"base_url": "http://x"}}, "must consist of"),
        ({"b": {"base_url": "http://x", "secret": KEY}}, "b.secret"),
        ({"b": {"base_url": "http://x", "api_key": KEY}}, "'key'"),
    ],
)
def test_a_wrong_endpoint_is_told_at_the_start(endpoints: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match="AGENT_MODEL_ENDPOINTS") as caught:
        load_settings(_env_file=None, model_endpoints=endpoints)
    assert told in caught.value.message
    assert KEY not in caught.value.message
