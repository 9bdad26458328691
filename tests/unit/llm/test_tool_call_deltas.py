"""Tool calls from streams, as providers cut them."""

import json
from collections.abc import Callable
from time import process_time
from typing import Any

import pytest

from agent.llm.chunks import ChunkReader
from agent.llm.replies import read_reply
from agent.llm.streamed_reply import parse_tool_calls, to_openai_call


def delta(index: int | None = 0, call_id: str | None = None, name: str | None = None, **fields: Any) -> dict[str, Any]:
    function = {
        key: value for key, value in {"name": name, "arguments": fields.pop("arguments", None)}.items() if value
    }
    piece = {"index": index, "id": call_id, "function": function, **fields}
    return {key: value for key, value in piece.items() if value is not None}


def parse_deltas(deltas: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(call.name, call.arguments) for call in parse_tool_calls(deltas)]


def test_pieces_are_joined_by_their_index() -> None:
    deltas = [
        delta(0, "a", "f"),
        delta(1, "b", "g"),
        delta(0, arguments='{"x"'),
        delta(1, arguments="{}"),
        delta(0, arguments=": 1}"),
    ]
    assert parse_deltas(deltas) == [("f", '{"x": 1}'), ("g", "{}")]


def test_calls_that_all_carry_index_0_are_told_apart_by_their_id() -> None:
    deltas = [delta(0, "a", "f", arguments='{"x": 1}'), delta(0, "b", "f", arguments='{"x": 2}')]
    assert parse_deltas(deltas) == [("f", '{"x": 1}'), ("f", '{"x": 2}')]


def test_calls_without_index_and_id_are_told_apart_by_their_names() -> None:
    deltas = [delta(None, "", "f", arguments={"x": 1}), delta(None, "", "g", arguments={"y": "å"})]
    assert parse_deltas(deltas) == [("f", '{"x": 1}'), ("g", '{"y": "å"}')]
    assert len({call.id for call in parse_tool_calls(deltas)} - {""}) == 2


def test_an_id_or_a_name_that_is_repeated_begins_no_call() -> None:
    deltas = [delta(0, "a", "f", arguments='{"x"'), delta(0, "a", "f", arguments=": 1}")]
    assert parse_deltas(deltas) == [("f", '{"x": 1}')]
    deltas = [delta(0, "", "f", arguments='{"x"'), delta(0, "", "f", arguments=": 1}")]
    assert parse_deltas(deltas) == [("f", '{"x": 1}')]


def test_a_new_id_in_every_piece_begins_no_call() -> None:
    deltas = [
        delta(0, "a", "f"),
        delta(0, "b", arguments='{"x"'),
        delta(0, "c", arguments=": 1}"),
        delta(1, "d", "g"),
        delta(1, "e", "g", arguments='{"y"'),
        delta(1, "f", "g", arguments=": 2}"),
    ]
    assert parse_deltas(deltas) == [("f", '{"x": 1}'), ("g", '{"y": 2}')]
    assert [call.id for call in parse_tool_calls(deltas)] == ["a", "d"]
    without_index = [delta(None, "a", "f"), delta(None, "b", arguments='{"x"'), delta(None, "c", arguments=": 1}")]
    assert parse_deltas(without_index) == [("f", '{"x": 1}')]


def test_a_name_in_two_pieces_is_one_name() -> None:
    arguments = delta(0, arguments='{"city": "Lund"}')
    for first, second in (("get_", "weather"), ("get_weather", "get_weather"), ("get_", "get_weather")):
        assert parse_deltas([delta(0, "a", first), delta(0, "", second), arguments]) == [
            ("get_weather", '{"city": "Lund"}')
        ]
    assert parse_deltas([delta(0, "a", "get_"), delta(0, "b", "weather"), arguments])[0][0] == "get_weather"


def test_calls_without_arguments_are_told_apart() -> None:
    assert parse_deltas([delta(0, "a", "f"), delta(1, "b", "f")]) == [("f", "{}"), ("f", "{}")]
    assert parse_deltas([delta(None, "a", "f"), delta(None, "b", "f")]) == [("f", "{}"), ("f", "{}")]
    assert parse_deltas([delta(0, "a", "f", arguments="{}"), delta(0, "b", "f", arguments="{}")]) == [("f", "{}")] * 2


def test_a_character_that_two_pieces_of_arguments_share_is_whole() -> None:
    deltas = [delta(0, "a", "f", arguments='{"x": "\ud83d'), delta(0, arguments='\ude00"}')]
    assert parse_deltas(deltas) == [("f", '{"x": "😀"}')]


