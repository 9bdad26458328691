"""Tool calls from streams, as providers cut them."""

from typing import Any

from agent.llm.chunks import ChunkReader
from agent.llm.replies import read_reply
from agent.llm.tool_calls import parse_tool_calls, to_openai_call


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
