"""The evaluation end to end: worlds with gateways, Inspect's log, the degraded model, and `stepgate eval`.

The model is scripted: these tests are about the machinery, and say nothing about how well a real model does.
"""

import json
import re
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from inspect_ai.hooks import _hooks
from inspect_ai.log import EvalError, EvalLog, EvalSample, read_eval_log
from inspect_ai.log._samples import sample_active
from typer.testing import CliRunner

from agent.core.errors import ConfigError
from agent.core.extras import EXTRAS, Extra
from agent.core.settings import Settings
from gateway.cli import app
from gateway.features.evaluation import world
from gateway.features.evaluation.degraded import DegradedModel, serve_degraded, serve_degraded_in_thread
from gateway.features.evaluation.inspect_tasks import read_results, run_evaluation
from gateway.features.evaluation.report import ERROR_STATUS, HIDDEN, Report, TaskResult, read_baseline, write_baseline
from gateway.features.evaluation.task_files import select_tasks
from gateway.features.evaluation.task_sets import HELD_OUT
from gateway.features.evaluation.world import list_settings, open_world
from tests.support import warm
from tests.support.processes import start
from tests.support.reference_model import ReferenceModel
from tests.support.script import says, script
from tests.support.scripted_server import ScriptedServer

pytestmark = [
    # Inspect's own: an argument that tenacity renamed.
    pytest.mark.filterwarnings("ignore:The 'initial' parameter is deprecated:DeprecationWarning"),
]
COMMAND_SECONDS = 120
SECRET = "sk-evaluated-key-4f1b9c"
PLAN = json.dumps({"goal": "g", "steps": [{"id": "s1", "tool": "calculator", "inputs": []}]})


