"""What providers say, well formed or not: a reply or `ModelOutputError`; never a defect, nor a budget that shrinks."""

import json
from typing import Any

import pytest

from agent.core.errors import ModelDownError, ModelOutputError
from agent.core.models import JsonObject, Usage
from agent.llm.chunks import ChunkReader
from agent.llm.endpoint_origin import EndpointOrigin
from agent.llm.faults import (
    build_body_error,
    build_form_error,
    build_status_error,
    extract_provider_message,
    hide_endpoint_details,
    read_error,
)
from agent.llm.port import ModelChunk
from agent.llm.replies import drop_foreign_calls, read_completion, read_reply, read_usage
from agent.llm.stream_reader import StreamReader


def test_a_code_of_many_digits_is_not_a_status() -> None:
    assert read_error(b'{"error": {"message": "no", "code": "%s"}}' % (b"9" * 5_000)).status is None
    assert read_error(b'{"error": {"message": "no", "code": "429"}}').status == 429


DEEP = b"[" * 100_000


def reply_with(**fields: Any) -> bytes:
    return json.dumps({"choices": [{"message": {"content": "a"}}], **fields}).encode()


def encode_reply(message: object) -> bytes:
    return json.dumps({"choices": [{"message": message}]}).encode()


def test_a_caller_reads_the_providers_words_but_not_where_it_is() -> None:
    reported = build_body_error({"message": "no credit at https://inner.test/v1"}, "http://10.0.0.1/v1")
    shown = hide_endpoint_details(reported, "http://10.0.0.1/v1")
    assert shown == "the model's endpoint reported an error: no credit at the model's endpoint"
    down = build_status_error(502, {}, b"proxy 10.0.0.1 is broken", "http://10.0.0.1/v1")
    assert "10.0.0.1" not in hide_endpoint_details(down, "http://10.0.0.1/v1")


def test_a_caller_does_not_read_under_which_name_an_endpoint_is_saved() -> None:
    page = build_form_error("http://10.0.0.1/v1 answered 200", b"<html>")
    EndpointOrigin.make_saved("hosted").explain(page)
    assert "saved as 'hosted'" in page.message
    shown = hide_endpoint_details(page, "http://10.0.0.1/v1")
    assert shown.endswith("instead of a completion; is this the address of the API?")


def test_a_web_page_in_place_of_a_reply_is_named() -> None:
    with pytest.raises(ModelOutputError, match=r"with a web page \('Sign in'\)"):
        read_reply(b"<html><title>Sign in</title>", "here")


@pytest.mark.parametrize("body", [DEEP, b"", b"{}", b"5", b'{"choices": [5]}', b'{"choices": {}}'])
def test_what_is_no_completion_is_said_to_be_none(body: bytes) -> None:
    with pytest.raises(ModelOutputError):
        read_reply(body, "here")


@pytest.mark.parametrize(
    "message", ["hi", 5, {"tool_calls": 3}, {"tool_calls": {"a": 1}}, {"tool_calls": ["a"]}, {"content": 0}]
)
def test_parts_of_another_shape_are_left_out(message: object) -> None:
    reply = read_reply(encode_reply(message), "here")
    assert (reply.text, reply.tool_calls) == ("", ())


def test_a_call_of_another_shape_has_no_name() -> None:
    (call,) = read_reply(encode_reply({"tool_calls": [{"function": "f"}]}), "here").tool_calls
    assert (call.name, call.arguments) == ("", "{}")


@pytest.mark.parametrize(
    "choices", [["a"], [{"delta": 5}], [{"delta": {"tool_calls": 5}}], [{"delta": {"tool_calls": ["a"]}}], 5]
)
def test_chunks_of_another_shape_say_nothing(choices: object) -> None:
    assert list(ChunkReader("here").read([{"choices": choices}])) == []


def test_calls_in_a_choice_of_their_own_are_read() -> None:
    call = {"id": "a", "function": {"name": "weather", "arguments": "{}"}}
    choices = [
        {"message": {"content": "I look."}, "finish_reason": "tool_calls"},
        {"message": {"tool_calls": [call]}, "finish_reason": "tool_calls"},
    ]
    reply = read_completion({"choices": choices}, "here")
    assert (reply.text, [one.name for one in reply.tool_calls]) == ("I look.", ["weather"])


def test_content_in_parts_is_text() -> None:
    (chunk,) = ChunkReader("here").read([{"choices": [{"delta": {"content": ["a"]}}]}])
    assert chunk.text == "a"


@pytest.mark.parametrize("amount", ["x", -5, float("nan"), float("inf"), None, [], {}, 10**400])
def test_what_is_no_amount_is_not_counted(amount: object) -> None:
    usage = read_usage({"prompt_tokens": amount, "completion_tokens": amount, "cost": amount})
    assert usage == Usage(model_calls=1)


