"""The parts of a message of a chat completion as one text, with the lines that stand before each picture."""

from time import thread_time
from typing import Any

from agent.core.models import AgentRequest
from gateway.doors.openai_messages import to_chat_message
from gateway.doors.openai_wire import WireMessage

PICTURE: dict[str, Any] = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}


def read(*parts: dict[str, Any]) -> Any:
    return to_chat_message(WireMessage.model_validate({"role": "user", "content": list(parts)}), 0)


def say(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def test_the_lines_before_each_picture_are_counted() -> None:
    message = read(PICTURE, say("one\ntwo"), PICTURE, PICTURE, say(""), say("four\n"), PICTURE)
    assert message.content == "one\ntwo\n\nfour\n"
    assert message.image_lines == (0, 2, 2, 5)
    assert len(message.content.split("\n")) == 5


def test_many_parts_take_no_time() -> None:
    """Joined again for each part, these took a minute, in which nobody else was served."""
    started = thread_time()
    message = read(*[say("word"), PICTURE] * 10_000)
    assert thread_time() - started < 3.0
    assert message.image_lines[-1] == 10_000


def test_the_lines_above_a_request_are_counted_once_for_all_pictures() -> None:
    lines = tuple(range(20_000))
    request = AgentRequest(prompt="x", images=("data:,",) * len(lines), image_lines=lines)
    text = "above\n" * 100_000 + "x"
    started = thread_time()
    placed = request.place_images(text, "x")
    assert thread_time() - started < 3.0
    assert placed[:2] == (100_000, 100_001)