@pytest.fixture(autouse=True)
def warm_gateways(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gateways of worlds begin with their imports done; those that `stepgate eval` starts do not."""
    monkeypatch.setattr(world, "GATEWAY_COMMAND", warm.LazyCommand("gateway.cli", "serve"))


@pytest.fixture(autouse=True)
def close_event_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    """Inspect closes only the sending end of a sample's events. The garbage collector would find the receiving end at
    any time later, and the `ResourceWarning` would fail whichever test runs then."""
    drain = _hooks.drain_sample_events

    async def drain_and_close() -> None:
        sample = sample_active()
        receiving = sample.event_receive if sample is not None else None
        await drain()
        if receiving is not None:
            receiving.close()

    monkeypatch.setattr(_hooks, "drain_sample_events", drain_and_close)


@pytest.fixture(scope="module")
def reference() -> Iterator[ReferenceModel]:
    with ReferenceModel() as model:
        yield model


def list_reference_settings(url: str) -> dict[str, str]:
    return {
        "AGENT_LLM_BASE_URL": url,
        "AGENT_LLM_API_KEY": SECRET,
        "AGENT_MODEL_FAST": "reference",
        "AGENT_TRANSLATE": "off",
        "AGENT_MODEL_PROFILE": "capable",
    }


def test_tasks_are_run_in_their_worlds_and_graded_in_the_log_of_inspect(
    reference: ReferenceModel, tmp_path: Path
) -> None:
    ids = ["chain-file-to-file", "approval-delete"]
    log = run_evaluation(select_tasks(ids=ids), list_reference_settings(reference.url), log_dir=tmp_path, parallel=2)
    results = {result.id: result for result in read_results(log)}
    assert {name: result.failures for name, result in results.items() if result.failures} == {}
    assert results["chain-file-to-file"].calls == 3
    assert results["chain-file-to-file"].model_calls >= 2
    assert results["chain-file-to-file"].tokens > 100
    assert results["chain-file-to-file"].status == "succeeded"

    stored = read_eval_log(log.location)
    samples = {str(sample.id): sample for sample in stored.samples or ()}
    trace = samples["chain-file-to-file"].metadata["outcome"]["trace"]
    assert [line["title"] for line in trace["steps"] if line["type"] == "tool"] == [
        "read_file", "calculator", "office__write_file",
    ]  # fmt: skip
    assert samples["approval-delete"].metadata["outcome"]["approvals"] == 1
    assert samples["chain-file-to-file"].model_usage["stepgate/stepgate"].total_tokens > 100
    assert SECRET not in read_log_bytes(log.location), "logs are shared"


def read_log_bytes(location: str) -> str:
    """All parts of a log, unpacked."""
    with zipfile.ZipFile(location.removeprefix("file://")) as log:
        return "\n".join(log.read(name).decode("utf-8") for name in log.namelist())


@pytest.mark.long
def test_tasks_of_the_held_out_set_are_run_in_their_own_worlds(reference: ReferenceModel, tmp_path: Path) -> None:
    ids = ["approval-gate-mail", "chain-shade-delivery", "single-ferry-van"]
    tasks = select_tasks(ids=ids, set_name=HELD_OUT)
    log = run_evaluation(tasks, list_reference_settings(reference.url), log_dir=tmp_path, parallel=2)
    assert {result.id: result.failures for result in read_results(log)} == dict.fromkeys(ids, ())


def test_a_gateway_that_does_not_start_is_an_error_and_not_a_wrong_answer(tmp_path: Path) -> None:
    tasks = select_tasks(ids=["single-product"])
    settings = {"AGENT_LOG_LEVEL": "loud", "AGENT_LLM_API_KEY": SECRET}
    log = run_evaluation(tasks, settings, log_dir=tmp_path, parallel=1)
    [result] = read_results(log)
    assert result.status == "error"
    assert "the gateway of the evaluation did not start" in result.failures[0]
    assert SECRET not in read_log_bytes(log.location)


def test_an_error_without_a_message_is_a_result_too() -> None:
    error = EvalError(message="", traceback="", traceback_ansi="")
    sample = EvalSample(id="t", epoch=1, input="", target="", metadata={"family": "f"}, error=error)
    fields: Any = {"samples": [sample]}
    [result] = read_results(EvalLog.model_construct(**fields))
    assert (result.status, result.failures) == (
        ERROR_STATUS,
        ("an error without a message; the log has its trace",),
    )


def test_settings_are_passed_on_but_for_those_of_the_world(tmp_path: Path) -> None:
    settings = Settings(
        _env_file=None, llm_base_url="http://127.0.0.1:9/v1", llm_api_key="sk-1", model_fast="m", data_dir=tmp_path,
        model_prices={"m": (1.0, 2.0)}, port=1,
    )  # fmt: skip
    passed = list_settings(settings)
    assert {name for name in passed if name.endswith(("DATA_DIR", "PORT"))} == set()
    assert passed["AGENT_LLM_API_KEY"] == "sk-1"
    assert json.loads(passed["AGENT_MODEL_PRICES"]) == {"m": [1.0, 2.0]}


async def test_a_world_is_gone_afterwards() -> None:
    [task] = select_tasks(ids=["single-web-page"])
    async with open_world(task, {}) as made, httpx.AsyncClient() as client:
        page = await client.get(made.fill_in("{site}/prices.html"))
        assert "Year pass" in page.text
        assert (await client.get(f"{made.url}/health")).is_success
    assert not made.folder.exists()
    async with httpx.AsyncClient() as client:
        for address in (made.url, made.site_url):
            with pytest.raises(httpx.ConnectError):
                await client.get(address)


async def test_the_degraded_model_damages_whole_and_streamed_replies(model_server: ScriptedServer) -> None:
    model_server.load(script(says(PLAN)))
    model = DegradedModel(model_server.url, 1.0, kinds=["wrap_in_prose"])
    async with serve_degraded(model) as url, openai.AsyncOpenAI(base_url=url, api_key="none") as client:
        assert [card.id async for card in client.models.list()] == ["scripted"]
        asked = openai.types.chat.ChatCompletionUserMessageParam(role="user", content="plan")
        whole = await client.chat.completions.create(model="m", messages=[asked])
        stream = await client.chat.completions.create(model="m", messages=[asked], stream=True)
        text = "".join([chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices])
        async with httpx.AsyncClient() as http:
            report = (await http.get(url.replace("/v1", "/_damage"))).json()
    assert whole.choices[0].message.content == text
    assert PLAN in text
    assert not text.startswith("{")
    assert report == {"rate": 1.0, "seed": 0, "counts": {"replies": 2, "wrap_in_prose": 2}}


async def test_the_degraded_model_passes_errors_on(model_server: ScriptedServer) -> None:
    model_server.load(script(says(fault="status_400")))
    async with serve_degraded(DegradedModel(model_server.url, 1.0)) as url, httpx.AsyncClient() as client:
        response = await client.post(f"{url}/chat/completions", json={"model": "m", "messages": []})
    assert response.status_code == 400
    assert "error" in response.json()


def test_the_gateway_survives_replies_that_are_all_damaged(reference: ReferenceModel, tmp_path: Path) -> None:
    model = DegradedModel(reference.url, 1.0, kinds=["wrap_in_prose"])
    with serve_degraded_in_thread(model) as url:
        tasks = select_tasks(ids=["chain-pointer-file"])
        log = run_evaluation(tasks, list_reference_settings(url), log_dir=tmp_path, parallel=1)
    [result] = read_results(log)
    assert result.failures == ()
    assert model.counts["wrap_in_prose"] >= 1


def test_the_command_compares_with_a_baseline_and_keeps_a_new_one(tmp_path: Path) -> None:
    earlier, kept = tmp_path / "earlier.json", tmp_path / "kept.json"
    known = [TaskResult(id=task, family="f", is_right=True) for task in ("follow-up-number", "not-run-now")]
    write_baseline(earlier, Report(results=tuple(known)))
    command = start(
        [sys.executable, "-m", "gateway.cli", "eval", "--task", "follow-up-number",
         "--log-dir", str(tmp_path), "--baseline", str(kept), "--compare", str(earlier)],
        cwd=tmp_path,
        environment={"PYTHONPATH": str(Path(__file__).resolve().parents[2])},
    )  # fmt: skip
    assert command.wait(COMMAND_SECONDS) == 1, "without a model the follow-up is not understood any more"
    output = "\n".join(command.output)
    assert re.search(r"\| all +\| 0 of 1 \|", output), output
    assert "0 of 1 tasks are right; 1 were in the baseline" in output
    assert "no longer right: follow-up-number" in output
    assert [(result.id, result.is_right) for result in read_baseline(kept).results] == [("follow-up-number", False)]


def test_the_command_does_not_report_which_checks_of_the_held_out_set_failed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Without a model the discount is not taken off."""
    monkeypatch.chdir(tmp_path)
    kept = tmp_path / "kept.json"
    words = ["--set", "held-out", "--task", "follow-up-discount", "--log-dir", str(tmp_path), "--baseline", str(kept)]
    command = CliRunner().invoke(app, ["eval", *words])
    assert command.exit_code == 0, command.output
    output = command.output
    assert re.search(r"\| all +\| 0 of 1 \|", output), output
    assert f"follow-up-discount: {HIDDEN}" in output
    assert "1296" not in output
    stored = read_baseline(kept)
    assert (stored.about["set"], stored.results[0].failures) == ("held-out", (HIDDEN,))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--damage", "0.5"], "set AGENT_LLM_BASE_URL"),
        (["--damage-kind", "typo"], "'typo' is unknown"),
        (["--family", "nothing"], "no task or family 'nothing'"),
        (["--compare", "missing.json"], "cannot be read"),
        (["--set", "secret"], "the sets are development, held-out"),
        (["--set", "held-out", "--task", "single-product"], "no task or family 'single-product'"),
    ],
)
def test_the_command_refuses_what_it_cannot_do(
    arguments: list[str], message: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("AGENT_LLM_BASE_URL", raising=False)
    error = CliRunner().invoke(app, ["eval", *arguments]).exception
    assert isinstance(error, ConfigError)
    assert message in error.message


def test_a_baseline_of_other_tasks_is_refused_before_the_first_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    write_baseline(tmp_path / "other.json", Report(results=(TaskResult(id="other", family="f", is_right=True),)))
    error = CliRunner().invoke(app, ["eval", "--task", "follow-up-number", "--compare", "other.json"]).exception
    assert isinstance(error, ConfigError)
    assert "other.json has none of the chosen tasks" in error.message


def test_the_command_names_the_extra_that_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(EXTRAS, "eval", Extra(("no_such_module",), "", pip=EXTRAS["eval"].pip))
    error = CliRunner().invoke(app, ["eval"]).exception
    assert isinstance(error, ConfigError)
    assert "needs the extra `eval`" in error.message
    assert "gateway/features/evaluation/requirements.lock" in error.message


@pytest.mark.long
def test_an_interrupted_evaluation_goes_on_and_what_stands_beside_it_is_in_the_table(
    reference: ReferenceModel, tmp_path: Path
) -> None:
    kept = tmp_path / "progress.jsonl"
    environment = {**list_reference_settings(reference.url), "AGENT_DATA_DIR": str(tmp_path / "data")}
    words = ["--task", "single-product", "--beside", "rules", "--beside", "model", "--resume", str(kept)]
    done = start([sys.executable, "-m", "gateway.cli", "eval", *words], environment=environment)
    assert done.wait(COMMAND_SECONDS) == 0, done.output
    output = "\n".join(done.output)
    assert re.search(r"\| family\s+\| gateway\s+\|\s+rules\s+\|\s+model\s+\|", output), output
    assert re.search(r"\| all +\|.*1 of 1", output)
    lines = [json.loads(line) for line in kept.read_text().splitlines()]
    assert [line.get("answerer") for line in lines] == [None, "gateway", "rules", "model"]
    assert lines[2]["result"]["model_calls"] == 0, "rules have no model"
    assert lines[3]["result"]["calls"] == 0, "the model alone has no tools"

    gone = {**environment, "AGENT_LLM_BASE_URL": "http://127.0.0.1:9/v1"}
    again = start([sys.executable, "-m", "gateway.cli", "eval", *words], environment=gone)
    assert again.wait(COMMAND_SECONDS) == 0, again.output
    assert [json.loads(line) for line in kept.read_text().splitlines()] == lines, "nothing is asked again"