def test_amounts_are_counted() -> None:
    usage = read_usage({"prompt_tokens": 7, "completion_tokens": "8", "cost": 0.5})
    assert usage == Usage(model_calls=1, prompt_tokens=7, completion_tokens=8, cost_usd=0.5)
    assert read_reply(reply_with(usage={"prompt_tokens": 7}), "here").usage.prompt_tokens == 7


def test_the_words_of_an_error_without_an_end_are_shortened() -> None:
    assert extract_provider_message(DEEP).startswith("[[")


def test_an_event_without_an_end_is_no_event() -> None:
    with pytest.raises(ModelOutputError):
        list(StreamReader("here").feed(b"data: " + DEEP + b"\n\n"))


@pytest.mark.parametrize(
    ("details", "cached", "reasoning"),
    [
        ({"prompt_tokens_details": {"cached_tokens": 5}, "completion_tokens_details": {"reasoning_tokens": 3}}, 5, 3),
        ({"prompt_cache_hit_tokens": 4}, 4, 0),
        ({"prompt_tokens_details": None, "completion_tokens_details": "none"}, 0, 0),
        ({"prompt_tokens_details": {"cached_tokens": -1}}, 0, 0),
    ],
)
def test_the_parts_of_the_totals_are_read(details: dict[str, Any], cached: int, reasoning: int) -> None:
    usage = read_usage({"prompt_tokens": 7, "completion_tokens": 8, **details})
    assert (usage.cached_tokens, usage.reasoning_tokens, usage.total_tokens) == (cached, reasoning, 15)
    assert (usage + usage).cached_tokens == 2 * cached


def event_with(finish_reason: str | None = None, /, **delta: Any) -> dict[str, Any]:
    return {"choices": [{"delta": delta, "finish_reason": finish_reason}]}


TOKENS = {"prompt_tokens": 7, "completion_tokens": 8}
COUNTED = Usage(model_calls=1, prompt_tokens=7, completion_tokens=8)


@pytest.mark.parametrize(
    ("events", "chunks"),
    [
        pytest.param(
            [
                event_with(role="assistant", content=""),
                event_with(content="a"),
                event_with(content="b", reasoning=None),
                event_with("stop"),
                {"choices": [], "usage": TOKENS},
            ],
            [ModelChunk("ab", finish_reason="stop", usage=COUNTED)],
            id="text, its end and its usage are one",
        ),
        pytest.param(
            [event_with(content="a"), event_with(reasoning_content="r"), event_with(content="b")],
            [
                ModelChunk("a"),
                ModelChunk(reasoning="r", provider_fields={"reasoning_content": "r"}),
                ModelChunk("b"),
            ],
            id="reasoning keeps its place",
        ),
        pytest.param(
            [event_with(content="a"), event_with(content="b", refusal="no"), event_with("stop")],
            [ModelChunk("a"), ModelChunk("b", refusal="no"), ModelChunk(finish_reason="stop")],
            id="a refusal keeps its place",
        ),
        pytest.param(
            [{**event_with(content="a"), "usage": {"prompt_tokens": 1}}, {**event_with(content="b"), "usage": TOKENS}],
            [ModelChunk("ab", usage=COUNTED)],
            id="the last usage counts",
        ),
        pytest.param([event_with("", content="a")], [ModelChunk("a")], id="an empty finish reason is none"),
        pytest.param([{"choices": []}], [], id="nothing"),
    ],
)
def test_chunks_that_arrive_together_are_joined(events: list[dict[str, Any]], chunks: list[ModelChunk]) -> None:
    assert list(ChunkReader("here").read(events)) == chunks


def test_the_text_before_an_error_comes_first() -> None:
    chunks = ChunkReader("here").read(
        [event_with(content="a"), {"error": {"message": "overloaded"}}, event_with(content="b")]
    )
    assert next(chunks) == ModelChunk("a")
    with pytest.raises(ModelDownError, match="overloaded"):
        next(chunks)


@pytest.mark.parametrize(
    "message",
    [
        "prompt token count of 130000 exceeds the limit of 128000 (model_max_prompt_tokens_exceeded)",
        "length of prompt_tokens (40000) must be less than max_seq_len (32768).",
        "the max input characters is 20000",
        "Prompt \u8d85\u957f (1261)",
    ],
)
def test_a_prompt_that_is_too_long_is_recognised_in_the_words_of_many_providers(message: str) -> None:
    error = build_status_error(400, {}, json.dumps({"error": {"message": message}}).encode(), "here")
    assert error.code == "ERR_MODEL_CONTEXT"


