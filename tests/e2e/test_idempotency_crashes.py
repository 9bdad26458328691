"""A request under an `Idempotency-Key` whose process is killed: its run continues, and a repeated request gets
that run's answer, never a second run."""

import json
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.processes import DEADLINE_S, GatewayProcess
from tests.support.script import Rule, plans, says, script
from tests.support.scripted_server import ScriptedServer

KEY = {"idempotency-key": "order-17"}
AGENT: tuple[str, dict[str, Any]] = ("/v1/agent", {"prompt": "search and compute"})
CHAT: tuple[str, dict[str, Any]] = (
    "/v1/chat/completions",
    {"model": "stepgate", "messages": [{"role": "user", "content": "search and compute"}]},
)
STREAM = (CHAT[0], {**CHAT[1], "stream": True})
QUERY: tuple[str, dict[str, Any]] = (
    "/query",
    {"user_message": "search and compute", "session_id": "s", "user_id": "u", "room": "stepgate"},
)
RULES: tuple[Rule, ...] = (
    plans({"tool": "calculator", "inputs": {"expression": "2*21"}}, {"tool": "completion"}),
    says("Never sent.", to="completion", fault="hang", times=1),
    says("It is 42.", to="completion"),
)


def kill_during(folder: Path, model: ScriptedServer, door: tuple[str, dict[str, Any]]) -> str:
    """Send a request, and kill its gateway while a model is asked; the id of the run it had begun."""
    with (
        GatewayProcess(folder, llm_base_url=model.url, model_fast="scripted") as first,
        ThreadPoolExecutor(1) as clients,
    ):
        sent = clients.submit(httpx.post, f"{first.url}{door[0]}", json=door[1], headers=KEY, timeout=DEADLINE_S)
        model.wait_for("completion")
        (run,) = httpx.get(f"{first.url}/v1/runs", timeout=DEADLINE_S).json()["data"]
        first.process.kill()
        assert isinstance(sent.exception(DEADLINE_S), httpx.TransportError)
    return str(run["id"])


def send_again(url: str, door: tuple[str, dict[str, Any]]) -> httpx.Response:
    """Repeats the request until the first one is no longer in progress."""
    until = time.monotonic() + DEADLINE_S
    while True:
        answer = httpx.post(f"{url}{door[0]}", json=door[1], headers=KEY, timeout=DEADLINE_S)
        if answer.status_code != 409 or time.monotonic() > until:
            return answer


def answer_text(answer: httpx.Response) -> str:
    """The answer's text, whichever door gave it."""
    if "event-stream" not in answer.headers["content-type"]:
        body = answer.json()
        if "final_response" in body:
            return str(body["final_response"]["content"])
        return str(body["choices"][0]["message"]["content"] if "choices" in body else body["response"])
    lines = [line.removeprefix("data: ") for line in answer.text.splitlines() if line.startswith("data: {")]
    choices = [choice for line in lines for choice in json.loads(line)["choices"]]
    return "".join(choice["delta"].get("content") or "" for choice in choices)


@pytest.mark.parametrize("door", [AGENT, CHAT, STREAM, QUERY], ids=["agent", "chat", "stream", "query"])
def test_what_was_sent_before_a_crash_is_answered_after_it_and_not_begun_again(
    tmp_path: Path, door: tuple[str, dict[str, Any]]
) -> None:
    with ScriptedServer(script(*RULES)) as model:
        run_id = kill_during(tmp_path, model, door)
        with GatewayProcess(tmp_path, llm_base_url=model.url, model_fast="scripted") as second:
            answer = send_again(second.url, door)
            runs = httpx.get(f"{second.url}/v1/runs", timeout=DEADLINE_S).json()["data"]
            third = httpx.post(f"{second.url}{door[0]}", json=door[1], headers=KEY, timeout=DEADLINE_S)
    assert answer.status_code == 200, answer.text
    assert answer.headers["x-stepgate-run-id"] == run_id
    assert answer_text(answer) == "It is 42."
    assert [run["id"] for run in runs] == [run_id]
    assert third.status_code == (409 if door is STREAM else 200)
    assert run_id in third.text or third.headers["x-stepgate-run-id"] == run_id


def test_a_run_that_goes_on_is_named_to_who_asks_again(tmp_path: Path) -> None:
    hangs = (RULES[0], says("Never sent.", to="completion", fault="hang"))
    with ScriptedServer(script(*hangs)) as model:
        run_id = kill_during(tmp_path, model, AGENT)
        with GatewayProcess(tmp_path, llm_base_url=model.url, model_fast="scripted") as second:
            answer = httpx.post(f"{second.url}{AGENT[0]}", json=AGENT[1], headers=KEY, timeout=DEADLINE_S)
    assert answer.status_code == 409
    assert f"/v1/runs/{run_id}" in answer.json()["error"]["message"]


def test_however_late_it_is_sent_again_its_run_is_the_only_one(tmp_path: Path) -> None:
    with ScriptedServer(script(*RULES)) as model:
        run_id = kill_during(tmp_path, model, AGENT)
        with sqlite3.connect(tmp_path / "stepgate.db") as store:
            store.execute("UPDATE idempotency SET at = at - 3600")
        store.close()
        with GatewayProcess(tmp_path, llm_base_url=model.url, model_fast="scripted") as second:
            answer = send_again(second.url, AGENT)
            runs = httpx.get(f"{second.url}/v1/runs", timeout=DEADLINE_S).json()["data"]
    assert answer.headers["x-stepgate-run-id"] == run_id
    assert len(runs) == 1