def test_a_providers_own_fields_stay_where_they_were() -> None:
    call = {**delta(0, "a", "f", arguments="{}", extra_content={"google": {"thought_signature": "s"}})}
    call["function"]["provider_specific_fields"] = {"k": 1}
    (parsed,) = parse_tool_calls([call])
    joined = to_openai_call(parsed.id, parsed.name, parsed.arguments, parsed.extra)
    function = {"name": "f", "arguments": "{}", "provider_specific_fields": {"k": 1}}
    assert joined == {"id": "a", "type": "function", "function": function, "extra_content": call["extra_content"]}


def test_parts_of_a_content_are_read_for_what_they_are() -> None:
    parts = '[{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "Yes."}]'
    reply = read_reply(b'{"choices": [{"message": {"content": ' + parts.encode() + b"}}]}", "here")
    assert (reply.text, reply.reasoning) == ("Yes.", "hm")
    parts_of_delta = [{"type": "refusal", "refusal": "No."}]
    (chunk,) = ChunkReader("here").read([{"choices": [{"delta": {"content": parts_of_delta}}]}])
    assert (chunk.text, chunk.refusal) == ("", "No.")


ONE, OTHER = '{"x": 1}', '{"y": 2}'
LATER = {"index": 0, "function": {"name": "f"}}
FORMS_OF_A_CALL: dict[str, list[dict[str, Any]]] = {
    "an empty object before the pieces": [
        delta(0, "a", "f", arguments="{}"),
        delta(0, arguments='{"x":'),
        delta(0, arguments=" 1}"),
    ],
    "an empty object before the whole": [delta(0, "a", "f", arguments="{}"), delta(0, "a", "f", arguments=ONE)],
    "the whole behind the pieces": [
        delta(0, "a", "f", arguments='{"x":'),
        delta(0, arguments=" 1}"),
        delta(0, "a", "f", arguments=ONE),
    ],
    "the whole behind the pieces, without a name": [
        delta(0, "a", "f", arguments='{"x":'),
        delta(0, arguments=" 1}"),
        delta(0, arguments=ONE),
    ],
    "with each piece all before it": [delta(0, "a", "f", arguments=text) for text in ('{"x"', '{"x":', ONE)],
    "a name behind the arguments": [delta(0, "a", arguments='{"x":'), delta(0, arguments=" 1}"), LATER],
    "a name behind the id": [delta(0, "a"), delta(0, name="f", arguments=ONE)],
    "an index as text": [delta(0, "a", "f", arguments='{"x":'), {**delta(0, arguments=" 1}"), "index": "0"}],
    "another index for a further piece": [delta(0, "a", "f", arguments='{"x":'), delta(1, arguments=" 1}")],
    "another index for a piece with its id": [delta(0, "a", "f", arguments='{"x":'), delta(1, "a", arguments=" 1}")],
    "the arguments as JSON once more": [delta(0, "a", "f", arguments=json.dumps(ONE))],
}


@pytest.mark.parametrize("form", FORMS_OF_A_CALL)
def test_a_call_is_the_same_however_it_is_cut(form: str) -> None:
    assert parse_deltas(FORMS_OF_A_CALL[form]) == [("f", ONE)]


def test_pieces_that_look_like_repetitions_are_pieces() -> None:
    deltas = [delta(0, "a", "f", arguments='{"a": '), delta(0, arguments='{"a": '), delta(0, arguments="1}}")]
    assert parse_deltas(deltas) == [("f", '{"a": {"a": 1}}')]
    cut = [delta(0, "a", "f", arguments=ONE), delta(0, arguments=OTHER)]
    assert parse_deltas(cut) == [("f", ONE + OTHER)], "what does not fit is not left out"


def test_a_piece_that_begins_like_the_one_before_it_may_be_a_part_of_the_whole() -> None:
    deltas = [delta(0, "a", "f", arguments=text) for text in ('{"x": ', '{"x": 1}', "}")]
    assert parse_deltas(deltas) == [("f", '{"x": {"x": 1}}')]


@pytest.mark.parametrize("index", [0, None])
@pytest.mark.parametrize("arguments", ["{}", OTHER])
def test_another_name_with_the_same_id_begins_a_call(index: int | None, arguments: str) -> None:
    deltas = [delta(index, "a", "list", arguments="{}"), delta(index, "a", "get", arguments=arguments)]
    assert parse_deltas(deltas) == [("list", "{}"), ("get", arguments)]
    assert len({call.id for call in parse_tool_calls(deltas)}) == 2
    in_pieces = [*deltas[:1], delta(index, "a", "get"), delta(index, "a", arguments=arguments)]
    assert parse_deltas(in_pieces) == [("list", "{}"), ("get", arguments)]


