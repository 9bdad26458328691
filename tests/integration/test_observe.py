"""What operators see: metrics from the runs' own events, spans with their times, log lines that bear the request."""

import json
import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from agent.core.events import Event
from agent.core.models import AgentRequest
from agent.core.run_state import RunState
from gateway.observe.logs import JsonFormatter, RedactingFormatter, TextFormatter, request_id
from gateway.observe.traces import RunTraces
from tests.integration.conftest import Serve
from tests.integration.test_openai_door import ASK, MODEL, user
from tests.support.engine import engine_bench
from tests.support.script import says, script


def value(text: str, name: str, **labels: str) -> float:
    """The value of one sample."""
    for line in text.splitlines():
        match = re.fullmatch(rf"{name}(?:\{{(?P<labels>.*)\}})? (?P<value>\S+)", line)
        if match and dict(re.findall(r'(\w+)="([^"]*)"', match["labels"] or "")) == labels:
            return float(match["value"])
    raise AssertionError(f"no sample {name} {labels}")


async def test_runs_tools_models_and_requests_are_counted(serve: Serve) -> None:
    async with serve(MODEL) as url, httpx.AsyncClient(base_url=url, timeout=20) as client:
        body = {"model": "stepgate", "messages": user()}
        for _ in range(2):
            assert (await client.post("/v1/chat/completions", json=body)).status_code == 200
        await client.get("/v1/runs/run_none")
        await client.get("/no/such/path")
        text = (await client.get("/metrics")).text
    assert value(text, "stepgate_runs_total", room="stepgate", status="succeeded") == 2
    assert value(text, "stepgate_tool_calls_total", tool="calculator", result="ok") == 2
    assert value(text, "stepgate_model_calls_total", model="small", purpose="planner", result="ok") == 2
    assert value(text, "stepgate_model_tokens_total", model="small", kind="prompt") > 0
    assert value(text, "stepgate_step_verdicts_total", outcome="SUCCESS", by="rule") == 6
    assert value(text, "stepgate_http_requests_total", method="GET", route="/v1/runs/{run_id}", status="404") == 1
    assert value(text, "stepgate_http_requests_total", method="GET", route="other", status="404") == 1
    assert value(text, "stepgate_runs_live") == 0
    assert "run_none" not in text, "what a caller chooses is no label"


async def test_metrics_can_be_turned_off(serve: Serve) -> None:
    async with serve(metrics=False) as url, httpx.AsyncClient(base_url=url, timeout=20) as client:
        assert (await client.get("/metrics")).status_code == 404


@pytest.mark.parametrize("content", [False, True])
async def test_a_run_is_a_span_with_its_calls_below_it(tmp_path: Path, content: bool) -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    traces = RunTraces(provider.get_tracer("test"), content=content)
    async with engine_bench(tmp_path, MODEL, observers=(traces.observe_event,)) as bench:
        response = await bench.run(ASK)
    spans = {span.name: span for span in exporter.get_finished_spans()}
    run = spans["invoke_agent test"]
    assert run.attributes is not None
    assert run.attributes["stepgate.run.id"] == response.metadata["run_id"]
    assert run.attributes["stepgate.run.status"] == "succeeded"
    assert run.attributes["gen_ai.usage.input_tokens"] == 20
    for name in ("execute_tool calculator", "execute_tool current_time", "chat small"):
        parent = spans[name].parent
        assert parent is not None
        assert run.context is not None
        assert parent.span_id == run.context.span_id
        assert (run.start_time or 0) <= (spans[name].start_time or 0) <= (run.end_time or 0)
    told = json.dumps([dict(span.attributes or {}) for span in spans.values()])
    assert (ASK in told) is content
    assert ("It is 42" in told) is content


