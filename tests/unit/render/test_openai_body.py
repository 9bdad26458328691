"""A whole `chat.completion`: what the official SDK and Open WebUI read from it."""

import json
from typing import Any

import pytest
from openai.types.chat import ChatCompletion
from pydantic import JsonValue

from agent.core import events as ev
from agent.core.models import Room
from gateway.render.openai import build_completion_body
from tests.support.builders import RUN_ID, Placed, created, done_step, log, make_model_call, planned, tool_step


def body_of(*middle: ev.EventBody | Placed, **request: Any) -> dict[str, Any]:
    events = log(created(room=Room(id="helper"), **request), planned(tool_step("s1")), *middle, ev.RunSucceeded())
    body: dict[str, Any] = json.loads(build_completion_body(events))
    return body


@pytest.mark.row("S001-42", "S001-45")
def test_the_trace_stands_at_the_top_and_in_the_message() -> None:
    body = body_of(*done_step("s1"), ev.AnswerFinished(text="found it"), metadata={"x": 1, "steps": ["forged"]})
    message = body["choices"][0]["message"]
    assert message["content"] == "found it"
    assert [step["type"] for step in body["steps"]] == ["plan", "step", "tool", "supervision"]
    assert message["metadata"]["steps"] == body["steps"]
    assert message["metadata"] == body["stepgate"]
    assert body["stepgate"]["plan"]["steps"]
    assert body["stepgate"]["x"] == 1


def test_top_level_metadata_holds_strings_only() -> None:
    metadata = body_of(ev.AnswerFinished(text="hello"), metadata={"number": 1, "text": "kept"})["metadata"]
    assert metadata["text"] == "kept"
    assert metadata["run_id"] == RUN_ID
    assert metadata["status"] == "complete"
    assert not [name for name, value in metadata.items() if not isinstance(value, str)]


@pytest.mark.row("S001-13")
def test_the_official_types_accept_it() -> None:
    body = body_of(make_model_call("completion", 40), ev.AnswerFinished(text="hello", finish_reason="length"))
    completion = ChatCompletion.model_validate(body)
    assert completion.id == f"chatcmpl-{RUN_ID}"
    assert completion.model == "helper"
    assert completion.choices[0].finish_reason == "length"
    assert completion.usage is not None
    assert (completion.usage.prompt_tokens, completion.usage.total_tokens) == (40, 60)


def test_calls_of_the_clients_tools_are_passed_on_and_an_empty_text_is_null() -> None:
    call: dict[str, JsonValue] = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    body = body_of(ev.AnswerFinished(text="", finish_reason="tool_calls", tool_calls=(call,)))
    choice = ChatCompletion.model_validate(body).choices[0]
    assert choice.finish_reason == "tool_calls"
    assert choice.message.content is None
    assert choice.message.tool_calls is not None
    assert choice.message.tool_calls[0].id == "c1"


def test_a_text_in_any_language_stays_readable_on_the_wire() -> None:
    events = log(created(), ev.AnswerFinished(text="räksmörgås 🦐"), ev.RunSucceeded())
    assert "räksmörgås 🦐".encode() in build_completion_body(events)