TEXTS = [f'"text {number} {{in \\"quotes\\"}} and more of it"' for number in range(8_000)]
LONG = ['{"texts": [', ", ".join(TEXTS[:1]), *(f", {text}" for text in TEXTS[1:]), "]}"]
OBJECTS = ['{"objects": [{}', *(f', {{"{number}": {{"of": "some length"}}}}' for number in range(8_000)), "]}"]
WAYS_TO_NAME: dict[str, Callable[[int], dict[str, Any]]] = {
    "the id and the name in each delta": lambda _: {"index": 0, "call_id": "a", "name": "f"},
    "the name in each delta": lambda _: {"index": 0, "name": "f"},
    "another id in each delta": lambda number: {"index": 0, "call_id": str(number), "name": "f"},
    "another index in each delta": lambda number: {"index": number, "name": None if number else "f"},
    "another index in each delta, with its id": lambda number: {
        "index": number,
        "call_id": "a",
        "name": None if number else "f",
    },
}


@pytest.mark.parametrize("way", WAYS_TO_NAME)
@pytest.mark.parametrize("pieces", [LONG, OBJECTS], ids=["texts", "objects"])
def test_arguments_in_thousands_of_pieces_are_joined_in_linear_time(way: str, pieces: list[str]) -> None:
    deltas = [delta(**WAYS_TO_NAME[way](number), arguments=piece) for number, piece in enumerate(pieces)]
    start = process_time()
    assert parse_deltas(deltas) == [("f", "".join(pieces))]
    assert process_time() - start < 2


@pytest.mark.parametrize("piece", ["{}", ONE, "}", "{", " ", '"', "\\"])
def test_one_piece_thousands_of_times_takes_no_time(piece: str) -> None:
    deltas = [delta(0, "a", "f", arguments="{}"), *(delta(0, "a", "f", arguments=piece) for _ in range(8_000))]
    start = process_time()
    ((name, arguments),) = parse_deltas(deltas)
    assert process_time() - start < 2
    assert (name, arguments) == ("f", {"{}": "{}", " ": "{}", ONE: ONE}.get(piece, piece * 8_000))


def test_calls_whose_later_pieces_have_other_indexes_are_joined_in_linear_time() -> None:
    starts = [delta(number, f"id{number}", "f", arguments='{"x":') for number in range(8_000)]
    rest = [delta(8_000 + number, f"id{number}", arguments=" 1}") for number in range(8_000)]
    start = process_time()
    assert parse_deltas([*starts, *rest]) == [("f", ONE)] * 8_000
    assert process_time() - start < 2


def test_a_second_call_whose_pieces_have_different_indexes_is_one() -> None:
    deltas = [
        delta(0, "a", "f", arguments='{"x":'),
        delta(0, arguments=" 1}"),
        delta(0, "b", "g"),
        delta(1, arguments=OTHER),
    ]
    assert parse_deltas(deltas) == [("f", ONE), ("g", OTHER)]


@pytest.mark.parametrize("index", [0, 1])
def test_calls_with_one_id_get_ids_of_their_own(index: int) -> None:
    calls = parse_tool_calls([delta(0, "f", "f", arguments=ONE), delta(index, "f", "f", arguments=OTHER)])
    assert [call.arguments for call in calls] == [ONE, OTHER]
    assert calls[0].id == "f" != calls[1].id
    whole = {"tool_calls": [{"id": "f", "function": {"name": "f", "arguments": text}} for text in (ONE, OTHER)]}
    first, second = read_reply(json.dumps({"choices": [{"message": whole}]}).encode(), "here").tool_calls
    assert first.id == "f" != second.id


@pytest.mark.parametrize("arguments", [{"x": 1}, "{}" + ONE, json.dumps(ONE)])
def test_a_call_without_a_function_and_odd_arguments_of_a_whole_reply(arguments: object) -> None:
    for call in ({"name": "f", "arguments": arguments}, {"function": {"name": "f", "arguments": arguments}}):
        body = json.dumps({"choices": [{"message": {"tool_calls": [{"id": "a", **call}]}}]}).encode()
        (read,) = read_reply(body, "here").tool_calls
        assert (read.name, read.arguments, read.extra) == ("f", ONE, {})
    assert parse_deltas([{"index": 0, "id": "a", "function": {"name": "f", "arguments": "null"}}]) == [("f", "{}")]
