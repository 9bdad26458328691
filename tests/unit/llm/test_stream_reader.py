"""`StreamReader`: a reply is the same, whatever form its bytes have and however they are cut."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from agent.core.errors import ModelDownError, ModelError, ModelOutputError, ModelRateLimitError
from agent.llm.port import ModelChunk, ModelReply
from agent.llm.stream_reader import StreamReader
from agent.llm.streamed_reply import StreamedReply
from tests.support.raw_endpoint import DONE, STOP, chunk, say

HELLO = [say("Hello "), say("wörld."), STOP]


def read(data: bytes | Sequence[bytes], size: int = 1_000_000, **options: Any) -> list[ModelChunk]:
    """The chunks of a whole reply that arrives in pieces of `size` bytes, or in the given ones."""
    reader = StreamReader("here", **options)
    pieces = [data[at : at + size] for at in range(0, len(data), size)] if isinstance(data, bytes) else data
    chunks: list[ModelChunk] = []
    for piece in pieces:
        chunks += reader.feed(piece)
        if reader.is_done:
            break
    return chunks + list(reader.end())


def join(chunks: list[ModelChunk]) -> tuple[str, str | None]:
    reply = StreamedReply("m")
    for one in chunks:
        reply.add_chunk(one)
    return reply.text, reply.finish_reason


def say_bytes(text: bytes) -> bytes:
    """A chunk whose text is given as it stands in the JSON."""
    return say("TEXT").replace(b"TEXT", text)


def whole(**message: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello wörld.", **message}}]}


STREAM = b"".join(HELLO)
FORMS: dict[str, bytes] = {
    "as OpenAI sends it": STREAM + DONE,
    "without [DONE]": STREAM,
    "without a finish reason": b"".join(HELLO[:2]) + DONE,
    "without a last newline": STREAM.rstrip(),
    "[DONE] without a last newline": b"".join(HELLO[:2]) + DONE.rstrip(),
    "a byte order mark": b"\xef\xbb\xbf" + STREAM + DONE,
    "CRLF": (STREAM + DONE).replace(b"\n", b"\r\n"),
    "CR": (STREAM + DONE).replace(b"\n", b"\r"),
    "single newlines": (STREAM + DONE).replace(b"\n\n", b"\n"),
    "many newlines": b"\n\n" + (STREAM + DONE).replace(b"\n\n", b"\n\n\n\n"),
    "no space after the colon": (STREAM + DONE).replace(b"data: ", b"data:"),
    "heartbeats and empty data": b": hi\n\n"
    + HELLO[0]
    + b"data:\n\ndata\n\n: ping\n\n"
    + STREAM[len(HELLO[0]) :]
    + DONE,
    "named events and ids": b"id: 1\n" + b"event: message\n" + HELLO[0] + b"event: chunk\n" + HELLO[1] + HELLO[2],
    "a ping as an object": HELLO[0] + b"event: ping\ndata: {}\n\ndata: null\n\n" + HELLO[1] + HELLO[2],
    "choices that are no list": (STREAM + DONE).replace(b'"choices": [', b'"choices": ').replace(b"}]", b"}"),
    "text as a text": (STREAM + DONE).replace(b'"content":', b'"text":'),
    "text that is spoken": (STREAM + DONE)
    .replace(b'{"content": "Hello "}', b'{"audio": {"transcript": "Hello "}}')
    .replace(b'{"content":', b'{"text":'),
    "words between the pieces": HELLO[0] + b"data: ping\n\ndata: still here\n\n" + HELLO[1] + HELLO[2] + DONE,
    "one event over many lines": b"data: "
    + json.dumps(whole(), indent=1).replace("message", "delta").encode().replace(b"\n", b"\ndata: ")
    + b"\n\n"
    + DONE,
    "error: null": b"".join(line.replace(b'"choices"', b'"error": null, "choices"') for line in HELLO) + DONE,
    "an empty error": b"".join(line.replace(b'"choices"', b'"error": "", "choices"') for line in HELLO) + DONE,
    "an error of no values": STREAM.replace(b'"choices"', b'"error": {"code": null, "message": ""}, "choices"'),
    "an empty finish reason": STREAM.replace(b'"finish_reason": null', b'"finish_reason": ""') + DONE,
    "choices with the index 1": STREAM.replace(b'"index": 0', b'"index": 1') + DONE,
    "an end with another index": b"".join(line.replace(b'"index": 0', b'"index": 1') for line in HELLO[:2]) + STOP,
    "no index": STREAM.replace(b'"index": 0, ', b"") + DONE,
    "one JSON object a line": b"\n".join(line[6:].strip() for line in HELLO),
    "a list of chunks": json.dumps([json.loads(line[6:]) for line in HELLO], indent=1).encode(),
    "a whole reply": json.dumps(whole()).encode(),
    "a whole reply over many lines": b"\n" + json.dumps(whole(), indent=2).encode() + b"\n",
    "a whole reply in an event": b"data: " + json.dumps(whole()).encode() + b"\n\n",
    "after [DONE] nothing counts": STREAM + DONE + say("and more"),
    "[DONE] in quotation marks": b"".join(HELLO[:2]) + b'data: "[DONE]"\n\n',
    "[done] in small letters": b"".join(HELLO[:2]) + b"data: [done]\n\n",
    "[DONE] without a field": b"".join(HELLO[:2]) + b"[DONE]\n\n",
    "[DONE] as an event": b"".join(HELLO[:2]) + b"event: done\ndata: {}\n\n",
    "one JSON object a line and [DONE]": b"\n".join(line[6:].strip() for line in HELLO[:2]) + b"\n[DONE]\n",
    "the finish reason null as a word": STREAM.replace(b'"finish_reason": null', b'"finish_reason": "null"') + DONE,
    "an index as text": HELLO[0] + HELLO[1].replace(b'"index": 0', b'"index": "0"') + STOP,
    "an index left out now and then": HELLO[0] + HELLO[1].replace(b'"index": 0, ', b"") + STOP,
    "texts in place of deltas": b"".join(
        b'data: {"choices": [{"index": 0, "text": %s, "finish_reason": %s}]}\n\n' % (json.dumps(text).encode(), end)
        for text, end in (("Hello ", b"null"), ("w\u00f6rld.", b'"stop"'))
    ),
    "a delta that is a text": b'data: {"choices": [{"index": 0, "delta": "Hello w\\u00f6rld."}]}\n\n' + STOP,
    "a whole reply beside an empty delta": b"data: "
    + json.dumps({"choices": [{**whole()["choices"][0], "delta": None}]}).encode()
    + b"\n\n",
    "a text beside an empty delta": b'data: {"choices": [{"index": 0, "delta": {}, "text": "Hello w\\u00f6rld."}]}\n\n'
    + STOP,
    "the whole reply behind its pieces": b"".join(HELLO[:2]) + b"data: " + json.dumps(whole()).encode() + b"\n\n",
    "the whole reply behind a part of it": HELLO[0] + b"data: " + json.dumps(whole()).encode() + b"\n\n",
    "an empty message before the pieces": b'data: {"choices": [{"delta": {}, "message": {"content": ""}}]}\n\n'
    + b"".join(HELLO[:2])
    + b"data: "
    + json.dumps(whole()).encode()
    + b"\n\n",
    "choices with growing indexes": HELLO[0]
    + HELLO[1].replace(b'"index": 0', b'"index": 1')
    + STOP.replace(b'"index": 0', b'"index": 2')
    + DONE,
    "a report of success in the event of the end": b"".join(HELLO[:2])
    + b'event: done\ndata: {"code": 200, "message": "success"}\n\n',
    "details in the event of the end": b"".join(HELLO[:2]) + b'event: done\ndata: {"detail": "3 tokens"}\n\n',
    "a report of success between the pieces": HELLO[0]
    + b'data: {"status": 200, "message": "ok"}\n\n'
    + HELLO[1]
    + HELLO[2],
    "the last piece in the event of the end": b"".join(HELLO[:2]) + b"event: done\n" + HELLO[2],
    "an error after the end": STREAM + b'data: {"error": "no usage today"}\n\n' + DONE,
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("size", [1, 5, 64, 1_000_000])
def test_every_form_of_a_stream_is_the_same_reply(form: str, size: int) -> None:
    assert join(read(FORMS[form], size)) == ("Hello wörld.", "stop")


def test_a_piece_is_told_when_its_line_has_come() -> None:
    reader = StreamReader("here")
    assert [one.text for one in reader.feed(b'data: {"choices":[{"delta":{"content":"a"}}]}\n')] == ["a"]
    assert [one.text for one in reader.feed(b'\ndata: {"choices":[{"delta":{"content":"b"}}]}\r\n')] == ["b"]


@pytest.mark.parametrize(
    "pieces",
    [
        [say_bytes(b"Hi \\ud83d"), say_bytes(b"\\ude00!")],
        [say_bytes(b"Hi \xf0\x9f"), say_bytes(b"\x98\x80!")],
        [say_bytes(b"Hi \xf0"), say_bytes(b"\x9f\x98"), say_bytes(b"\x80!")],
        [say("Hi 😀!")[:-75], say("Hi 😀!")[-75:]],
    ],
    ids=["surrogates", "bytes", "single bytes", "the wire"],
)
def test_a_character_that_two_pieces_share_is_whole(pieces: list[bytes]) -> None:
    assert join(read([*pieces, STOP, DONE]))[0] == "Hi 😀!"


def test_half_a_character_that_stays_alone_is_replaced() -> None:
    half = say_bytes(b"a\\ud83d")
    assert join(read([half, say("b"), STOP]))[0] == "a\ufffdb"
    assert join(read([half, STOP]))[0] == "a\ufffd"
    assert join(read([say_bytes(b"\\ude00"), say_bytes(b"\xff"), STOP]))[0] == "\ufffd" * 2


def test_reasoning_and_refusals_are_whole_too() -> None:
    pieces = [chunk({"reasoning_content": "x"}).replace(b'"x"', end) for end in (b'"\\ud83d"', b'"\\ude00"')]
    assert "".join(one.reasoning for one in read([*pieces, say("a"), STOP])) == "😀"
    reply = StreamedReply("m")
    for one in read([*pieces, say("a"), STOP]):
        reply.add_chunk(one)
    assert reply.build_reply().provider_fields == {"reasoning_content": "😀"}


def test_a_message_behind_deltas_adds_what_they_do_not_say() -> None:
    def say_whole(**message: Any) -> bytes:
        return b"data: " + json.dumps({"choices": [{"index": 0, "message": message}]}).encode() + b"\n\n"

    def call(city: str, call_id: str) -> dict[str, Any]:
        return {"id": call_id, "function": {"name": "weather", "arguments": json.dumps({"city": city})}}

    def build(*pieces: bytes) -> ModelReply:
        reply = StreamedReply("m")
        for one in read(b"".join(pieces)):
            reply.add_chunk(one)
        return reply.build_reply()

    assert build(say("Hello"), say_whole(content=" world")).text == "Hello world"
    assert build(say(" Hello "), say_whole(content="Hello")).text == " Hello "
    oslo, rome = call("Oslo", "a"), call("Rome", "b")
    for whole_calls in ([oslo, rome], [rome], [{**oslo, "id": "c"}, rome]):
        reply = build(chunk({"tool_calls": [{"index": 0, **oslo}]}), say_whole(tool_calls=whole_calls))
        assert [(one.id, one.arguments) for one in reply.tool_calls] == [
            ("a", '{"city": "Oslo"}'),
            ("b", '{"city": "Rome"}'),
        ]
    thought = chunk({"reasoning_content": "Hm."})
    refusal = build(thought, say_whole(content=None, reasoning_content="Hm.", refusal="I can't."))
    assert (refusal.text, refusal.refused) == ("I can't.", True)
    assert refusal.provider_fields == {"reasoning_content": "Hm."}


def test_a_call_in_the_form_of_a_single_one_is_read() -> None:
    pieces = [
        chunk({"function_call": {"name": "weather", "arguments": '{"city": '}}),
        chunk({"function_call": {"arguments": '"Oslo"}'}}),
    ]
    reply = StreamedReply("m")
    for one in read([*pieces, DONE]):
        reply.add_chunk(one)
    (call,) = reply.build_reply().tool_calls
    assert (call.name, call.arguments) == ("weather", '{"city": "Oslo"}')


def test_one_of_several_choices_is_followed() -> None:
    both = chunk({"content": "no"}).replace(b'"index": 0', b'"index": 1')
    pieces = [say("Hello "), both, say("world."), both, STOP]
    assert join(read(pieces)) == ("Hello world.", "stop")
    together = {"choices": [{"index": 1, "delta": {"content": "no"}}, {"index": 0, "delta": {"content": "yes"}}]}
    assert join(read([b"data: " + json.dumps(together).encode() + b"\n\n", both, STOP])) == ("yes", "stop")


@pytest.mark.parametrize(
    ("data", "error", "words"),
    [
        (
            b'data: {"error": {"message": "quota of tenant 7", "code": 429}}\n\n',
            ModelRateLimitError,
            "quota of tenant 7",
        ),
        (b'data: {"error": "overloaded"}\n\n', ModelDownError, "overloaded"),
        (b'data: {"choices": [{"index": 0, "error": {"message": "filtered"}}]}\n\n', ModelDownError, "filtered"),
        (b'event: error\ndata: {"message": "out of memory"}\n\n', ModelDownError, "out of memory"),
        (b"event: error\ndata: out of memory\n\n", ModelDownError, "out of memory"),
        (b'event: error\ndata: {"choices": []}\n\n', ModelDownError, "choices"),
        (b"event: error\ndata: [1]\n\n", ModelDownError, "reported an error"),
        (b'error: {"code": 500, "message": "slot unavailable"}\n\n', ModelDownError, "slot unavailable"),
        (b'data: {"object": "error", "message": "too long", "code": 400}\n\n', ModelError, "too long"),
        (b'data: {"detail": "Not authenticated"}\n\n', ModelDownError, "Not authenticated"),
        (b'{"error": {"message": "no such model", "code": 404}}', ModelError, "no such model"),
        (b'data: {"choices": [{"delta": {}, "finish_reason": "error"}]}\n\n', ModelOutputError, "unspecified error"),
        (b'data: {"code": 500, "message": "worker lost"}\n\n', ModelDownError, "worker lost"),
        (b'data: {"status": "error", "message": "no quota left"}\n\n', ModelDownError, "no quota left"),
        (b'data: {"success": false, "message": "no quota left"}\n\n', ModelDownError, "no quota left"),
        (b'data: {"errors": [{"message": "bad key"}]}\n\n', ModelDownError, "bad key"),
        (b'{"message": "slow down", "code": "429"}', ModelRateLimitError, "slow down"),
        (
            say("half") + b'data: {"choices": [{"index": 0, "delta": {"error": "tool lost"}}]}\n\n',
            ModelDownError,
            "tool lost",
        ),
        (b"<!DOCTYPE html><title>Sign\n in &amp; go</title>", ModelOutputError, "web page ('Sign in & go')"),
        (b"<html>" + b"x" * 50_000, ModelOutputError, "web page instead"),
        (b"", ModelOutputError, "with an empty body"),
        (b"\r\n \n", ModelOutputError, "with an empty body"),
        (b"Internal Server Error", ModelOutputError, "Internal Server Error"),
        (b'{"message": {"content": "a"}, "done": true}', ModelOutputError, "not a completion"),
        (b'{"choices": [{"message": {"content": "half', ModelOutputError, "without JSON"),
        (b"[1, 2]", ModelOutputError, "not a completion"),
        (say("half"), ModelOutputError, "in mid-reply"),
        (say("half") + b"data: {", ModelOutputError, "in mid-reply"),
        (say("half")[6:] + b"{", ModelOutputError, "in mid-reply"),
        (b"data: 5\n\n", ModelOutputError, "objects"),
        (b"data: Internal Server Error\n\n", ModelOutputError, "Internal Server Error"),
        (b"data: out of memory\n\n" + DONE, ModelOutputError, "out of memory"),
        (say("half") + b"data: worker lost\n\n", ModelOutputError, "worker lost"),
        (say("half") + b'data: {"choices": [\n\n' + STOP, ModelOutputError, "no JSON"),
        (b"data: {}}\n\n", ModelOutputError, "no JSON"),
        (b'event: done\ndata: {"detail": "Not authenticated"}\n\n', ModelDownError, "Not authenticated"),
        (say("half") + b'event: done\ndata: {"error": "worker lost"}\n\n', ModelDownError, "worker lost"),
        (say("half") + b'{"error": {"message": "no quota left", "code": 429}}\n', ModelRateLimitError, "no quota left"),
        (say("half") + b'{\n "error": {\n  "message": "no quota left"\n }\n}\n', ModelDownError, "no quota left"),
        (say("half") + b"<html><title>502 Bad Gateway</title></html>", ModelOutputError, "502 Bad Gateway"),
        (b'data: {"message": "no quota left"}\n\n' + DONE, ModelOutputError, "no quota left"),
        (
            b'data: {"choices": null, "base_resp": {"status_code": 1008, "status_msg": "no balance left"}}\n\n',
            ModelOutputError,
            "no balance left",
        ),
        (
            say("half")
            + b'data: {"choices": [{"delta": {}, "finish_reason": "stop", "native_finish_reason": "error"}]}\n\n',
            ModelOutputError,
            "ended its reply with an unspecified error",
        ),
        (b"data: " + b"[" * 100_000 + b"\n\n", ModelOutputError, "no JSON"),
    ],
)
@pytest.mark.parametrize("size", [1, 1_000_000])
def test_what_is_no_completion_is_named(data: bytes, error: type[ModelError], words: str, size: int) -> None:
    with pytest.raises(error) as raised:
        read(data, size)
    assert words in raised.value.message


def test_a_choice_that_speaks_beside_the_followed_one_is_left_out() -> None:
    other = say("no").replace(b'"index": 0', b'"index": 1')
    assert join(read([say("Hello "), other, say("world."), DONE])) == ("Hello world.", "stop")


@pytest.mark.parametrize("ends", [[DONE], [STOP.replace(b'"index": 0', b'"index": 1'), DONE]])
def test_two_choices_without_an_end_of_the_first_are_not_one_reply(ends: list[bytes]) -> None:
    other = say("B").replace(b'"index": 0', b'"index": 1')
    assert join(read([say("A"), other, *ends])) == ("A", "stop")


@pytest.mark.parametrize("size", [1, 1_000_000])
def test_a_field_that_the_standard_does_not_know_is_ignored_also_in_an_empty_reply(size: int) -> None:
    assert join(read(b"x-request: 7\n" + STOP + DONE, size)) == ("", "stop")


CALL = {"index": 0, "id": "a", "function": {"name": "weather", "arguments": "{}"}}
CALLS = chunk({"tool_calls": [CALL]}, "tool_calls").replace(b'"choices": [{"index": 0', b'"choices": [{"index": 1')
MESSAGES = [{"content": "I look."}, {"content": None, "tool_calls": [CALL]}]


@pytest.mark.parametrize(
    "pieces",
    [
        [say("I look."), CALLS, DONE],
        [say("I look."), chunk({}, "tool_calls"), CALLS, DONE],
        [json.dumps({"choices": [{"message": one, "finish_reason": "tool_calls"} for one in MESSAGES]}).encode()],
    ],
)
def test_calls_in_a_choice_of_their_own_are_read(pieces: list[bytes]) -> None:
    reply = StreamedReply("m")
    for one in read(pieces):
        reply.add_chunk(one)
    built = reply.build_reply()
    assert (built.text, built.finish_reason, [one.name for one in built.tool_calls]) == (
        "I look.",
        "tool_calls",
        ["weather"],
    )


def test_the_text_before_an_error_comes_first() -> None:
    reader = StreamReader("here")
    chunks = iter(reader.feed(say("a") + b'data: {"error": "overloaded"}\n\n'))
    assert next(chunks).text == "a"
    with pytest.raises(ModelDownError, match="overloaded"):
        next(chunks)


def test_a_whole_reply_keeps_its_calls_and_its_reasoning() -> None:
    function = {"name": "f", "arguments": '{"a": 1}'}
    calls = [{"id": "c1", "type": "function", "function": function}, {"id": "c2", "function": function}]
    body = whole(content=None, tool_calls=calls, reasoning_content="hm")
    body["usage"] = {"prompt_tokens": 3, "completion_tokens": 4}
    reply = StreamedReply("m")
    for one in read(json.dumps(body).encode()):
        reply.add_chunk(one)
        assert one.usage is None or one.usage.total_tokens == 7
    built = reply.build_reply()
    assert [(call.id, call.name) for call in built.tool_calls] == [("c1", "f"), ("c2", "f")]
    assert (built.finish_reason, built.provider_fields) == ("tool_calls", {"reasoning_content": "hm"})


def test_calls_without_a_finish_reason_end_as_calls() -> None:
    call = {"index": 0, "id": "c", "function": {"name": "f", "arguments": "{}"}}
    assert join(read([chunk({"tool_calls": [call]}), DONE]))[1] == "tool_calls"


@pytest.mark.parametrize(
    ("name", "expected"),
    [("max_tokens", "length"), ("MAX_TOKENS", "length"), ("end_turn", "stop"), ("length", "length")],
)
def test_finish_reasons_have_openais_names(name: str, expected: str) -> None:
    assert join(read([say("a"), chunk({}, name), DONE]))[1] == expected


@pytest.mark.parametrize("native", ["network_error", "MALFORMED_FUNCTION_CALL"])
def test_a_fault_that_only_the_providers_own_reason_names_leaves_the_reply_unfinished(native: str) -> None:
    end = chunk({}, "stop").replace(b'"finish_reason"', f'"native_finish_reason": "{native}", "finish_reason"'.encode())
    assert join(read([say("a"), end, DONE]))[1] == native.lower()
    usual = end.replace(native.encode(), b"end_turn")
    assert join(read([say("a"), usual, DONE]))[1] == "stop"


def test_a_tab_within_a_text_is_read() -> None:
    assert join(read([say_bytes(b"a\tb"), say("c"), STOP, DONE])) == ("a\tbc", "stop")


@pytest.mark.parametrize("piece", ["word ", "two words and more of them ", "x" * 3000, "字字"])
@pytest.mark.parametrize("together", [1, 200])
def test_a_reply_that_does_not_end_is_cut_at_its_limit(piece: str, together: int) -> None:
    reader = StreamReader("here", max_tokens=400)
    chunks: list[ModelChunk] = []
    for _ in range(2_000):
        chunks += reader.feed(say(piece) * together)
        if reader.is_done:
            break
    text, finish = join(chunks + list(reader.end()))
    tokens = text.count(piece) if piece in ("word ", "字字") else len(text) / 4
    assert finish == "length"
    assert 380 <= tokens <= 420


@pytest.mark.parametrize(
    "delta",
    [
        {"reasoning_content": "hm "},
        {"tool_calls": [{"function": {"arguments": "abc"}}]},
        {"tool_calls": [{"index": 7, "id": "c", "function": {"name": "f", "arguments": ""}}]},
        {"reasoning_details": [{"type": "reasoning.encrypted", "data": "abc"}]},
    ],
)
def test_reasoning_and_arguments_count_too(delta: dict[str, Any]) -> None:
    reader = StreamReader("here", max_tokens=100)
    pieces = 0
    while not reader.is_done:
        list(reader.feed(chunk(delta)))
        pieces += 1
        assert pieces < 1_000
    assert 95 <= pieces <= 106


def test_a_reply_within_its_limit_is_not_cut() -> None:
    assert join(read([say("word ")] * 100 + [STOP], max_tokens=100)) == ("word " * 100, "stop")
    single = [say(letter) for letter in "internationalisation " * 20]  # one character a piece: 420 pieces
    assert join(read([*single, STOP], max_tokens=105))[1] == "stop"


def test_the_pieces_of_a_call_may_stand_alone_without_a_list() -> None:
    call = {"index": 0, "id": "", "type": "function", "function": {"name": "now", "arguments": "{}"}}
    chunks = read(chunk({"tool_calls": call}, finish="eos_token") + DONE)
    calls: list[Any] = [one for piece in chunks for one in piece.tool_calls]
    assert [one["function"]["name"] for one in calls] == ["now"]


@pytest.mark.parametrize("place", ["choice", "x_groq"])
def test_the_usage_is_read_wherever_a_provider_puts_it(place: str) -> None:
    usage = {"prompt_tokens": 11, "completion_tokens": 3}
    last: dict[str, Any] = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    if place == "choice":
        last["choices"][0]["usage"] = usage
    else:
        last["x_groq"] = {"usage": usage}
    chunks = read(say("Hello") + b"data: " + json.dumps(last).encode() + b"\n\n" + DONE)
    (counted,) = [one.usage for one in chunks if one.usage]
    assert (counted.prompt_tokens, counted.completion_tokens) == (11, 3)
