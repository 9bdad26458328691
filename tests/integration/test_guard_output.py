"""What never leaves a run, and what a room's output policy does about the rest."""

import base64
import json
import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest

from agent.core import events as ev
from agent.core.events import Event
from agent.core.models import JsonObject, OutputGuards, Room, RoomGuards, Source
from agent.runs.response import build_response
from agent.tools import ToolContext, ToolResult, ToolSpec
from gateway.observe.logs import JsonFormatter, RedactingFormatter
from gateway.render.openai import OpenAIChunks, build_completion_body
from tests.integration.conftest import Serve
from tests.support.engine import engine_bench
from tests.support.script import answers, plans, says, script
from tests.support.scripted_server import ScriptedServer
from tests.support.tools import FunctionTool, returning

FOREIGN = "ghp" + "_" + "a1B2" * 9
OWN = "correct-horse-battery-staple-42"
CODED = base64.b64encode(f"key={OWN};".encode()).decode()
BOB = "bob.lind@example.org"
READS = plans({"tool": "read_it", "inputs": {"x": "u"}}, {"tool": "completion", "depends_on": ["s1"]})


def room(**guards: str) -> Room:
    return Room(id="test", supervision="checks", guard_output=OutputGuards.model_validate(guards))


def extract_visible_text(events: Sequence[Event]) -> str:
    """All that anybody is shown of a run: the events, the response, and both forms of a completion."""
    chunks = OpenAIChunks(events[0].run_id, "m", include_usage=True, rich=True)
    frames = [frame for event in events for frame in chunks.encode_event(event)]
    wire = [json.dumps(event.to_public_json(), ensure_ascii=False) for event in events]
    return "\n".join([*wire, *frames, build_response(events).model_dump_json(), build_completion_body(events).decode()])


class Leaky(FunctionTool):
    """A tool whose result holds `secret` wherever a result can hold a text."""

    def __init__(self, secret: str) -> None:
        super().__init__("read_it", lambda _: None, tainted=True)  # type: ignore[arg-type, return-value]
        self.secret = secret

    async def call(self, args: JsonObject, context: ToolContext) -> ToolResult:
        said = f"the key is {self.secret}, use it"
        source = Source(id=1, name=f"page {self.secret}", url=f"https://e.example/?k={self.secret}", quotes=(said,))
        return ToolResult({"a": [said, {self.secret: 1}]}, said, sources=(source,))


@pytest.mark.row("S003-02", "S002-50")
@pytest.mark.parametrize("tailored", [True, False])
@pytest.mark.parametrize("secret", [FOREIGN, OWN, CODED])
async def test_a_key_that_a_tool_returns_is_shown_to_nobody(tmp_path: Path, secret: str, tailored: bool) -> None:
    model = script(READS, says(f"It says: {secret}. The key is, use it. [1]", to="completion", chunk=1))
    chosen = room().model_copy(update={"citations": tailored})
    async with engine_bench(tmp_path, model, tools=[Leaky(secret)], room=chosen, llm_api_key=OWN) as bench:
        events = await bench.events("please search the page and report the key")
        asked = str([request["body"] for request in bench.client.requests[:2]])
    whole = extract_visible_text(events)
    for part in (FOREIGN, OWN, CODED[4:-4]):
        assert part not in whole
        assert part not in asked, "nor to a model"
    assert build_response(events).metadata["sources"]
    assert '"type": "source"' in whole
    assert "use it" in whole


@pytest.mark.row("S003-02")
async def test_a_key_in_a_failure_is_shown_to_nobody(tmp_path: Path) -> None:
    tool = returning("read_it", OSError(f"GET https://x.example/?token={FOREIGN} failed: {OWN}"))
    model = script(READS, says("", fault="status_401"))  # its message is `invalid key`
    async with engine_bench(tmp_path, model, tools=[tool], room=room(), qdrant_api_key="invalid key",
                            llm_api_key=OWN, tool_max_retries=0) as bench:  # fmt: skip
        events = await bench.events("please search the page and report")
    whole = extract_visible_text(events)
    assert "failed: [removed: CONFIGURED_SECRET]" in whole
    for part in (FOREIGN, OWN, "invalid key"):
        assert part not in whole


async def test_a_key_that_a_model_writes_into_its_plan_is_shown_to_nobody(tmp_path: Path) -> None:
    tool = returning("read_it", "a page")
    step = {"tool": "read_it", "inputs": {"x": f"k={OWN}"}, "intent": f"use {OWN}"}
    model = script(plans(step, {"tool": "completion", "depends_on": ["s1"]}), says("Done.", to="completion"))
    async with engine_bench(tmp_path, model, tools=[tool], room=room(), llm_api_key=OWN) as bench:
        events = await bench.events("please search the page and report")
    assert OWN not in extract_visible_text(events)
    assert tool.calls == [{"x": "k=[removed: CONFIGURED_SECRET]"}]


