"""Ends a stream whose text only repeats itself."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from agent.llm.port import ModelChunk
from agent.text.repetition import find_loop

LOOP_CHARS = 500
"""Characters of an answer between two looks for a loop."""


async def end_loops(stream: AsyncGenerator[ModelChunk, None]) -> AsyncGenerator[ModelChunk, None]:
    """Yields the chunks of a reply; closes it as one that is too long once its text is a loop. Without an end of its
    own, a small model on a laptop goes on for as long as the run may take."""
    text, next_look = "", LOOP_CHARS
    async with aclosing(stream):
        async for chunk in stream:
            yield chunk
            text += chunk.text
            if len(text) >= next_look:
                next_look = len(text) + LOOP_CHARS
                if find_loop(text) >= 0:
                    yield ModelChunk(finish_reason="length")
                    return
