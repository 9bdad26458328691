"""Input items of the Responses API whose parts are not what they should be."""

from typing import Any

import pytest

from gateway.features.protocols.doors.response_input import convert_input
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
