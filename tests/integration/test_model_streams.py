"""What model endpoints really send, through the doors: the answer comes once and whole, or its failure is named."""

import json
from pathlib import Path
from time import monotonic
from typing import Any

import httpx
import pytest

from tests.integration.conftest import Serve
from tests.support.raw_endpoint import DONE, STOP, RawEndpoint, chunk, raw_endpoint, say

HELLO = [say("Hello "), say("wörld.")]
WHOLE = {
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello wörld."}, "finish_reason": "stop"}]
}
LINES = [*HELLO, STOP]
SINGLE = [line.replace(b'"index": 0', b'"index": 1') for line in HELLO]
USAGE = chunk(usage={"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2})
FORMS: dict[str, list[bytes]] = {
    "no finish reason": [*HELLO, DONE],
    "null errors": [line.replace(b'"choices"', b'"error": null, "choices"') for line in LINES] + [DONE],
    "empty errors": [line.replace(b'"choices"', b'"error": {}, "choices"') for line in LINES] + [DONE],
    "empty data and heartbeats": [b": hi\n\ndata:\n\n", HELLO[0], b"data\n\nevent: ping\ndata: {}\n\n", HELLO[1], STOP],
    "carriage returns": [line.replace(b"\n", b"\r") for line in (*LINES, DONE)],
    "a byte order mark": [b"\xef", b"\xbb\xbf" + HELLO[0], HELLO[1], STOP, DONE],
    "data over several lines": [
        b'data: {"choices": [{"index": 0,\ndata: "delta": {"content":\ndata: "Hello w\xc3\xb6rld."}}]}\n\n',
        DONE,
    ],
    "an index of 1": [*SINGLE, STOP, DONE],
    "a whole reply": [json.dumps(WHOLE).encode()],
    "a JSON object a line": [line[6:-1] for line in LINES],
}


async def ask(url: str, stream: bool, room: str = "chat", **body: Any) -> dict[str, Any]:
    """A completion through the door: its content, reasoning and finish reason, and its error."""
    asked = {"model": room, "stream": stream, "messages": [{"role": "user", "content": "Tell me about trees"}], **body}
    async with httpx.AsyncClient(timeout=30) as client:
        response = await client.post(f"{url}/v1/chat/completions", json=asked)
    answer: dict[str, Any] = {"content": "", "reasoning_content": "", "finish": None, "error": ""}
    if not stream or response.status_code != 200:
        data = response.json()
        if "error" in data:
            return {**answer, "error": data["error"]["message"]}
        message = data["choices"][0]["message"]
        return {
            **answer,
            "content": message["content"] or "",
            "reasoning_content": message.get("reasoning_content") or "",
            "finish": data["choices"][0]["finish_reason"],
        }
    for line in response.text.splitlines():
        if not line.startswith("data: {"):
            continue
        data = json.loads(line[6:])
        if "error" in data:
            answer["error"] = data["error"]["message"]
        for choice in data.get("choices", ()):
            for name in ("content", "reasoning_content"):
                answer[name] += choice["delta"].get(name) or ""
            answer["finish"] = choice["finish_reason"] or answer["finish"]
    return answer


def settings_for(endpoint: RawEndpoint, **options: Any) -> dict[str, Any]:
    return {"llm_base_url": endpoint.url, "model_fast": "m", **options}


@pytest.mark.parametrize("form", FORMS)
async def test_an_answer_comes_once_and_whole(serve: Serve, form: str) -> None:
    async with raw_endpoint(*FORMS[form]) as endpoint, serve(**settings_for(endpoint)) as url:
        streamed = await ask(url, stream=True)
        calls = len(endpoint.bodies)
        at_once = await ask(url, stream=False)
    assert (streamed["content"], streamed["finish"], streamed["error"]) == ("Hello wörld.", "stop", "")
    assert (at_once["content"], at_once["finish"]) == ("Hello wörld.", "stop")
    assert calls == 1, "it is paid for once"


@pytest.mark.parametrize("room", ["chat", "stepgate"])
async def test_an_emoji_in_two_pieces_is_whole(serve: Serve, room: str) -> None:
    halves = [say("TEXT").replace(b"TEXT", half) for half in (b"Hi \\ud83d", b"\\ude00!")]
    async with raw_endpoint(*halves, STOP, DONE) as endpoint, serve(**settings_for(endpoint)) as url:
        assert (await ask(url, stream=True, room=room))["content"] == "Hi 😀!"


async def test_a_web_page_in_place_of_an_answer_is_named(serve: Serve) -> None:
    page = b"<!DOCTYPE html><title>Sign in</title>"
    async with raw_endpoint(page, content_type="text/html") as endpoint, serve(**settings_for(endpoint)) as url:
        for stream in (True, False):
            error = (await ask(url, stream=stream))["error"]
            assert "web page ('Sign in')" in error
            assert "AGENT_LLM_BASE_URL" in error


@pytest.mark.parametrize(
    "event",
    [
        b'data: {"error": {"message": "tenant 7 has no credit left", "code": 402}}\n\n',
        b'event: error\ndata: {"message": "tenant 7 has no credit left"}\n\n',
        b'data: {"error": {"message": "tenant 7 has no credit left", "type": "server_error"}}\n\n',
    ],
)
async def test_an_error_of_the_provider_reaches_the_user(serve: Serve, event: bytes) -> None:
    async with raw_endpoint(HELLO[0], event) as endpoint, serve(**settings_for(endpoint)) as url:
        for stream in (True, False):
            assert "tenant 7 has no credit left" in (await ask(url, stream=stream))["error"]


async def test_a_model_that_spends_its_limit_on_reasoning_ends_as_length(serve: Serve) -> None:
    thought = [chunk({"reasoning_content": "Let me "}), chunk({"reasoning_content": "think."})]
    async with raw_endpoint(*thought, chunk({}, "length"), DONE) as endpoint, serve(**settings_for(endpoint)) as url:
        answer = await ask(url, stream=True, max_tokens=20)
        assert len(endpoint.bodies) == 1
        async with httpx.AsyncClient(timeout=30) as client:
            body = {"model": "chat", "input": "Tell me about trees", "max_output_tokens": 20}
            response = (await client.post(f"{url}/v1/responses", json=body)).json()
    assert answer == {"content": "", "reasoning_content": "Let me think.", "finish": "length", "error": ""}
    assert response["status"] == "incomplete"
    assert response["incomplete_details"] == {"reason": "max_output_tokens"}
    assert [item["type"] for item in response["output"]].count("reasoning") == 1


@pytest.mark.parametrize("parts", [[STOP, DONE], [DONE], [chunk({"content": ""}), STOP]])
async def test_an_empty_reply_is_told_as_one(serve: Serve, parts: list[bytes]) -> None:
    async with raw_endpoint(*parts) as endpoint, serve(**settings_for(endpoint)) as url:
        for stream in (True, False):
            content = (await ask(url, stream=stream))["content"]
            assert "the model returned an empty reply" in content
            assert "failed" not in content


@pytest.mark.parametrize("piece", ["word ", "word " * 40])
async def test_an_answer_without_an_end_is_cut_at_its_limit(serve: Serve, piece: str) -> None:
    async with (
        raw_endpoint(say(piece), endless=True, pause_s=0.0) as endpoint,
        serve(**settings_for(endpoint)) as url,
    ):
        answer = await ask(url, stream=True, max_tokens=300)
    assert endpoint.bodies[0]["max_tokens"] == 300
    assert answer["finish"] == "length"
    tokens = answer["content"].count("word ") if piece == "word " else len(answer["content"]) / 4
    assert 285 <= tokens <= 315


async def test_an_answer_without_an_end_is_cut_at_the_budget_of_its_run(serve: Serve, tmp_path: Path) -> None:
    rooms = tmp_path / "rooms"
    rooms.mkdir()
    (rooms / "small.yaml").write_text("id: small\nplanning: false\nbudgets: {max_tokens: 3000}\n")
    async with (
        raw_endpoint(say("word "), endless=True, pause_s=0.0) as endpoint,
        serve(**settings_for(endpoint, rooms_dir=rooms)) as url,
    ):
        answer = await ask(url, stream=True, room="small")
    assert answer["finish"] == "length"
    assert 2_800 <= answer["content"].count("word ") <= 3_150


async def test_the_time_limit_counts_tokens_and_not_the_whole_answer(serve: Serve) -> None:
    slow: list[bytes | float] = [part for _ in range(10) for part in (0.2, say("word "))]
    options = {"llm_timeout_s": 0.8}
    async with raw_endpoint(*slow, STOP, DONE) as endpoint, serve(**settings_for(endpoint, **options)) as url:
        answer = await ask(url, stream=True)
    assert (answer["content"], answer["error"]) == ("word " * 10, "")


async def test_a_model_that_trickles_ends_within_the_time_of_its_run(serve: Serve, tmp_path: Path) -> None:
    rooms = tmp_path / "rooms"
    rooms.mkdir()
    (rooms / "brief.yaml").write_text("id: brief\nplanning: false\nbudgets: {max_seconds: 2}\n")
    options = {"llm_timeout_s": 60, "rooms_dir": rooms}
    async with (
        raw_endpoint(say("word "), endless=True, pause_s=0.5) as endpoint,
        serve(**settings_for(endpoint, **options)) as url,
    ):
        started = monotonic()
        answer = await ask(url, stream=True, room="brief")
        assert monotonic() - started < 20  # each gap is within the time for a token: only the run's own ends it
        await endpoint.hung_up.wait()
    assert 1 <= answer["content"].count("word ") <= 8
    assert "the run has used its 2 seconds (budgets.max_seconds of the room)" in answer["content"]


@pytest.mark.parametrize("beat", [b": ping\n\n", USAGE], ids=["comment", "usage"])
async def test_heartbeats_are_no_tokens(serve: Serve, beat: bytes) -> None:
    options = {"llm_timeout_s": 0.6}
    async with (
        raw_endpoint(say("word "), beat, endless=True, pause_s=0.1) as endpoint,
        serve(**settings_for(endpoint, **options)) as url,
    ):
        started = monotonic()
        answer = await ask(url, stream=True)
        assert monotonic() - started < 5
        await endpoint.hung_up.wait()  # the endpoint is not left to send on
    assert "sent no further token for 0.6 s" in answer["error"]


async def test_an_answer_counts_although_its_connection_stays_open(serve: Serve) -> None:
    options = {"llm_timeout_s": 0.6}
    async with raw_endpoint(*HELLO, STOP, 20.0) as endpoint, serve(**settings_for(endpoint, **options)) as url:
        started = monotonic()
        answer = await ask(url, stream=True)
    assert (answer["content"], answer["finish"], answer["error"]) == ("Hello wörld.", "stop", "")
    assert monotonic() - started < 5
