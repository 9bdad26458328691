"""The part of a final message that the deltas of its stream have not delivered, for `ChunkReader`."""

import json
from collections.abc import Iterable, Iterator

from agent.core.models import JsonObject
from agent.llm.port import ModelToolCall
from agent.llm.streamed_reply import parse_tool_calls


def cut_repeated(text: str, pieces: Iterable[str]) -> str:
    """The part of a message's text that goes beyond its pieces; all of it where it does not repeat them. Some servers
    trim the text of the whole, space it otherwise, or leave its thinking out."""
    before = "".join(pieces)
    if text.startswith(before):
        return text[len(before) :]
    return "" if "".join(text.split()) in "".join(before.split()) else text


def iter_new_calls(calls: Iterable[JsonObject], pieces: list[JsonObject]) -> Iterator[JsonObject]:
    """Yields the calls of a message that its pieces do not hold."""
    before = list(parse_tool_calls(pieces))
    for call in calls:
        (whole,) = parse_tool_calls([call])
        same = next((one for one in before if _is_same_call(one, whole)), None)
        if same is None:
            yield call
        else:
            before.remove(same)


def _is_same_call(one: ModelToolCall, other: ModelToolCall) -> bool:
    """Whether two calls have one id, or say the same: some servers make up another id for the whole."""
    if one.id == other.id or one.name != other.name:
        return one.id == other.id
    try:
        return bool(json.loads(one.arguments) == json.loads(other.arguments))
    except (ValueError, RecursionError):
        return one.arguments == other.arguments