async def test_an_observer_that_fails_stops_no_run(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def broken(_: RunState, __: Event) -> None:
        raise RuntimeError("no disk for spans")

    async with engine_bench(tmp_path, None, observers=(broken,)) as bench:
        run_id = await bench.service.start_run(AgentRequest(prompt="2+2"))
        assert (await bench.service.wait_for_response(run_id)).response == "2+2 = 4"
    assert "an observer failed" in caplog.text


@pytest.fixture
def of_request() -> Iterator[None]:
    """As while a request is served."""
    token = request_id.set("req_1")
    yield
    request_id.reset(token)


class Lines(logging.Handler):
    """What a collector of logs gets: each line as it is written."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.setFormatter(RedactingFormatter(JsonFormatter(), ()))
        self.written: list[dict[str, Any]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.written.append(json.loads(self.format(record)))

    def records_of(self, name: str) -> list[dict[str, Any]]:
        """Those of one logger."""
        return [line for line in self.written if line["logger"] == name]


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Iterator[Lines]:
    """The lines of a gateway that logs as it does unless it is told otherwise."""
    caplog.set_level(logging.INFO)
    handler = Lines()
    logging.getLogger().addHandler(handler)
    yield handler
    logging.getLogger().removeHandler(handler)


async def test_each_request_and_the_end_of_each_run_has_its_line(serve: Serve, lines: Lines) -> None:
    async with serve(MODEL) as url, httpx.AsyncClient(base_url=url, timeout=20) as client:
        assert (await client.get("/health")).status_code == 200
        assert (await client.get("/v1/runs/run_none")).status_code == 404
        answer = await client.post("/v1/chat/completions", json={"model": "stepgate", "messages": user()})
    requests, (run,) = lines.records_of("gateway.requests"), lines.records_of("gateway.runs")
    assert [(line["method"], line["route"], line["status"]) for line in requests] == [
        ("GET", "/v1/runs/{run_id}", 404),
        ("POST", "/v1/chat/completions", 200),
    ]
    assert all(line["ms"] > 0 and line["key"] is None for line in requests)
    assert run["run_id"] == answer.headers["x-stepgate-run-id"]
    assert (run["status"], run["code"], run["level"]) == ("succeeded", None, "info")
    assert run["seconds"] > 0
    assert run["request_id"] == requests[1]["request_id"] == answer.headers["x-request-id"]


async def test_the_operator_hears_of_a_refused_provider_key_and_of_who_called(serve: Serve, lines: Lines) -> None:
    async with serve(require_key="always") as url, httpx.AsyncClient(base_url=url, timeout=20) as client:
        assert (await client.get("/v1/runs", headers={"authorization": "Bearer sg_no"})).status_code == 401
    (refused,) = lines.records_of("gateway.requests")
    assert (refused["route"], refused["status"]) == ("/v1/runs", 401)
    model = script(says(fault="status_401", to="completion"))
    async with serve(model) as url, httpx.AsyncClient(base_url=url, timeout=20) as client:
        failed = await client.post("/v1/agent", json={"prompt": "hello there, who are you?", "room": "chat"})
    assert failed.status_code == 502
    (call,) = lines.records_of("agent.run_context.model_calls")
    assert (call["level"], call["code"]) == ("warning", "ERR_MODEL_AUTH")
    assert call["run_id"].startswith("run_"), "said within the run"
    (run,) = lines.records_of("gateway.runs")
    assert (run["level"], run["code"]) == ("warning", "ERR_MODEL_AUTH")


def record(message: str, **extra: object) -> logging.LogRecord:
    made = logging.LogRecord("stepgate.x", logging.WARNING, __file__, 1, message, (), None)
    vars(made).update(extra)
    return made


@pytest.mark.usefixtures("of_request")
def test_a_json_line_is_one_object_with_the_request(capsys: pytest.CaptureFixture[str]) -> None:
    line = JsonFormatter().format(record('two\nlines and a "quote"', run_id="run_1"))
    assert "\n" not in line
    told = json.loads(line)
    assert (told["level"], told["request_id"], told["run_id"]) == ("warning", "req_1", "run_1")
    assert told["message"] == 'two\nlines and a "quote"'


@pytest.mark.usefixtures("of_request")
def test_a_text_from_outside_cannot_forge_a_log_line() -> None:
    line = TextFormatter().format(record("page said: x\n2026-01-01 ERROR stepgate: all is lost \x1b[31m"))
    assert "\n" not in line
    assert "\x1b" not in line
    assert line.endswith("[req_1]")
