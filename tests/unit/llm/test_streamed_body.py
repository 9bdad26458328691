"""A stream in place of a whole reply."""

import pytest

from agent.core.errors import ModelDownError, ModelOutputError
from agent.llm.streamed_body import read_body

CHUNKS = (
    b'{"choices":[{"delta":{"reasoning_content":"hm"}}]}',
    b'{"choices":[{"delta":{"content":"It is "}}]}',
    b'{"choices":[{"delta":{"content":"42."},"finish_reason":"length"}],"usage":{"prompt_tokens":3,"completion_tokens":2}}',
)


@pytest.mark.parametrize(
    "body",
    [
        b"\n".join(CHUNKS),
        b"".join(b"data: " + chunk + b"\n\n" for chunk in CHUNKS) + b"data: [DONE]\n\n",
        b"\xef\xbb\xbf: waiting\r\n\r\n" + b"".join(b"data:" + chunk + b"\r\n\r\n" for chunk in CHUNKS),
    ],
    ids=["lines", "events", "mark"],
)
def test_a_stream_is_read_as_the_reply_that_it_is(body: bytes) -> None:
    reply = read_body(body, "http://model", "m")
    assert (reply.text, reply.reasoning, reply.finish_reason) == ("It is 42.", "hm", "length")
    assert reply.usage.prompt_tokens == 3


def test_what_a_stream_reports_is_raised() -> None:
    with pytest.raises(ModelDownError, match="melted"):
        read_body(b'data: {"error": "the engine melted"}\n\n', "http://model", "m")
    with pytest.raises(ModelOutputError, match="in mid-reply"):
        read_body(b"data: " + CHUNKS[1] + b"\n\n", "http://model", "m")
