"""Reads the body of a call that asked for a whole reply and may have got a stream: some proxies always stream."""

import re
from dataclasses import replace

from agent.llm.port import ModelReply
from agent.llm.replies import read_reply
from agent.llm.stream_reader import StreamReader
from agent.llm.streamed_reply import StreamedReply

_STREAM = re.compile(rb"\s*(?:(?:data|event|id|retry)?:|\{[^\n]*\}\s*\n\s*\{)")
"""The beginning of server-sent events, or of objects that fill a line each."""


def read_body(body: bytes, where: str, model: str) -> ModelReply:
    """The completion in a body, whole or as a stream. Raises as `read_reply` and `StreamReader` do."""
    if not _STREAM.match(body.removeprefix(b"\xef\xbb\xbf")):
        return read_reply(body, where)
    reader, reply = StreamReader(where), StreamedReply(model)
    reasoning: list[str] = []
    for chunk in (*reader.feed(body), *reader.end()):
        reply.add_chunk(chunk)
        reply.usage = chunk.usage or reply.usage
        reasoning.append(chunk.reasoning)
    return replace(reply.build_reply(), reasoning="".join(reasoning))