def test_the_wait_of_a_limit_is_read_from_the_body_where_no_header_has_it() -> None:
    details = [{"@type": "type.googleapis.com/google.rpc.Help"}, {"retryDelay": "27.5s"}]
    body = json.dumps({"error": {"code": 429, "message": "quota", "details": details}}).encode()
    assert build_status_error(429, {}, body, "here").retry_after_s == 27.5
    assert build_status_error(429, {"retry-after": "3"}, body, "here").retry_after_s == 3.0
    assert build_status_error(429, {"retry-after": "0"}, body, "here").retry_after_s == 0.0
    odd = json.dumps({"error": {"message": "quota", "details": [{"retryDelay": "soon"}, 7]}}).encode()
    assert build_status_error(429, {}, odd, "here").retry_after_s is None


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning", "reasoning_text", "thinking"])
def test_thoughts_are_read_under_the_names_of_many_providers(name: str) -> None:
    assert read_reply(encode_reply({"content": "Yes.", name: "Hm."}), "here").reasoning == "Hm."
    (chunk,) = ChunkReader("here").read([event_with(**{name: "Hm."})])
    assert (chunk.reasoning, chunk.text) == ("Hm.", "")


@pytest.mark.parametrize(
    ("value", "thought"),
    [
        (True, ""),
        (5, ""),
        ({"type": "enabled", "budget_tokens": 1024}, ""),
        ([{"type": "redacted_thinking", "data": "x"}, True], ""),
        (["Hm", "."], "Hm."),
        ([{"type": "text", "text": "Hm"}, {"type": "thinking", "thinking": "."}], "Hm."),
        ({"type": "thinking", "thinking": "Hm.", "signature": "s"}, "Hm."),
    ],
)
def test_a_thought_is_a_text_or_blocks_with_text_and_no_switch(value: object, thought: str) -> None:
    for message in (
        {"content": "Yes.", "thinking": value},
        {"content": "Yes.", "reasoning": value, "thinking": thought},
        {"content": [{"type": "thinking", "thinking": value}, {"type": "text", "text": "Yes."}]},
    ):
        reply = read_reply(encode_reply(message), "here")
        assert (reply.text, reply.reasoning) == ("Yes.", thought)
        (chunk,) = ChunkReader("here").read([{"choices": [{"delta": message}]}])
        assert (chunk.text, chunk.reasoning) == ("Yes.", thought)


PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
NOTE = "[image, image/png, 3 bytes: not shown, because it is not text]"


@pytest.mark.parametrize(
    "message",
    [
        {"content": "A cat:", "images": [PICTURE]},
        {"content": [{"type": "text", "text": "A cat:"}, PICTURE]},
    ],
)
def test_a_picture_that_a_model_draws_is_named_in_the_text(message: dict[str, Any]) -> None:
    assert read_reply(encode_reply(message), "here").text == f"A cat:\n\n{NOTE}"
    (chunk,) = ChunkReader("here").read([{"choices": [{"delta": message}]}])
    assert chunk.text == f"A cat:\n\n{NOTE}"


def test_a_picture_elsewhere_is_a_link() -> None:
    picture = {"type": "image_url", "image_url": {"url": "https://pictures.example/cat.png"}}
    reply = read_reply(encode_reply({"content": None, "images": [picture]}), "here")
    assert reply.text.strip() == "[image](https://pictures.example/cat.png)"


@pytest.mark.parametrize(
    "body", [{"base_resp": {"status_msg": "login fail"}}, {"message": {"content": "login fail"}, "done": True}]
)
def test_json_of_another_kind_is_quoted(body: dict[str, Any]) -> None:
    with pytest.raises(ModelOutputError, match="login fail"):
        read_reply(json.dumps(body).encode(), "here")


@pytest.mark.parametrize(
    ("name", "tool"),
    [
        ("search", "search"),
        (" search ", "search"),
        ("functions.search", "search"),
        ("functions.search:0", "search"),
        ("default_api:search", "search"),
        ("default_api.search", "search"),
        ("search<|channel|>commentary", "search"),
        ("search<|constrain|>json", "search"),
        ("functions.list", "functions.list"),
        ("functions.list:0", "functions.list"),
        ("weather.call", "weather.call"),
        ("functions.weather.call", "weather.call"),
        ("functions.weather.call:3", "weather.call"),
        ("weather.call<|channel|>commentary", "weather.call"),
        ("browser.search", None),
        ("research", None),
        ("", None),
    ],
)
def test_a_call_is_of_the_tool_that_its_template_wraps(name: str, tool: str | None) -> None:
    reply = read_reply(encode_reply({"tool_calls": [{"id": "a", "function": {"name": name}}]}), "here")
    names = ("search", "list", "functions.list", "weather", "weather.call")
    offered: list[JsonObject] = [{"type": "function", "function": {"name": one}} for one in names]
    assert [call.name for call in drop_foreign_calls(reply, offered).tool_calls] == ([] if tool is None else [tool])


def test_an_address_that_has_moved_is_named() -> None:
    error = build_status_error(308, {"location": "https://models.example/v1/chat/completions"}, b"", "http://here/v1")
    assert error.message == (
        "http://here/v1 answered 308: it is at https://models.example/v1/chat/completions now; "
        "the address must be changed"
    )