async def test_a_room_may_leave_foreign_keys_in_and_never_its_own(tmp_path: Path) -> None:
    model = script(says(f"Foreign {FOREIGN}, own {OWN}.", chunk=3))
    for action in ("off", "flag"):
        async with engine_bench(tmp_path / action, model, room=room(secret=action), llm_api_key=OWN) as bench:
            events = await bench.events("hm?")
        assert build_response(events).response == f"Foreign {FOREIGN}, own [removed: CONFIGURED_SECRET]."
        assert OWN not in extract_visible_text(events)
        assert any("GITHUB_TOKEN" in str(step.detail) for step in build_response(events).steps) is (action == "flag")


async def test_a_dummy_key_is_a_word_like_any_other(tmp_path: Path) -> None:
    async with engine_bench(tmp_path, script(says("ollama and lm-studio run models.")), llm_api_key="ollama",
                            embedder_api_key="lm-studio") as bench:  # fmt: skip
        assert (await bench.run("hm?")).response == "ollama and lm-studio run models."


@pytest.mark.row("S003-42", "S003-40")
@pytest.mark.parametrize("by", ["pii", "secret", "hate_speech"])
async def test_an_unsafe_answer_is_written_once_more_and_shown_when_it_is_safe(tmp_path: Path, by: str) -> None:
    bad = {"pii": f"Ask {BOB}.", "secret": f"It is {FOREIGN}.", "hate_speech": "immigrants are vermin"}[by]
    model = script(says(bad, to="completion", times=1), says("Ask the office.", to="completion"))
    async with engine_bench(tmp_path, model, room=room(**{by: "block"})) as bench:
        events = await bench.events("whom do I ask?")
        second = str(bench.client.requests[-1]["body"])
    response = build_response(events)
    assert response.response == "Ask the office."
    assert bad not in extract_visible_text(events)
    assert "was not accepted" in second
    assert "This is strict" in second
    guards = [step for step in response.steps if step.type == "guard"]
    assert [(step.status, step.detail["action"], step.detail["error_code"]) for step in guards] == [
        ("retried", "retry_strict", "ERR_GUARDRAIL_UNSAFE")
    ]


@pytest.mark.row("S003-42", "S003-40")
async def test_an_answer_that_stays_unsafe_is_refused(tmp_path: Path) -> None:
    model = script(answers(f"Ask {BOB}.", chunk=2), says(f"Ask {BOB}.", to="completion", chunk=2))
    async with engine_bench(tmp_path, model, room=room(pii="block")) as bench:
        events = await bench.events("whom do I ask?", conversation_id="c")
        stored = await bench.store.conversations.list_turns("local", "c")
        purposes = bench.client.purposes()
    assert purposes == ["planner", "completion"], "once more, and no plan but this"
    failed = events[-1].body
    assert isinstance(failed, ev.RunFailed)
    assert failed.failure.error_code == "ERR_GUARDRAIL_UNSAFE"
    assert failed.failure.timestamp.tzinfo is not None
    steps = [step for step in build_response(events).steps if step.type == "guard"]
    assert [(step.status, step.detail["action"]) for step in steps] == [
        ("retried", "retry_strict"), ("refused", "block")
    ]  # fmt: skip
    assert BOB not in extract_visible_text(events)
    assert stored == []


async def test_a_result_that_is_the_answer_is_refused_by_the_same_rule(tmp_path: Path) -> None:
    tool = returning("read_it", "immigrants are vermin")
    model = script(plans({"tool": "read_it", "inputs": {"x": "u"}}))
    async with engine_bench(tmp_path, model, tools=[tool], room=room(hate_speech="block")) as bench:
        failed = (await bench.events("please search the page"))[-1].body
    assert isinstance(failed, ev.RunFailed)
    assert failed.failure.error_code == "ERR_GUARDRAIL_UNSAFE"


@pytest.mark.row("S003-02")
async def test_personal_data_of_others_is_taken_out_and_the_callers_own_is_not(tmp_path: Path) -> None:
    ann = "anna.berg@example.com"
    for prompts in ("off", "redact"):
        tool = returning("read_it", {"to": BOB, "from": ann})
        said = f"{BOB} wrote to {'<EMAIL_1>' if prompts == 'redact' else ann}."
        chosen = room(pii="redact").model_copy(update={"guard_input": RoomGuards.model_validate({"pii": prompts})})
        model = script(READS, says(said, to="completion", chunk=2))
        async with engine_bench(tmp_path / prompts, model, tools=[tool], room=chosen) as bench:
            events = await bench.events(f"please search the page for {ann} and report", conversation_id="c")
            stored = await bench.store.conversations.list_turns("local", "c")
        assert build_response(events).response == f"[removed: EMAIL] wrote to {ann}."
        assert BOB not in extract_visible_text(events)
        assert stored[-1][1] == f"[removed: EMAIL] wrote to {ann}."


