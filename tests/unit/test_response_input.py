"""Input items of the Responses API whose parts are not what they should be."""

from time import thread_time
from typing import Any

import pytest

from gateway.features.protocols.doors.response_input import convert_input, list_records
from gateway.render.errors import RequestFormatError


@pytest.mark.parametrize("kind", [[], {}, ["message"], 1, None])
@pytest.mark.parametrize("place", ["item", "part", "output"])
def test_a_type_that_is_no_text_is_refused_by_its_place(kind: Any, place: str) -> None:
    part = {"type": kind, "text": "hi"}
    item: dict[str, Any] = {
        "item": {"type": kind},
        "part": {"type": "message", "role": "user", "content": [part]},
        "output": {"type": "function_call_output", "call_id": "c", "output": [part]},
    }[place]
    with pytest.raises(RequestFormatError, match=r"input\[0\]"):
        convert_input([item])


def test_pictures_custom_calls_and_records_of_other_tools_are_read_as_far_as_they_go() -> None:
    picture = {"type": "input_image", "image_url": "data:image/png;base64,AAAA"}
    items: list[dict[str, Any]] = [
        {"type": "web_search_call", "id": "ws_1", "status": "completed"},
        {"type": "item_reference", "id": "rs_1"},
        {"type": "function_call", "call_id": "a", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "a", "output": [{"type": "input_text", "text": "seen"}, picture]},
        {"type": "custom_tool_call", "call_id": "b", "name": "patch", "input": '*** Begin "x"'},
        {"type": "custom_tool_call_output", "call_id": "b", "output": {"ok": True}},
    ]
    first, seen, second, patched = convert_input(items)
    assert [one.role for one in (first, seen, second, patched)] == ["assistant", "tool", "assistant", "tool"]
    assert isinstance(seen.content, list)
    assert [part.type for part in seen.content] == ["text", "image_url"]
    function = (second.tool_calls or [{}])[0]["function"]
    assert function == {"name": "patch", "arguments": '{"input": "*** Begin \\"x\\""}'}
    assert patched.content == '{"ok": true}'
    assert list_records(items) == {"web_search_call", "item_reference"}


def test_many_calls_in_a_row_are_one_message_and_take_no_time() -> None:
    call: dict[str, Any] = {"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}"}
    items: list[dict[str, Any]] = [{"type": "message", "role": "assistant", "content": "x"}, *[call] * 40_000]
    started = thread_time()
    said, *others = convert_input(items)
    assert thread_time() - started < 3.0
    assert (len(said.tool_calls or ()), others) == (40_000, [])
