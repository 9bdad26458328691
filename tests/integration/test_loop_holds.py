"""Requests of odd sizes do not make everybody else wait: no iteration of the event loop is long."""

import json
from typing import Any

import httpx
import pytest

from tests.integration.conftest import Serve
from tests.support.loop_turns import MAX_TURN_S, measuring_turns
from tests.support.script import says, script

HELLO = script(says("ANSWER\nHello.", to="planner"), says("{}"))


def _ask(schema: dict[str, Any] | None = None, text: str = "hi") -> dict[str, Any]:
    body: dict[str, Any] = {"model": "stepgate", "messages": [{"role": "user", "content": text}]}
    if schema is not None:
        named = {"name": "answer", "schema": schema}
        body["response_format"] = {"type": "json_schema", "json_schema": named}
    return body


def _wide(count: int) -> dict[str, Any]:
    return {"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(count)}}


async def test_a_wide_schema_of_an_answer_is_checked_beside_the_loop(serve: Serve) -> None:
    async with serve(HELLO) as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        await client.post("/v1/chat/completions", json=_ask(_wide(2)))  # loads what is needed
        async with measuring_turns() as longest:
            answer = await client.post("/v1/chat/completions", json=_ask(_wide(3_000)))
    assert answer.status_code == 200
    assert longest.seconds < MAX_TURN_S


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses"])
async def test_a_schema_that_is_too_long_is_refused(serve: Serve, path: str) -> None:
    wide = _wide(5_000)
    body = _ask(wide)
    if path == "/v1/responses":
        form = {"type": "json_schema", "name": "answer", "schema": wide}
        body = {"model": "stepgate", "input": "hi", "text": {"format": form}}
    async with serve(HELLO) as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        answer = await client.post(path, json=body)
    assert answer.status_code == 400
    assert "the limit is 100,000" in answer.text


async def test_a_word_of_nothing_but_articles_is_a_request(serve: Serve) -> None:
    async with serve(HELLO) as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        answer = await client.post("/v1/chat/completions", json=_ask(text="ال" * 40_000))
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize(
    "answer",
    [
        "The years: " + " ".join(str(year) for year in range(1990, 2026)) + " and others, too.",
        "Closed on " + "2026-01-01 " * 30 + "and, of course, on Sundays.",
        "Write to ann at b" + " dot" * 60 + " or, if you like, call.",
    ],
    ids=["years", "dates", "spelled address"],
)
async def test_a_row_of_figures_in_a_streamed_answer_holds_up_nobody(serve: Serve, answer: str) -> None:
    model = script(says(f"ANSWER\n{answer}", to="planner"), says(answer))
    body = _ask() | {"stream": True}
    async with serve(model) as url, httpx.AsyncClient(base_url=url, timeout=120) as client:
        await client.post("/v1/chat/completions", json=body)  # loads what is needed
        async with measuring_turns() as longest:
            streamed = await client.post("/v1/chat/completions", json=body)
    assert "data: [DONE]" in streamed.text
    assert longest.seconds < MAX_TURN_S


LONG_PROMPTS = {
    "addresses and passwords": "\n".join(
        f"ann{number}@example.org password: xk12345a{number}" for number in range(3_000)
    ),
    "addresses": "\n".join(f"a{number}@b.io" for number in range(8_000)),
    "a tag that is none": f"What is this?\n<{' ' * 120_000}x",
    "telephone numbers": "".join(f"07{number:08d} " for number in range(12_000)),
    **{
        unit: f"What is this?\n{unit * (120_000 // len(unit))}" for unit in ("1 ", "1+1=2 ", "%41", "| 1 | 2 |\n", "> ")
    },
}


@pytest.mark.parametrize("text", LONG_PROMPTS.values(), ids=LONG_PROMPTS)
async def test_a_long_prompt_of_addresses_or_figures_holds_up_nobody(serve: Serve, text: str) -> None:
    async with serve(HELLO) as url, httpx.AsyncClient(base_url=url, timeout=120) as client:
        await client.post("/v1/chat/completions", json=_ask())
        async with measuring_turns() as longest:
            answer = await client.post("/v1/chat/completions", json=_ask(text=text))
    assert answer.status_code == 200, answer.text
    assert longest.seconds < MAX_TURN_S


HI = {"role": "user", "content": "hi"}
THREAD = {"threadId": "t", "runId": "r", "state": {}, "messages": [], "tools": [], "context": [], "forwardedProps": {}}
CALL: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage"}
LISTS: dict[str, tuple[str, dict[str, Any]]] = {
    "messages of a chat": ("/v1/chat/completions", {"model": "stepgate", "messages": "LIST"}),
    "parts of a message": ("/v1/chat/completions", {"model": "stepgate", "messages": [{**HI, "content": "LIST"}]}),
    "ends of an answer": ("/v1/chat/completions", {"model": "stepgate", "messages": [HI], "stop": "LIST"}),
    "older functions": ("/v1/chat/completions", {"model": "stepgate", "messages": [HI], "functions": "LIST"}),
    "biases": ("/v1/chat/completions", {"model": "stepgate", "messages": [HI], "logit_bias": "MAP"}),
    "messages of a request": ("/v1/agent", {"prompt": "hi", "messages": "LIST"}),
    "pictures": ("/v1/agent", {"prompt": "hi", "images": "LIST"}),
    "tools of a client": ("/v1/agent", {"prompt": "hi", "client_tools": "LIST"}),
    "messages of a thread": ("/v1/ag-ui", {**THREAD, "messages": "LIST"}),
    "tools of a thread": ("/v1/ag-ui", {**THREAD, "tools": "LIST"}),
    "input": ("/v1/responses", {"model": "stepgate", "input": "LIST"}),
    "parts of a task": ("/a2a", {**CALL, "params": {"message": {"messageId": "m", "parts": "LIST"}}}),
    "a context": ("/tasks", {"prompt": "hi", "context": "MAP"}),
}
ENTRIES = 400_000


@pytest.mark.parametrize(("path", "body"), LISTS.values(), ids=LISTS)
@pytest.mark.parametrize("entry", ["{}", "0", '{"role":"user","content":"a"}'], ids=["objects", "numbers", "messages"])
async def test_a_list_of_many_wrong_entries_holds_up_nobody(
    serve: Serve, path: str, body: dict[str, Any], entry: str
) -> None:
    count = min(ENTRIES, 4_500_000 // (len(entry) + 1))
    text = json.dumps(body).replace('"LIST"', f"[{','.join([entry] * count)}]")
    text = text.replace('"MAP"', f"{{{','.join(f'{chr(34)}{number}{chr(34)}:{{}}' for number in range(count))}}}")
    headers = {"content-type": "application/json"}
    async with serve(HELLO) as url, httpx.AsyncClient(base_url=url, timeout=120) as client:
        await client.post("/v1/chat/completions", json=_ask())
        await client.post(path, json={}, headers=headers)  # loads what is needed
        async with measuring_turns() as longest:
            answer = await client.post(path, content=text, headers=headers)
    assert answer.status_code in (200, 201, 400, 413, 422), answer.text
    assert longest.seconds < MAX_TURN_S