async def test_what_is_flagged_is_told_and_left(tmp_path: Path) -> None:
    code = "Then run: sudo rm -rf / --no-preserve-root"
    async with engine_bench(tmp_path, script(says(code)), room=room(pii="flag")) as bench:
        response = await bench.run("how do I wipe it?")
        calm = await bench.run("and now?")
        clean = build_response(await bench.events("hm?"))
    assert response.response == code
    (told,) = [step for step in response.steps if step.type == "guard"]
    assert told.detail == {"findings": ["found malicious_code (destruction): reported; this part destroys a machine's "
                                        "files"], "action": "flag"}  # fmt: skip
    assert calm.response == clean.response == code


async def test_the_policy_of_a_room_has_its_own_defaults() -> None:
    guards = OutputGuards.model_validate({"pii": "flag"})
    assert (guards.secret, guards.requires_whole_answer, guards.can_block) == ("redact", False, False)
    assert OutputGuards(pii="redact").requires_whole_answer
    assert OutputGuards(secret="block").requires_whole_answer
    assert isinstance(Leaky("x").spec, ToolSpec)


def test_a_log_line_holds_no_key() -> None:
    formatter = RedactingFormatter(JsonFormatter(), (OWN, "postgresql://app:pass-word-17@db/x", "none"))
    try:
        raise ValueError(f"GET https://x.example/?token={FOREIGN} failed")
    except ValueError:
        record = logging.LogRecord(
            "x", logging.ERROR, "f", 1, "%s, none", (f"{OWN} {CODED} pass-word-17",), sys.exc_info()
        )
    line = formatter.format(record)
    for part in (FOREIGN, OWN, CODED[4:-4], "pass-word-17"):
        assert part not in line
    assert json.loads(line)["message"].endswith(", none")


@pytest.mark.row("S003-02")
async def test_by_default_others_personal_data_is_taken_out_of_answers_and_streams_only(
    serve: Serve, model_server: ScriptedServer
) -> None:
    told = f"Write to {BOB}, not to ann@example.com; call +46 70 123 45 67 soon."
    body: dict[str, Any] = {"prompt": "I am ann@example.com. Whom do I ask?", "conversation_id": "c"}
    async with serve(script(says(told, to="completion", chunk=3))) as url, httpx.AsyncClient(base_url=url) as client:
        answer = (await client.post("/v1/agent", json=body)).json()
        chat = {"model": "stepgate", "stream": True, "messages": [{"role": "user", "content": body["prompt"]}]}
        streamed = await client.post("/v1/chat/completions", json=chat)
        history = (await client.get("/v1/conversations/c/state")).json()["history"]
        kept = (await client.post("/v1/agent", json={"prompt": "What is ann@example.com?", "room": "chat"})).json()
    expected = "Write to [removed: EMAIL], not to ann@example.com; call [removed: PHONE] soon."
    frames = [json.loads(line[6:]) for line in streamed.text.splitlines() if line.startswith("data: {")]
    pieces = [choice["delta"].get("content") or "" for frame in frames for choice in frame["choices"]]
    assert answer["response"] == "".join(pieces) == history[-1]["content"] == expected
    assert len([piece for piece in pieces if piece]) > 2, "it still streams"
    assert BOB not in json.dumps(answer)
    (told_why,) = [one["message"] for one in answer["metadata"]["uncertainties"]]
    assert "(EMAIL, PHONE)" in told_why
    assert "AGENT_GUARD_ANSWER_PII=flag" in told_why
    assert kept["response"] == told, "a room may leave it in"


async def test_what_a_caller_has_asked_to_be_remembered_is_their_own(serve: Serve) -> None:
    async with serve(None) as url, httpx.AsyncClient(base_url=url) as client:
        await client.post("/v1/agent", json={"prompt": f"Remember that Bob's address is {BOB}"})
        recalled = (await client.post("/v1/agent", json={"prompt": "what do you know about Bob's address?"})).json()
    assert BOB in recalled["response"]


async def test_the_setting_turns_it_off(serve: Serve) -> None:
    model = script(says(f"Write to {BOB}.", to="completion"))
    async with serve(model, guard_answer_pii="off") as url, httpx.AsyncClient(base_url=url) as client:
        answer = (await client.post("/v1/agent", json={"prompt": "Whom do I ask?"})).json()
    assert answer["response"] == f"Write to {BOB}."
