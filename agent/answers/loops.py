"""Answers that only repeat themselves, as those of small models do: the stream is ended, and the answer says so."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from agent.answers.sentences import say
from agent.llm.port import ModelChunk
from agent.text.repetition import find_loop

LOOP_REASON = "the model repeated itself until its answer was cut off; rephrase the request, or use another model"
"""Why a run that ends so is not a full success."""
LOOP_CHARS = 500
"""Characters of an answer between two looks for a loop."""


async def end_loops(stream: AsyncGenerator[ModelChunk, None]) -> AsyncGenerator[ModelChunk, None]:
    """Yields the chunks of a reply; closes it as one that is too long once its text is a loop. Without an end of its
    own, a small model on a laptop goes on for as long as the run may take."""
    text, next_look = "", LOOP_CHARS
    async with aclosing(stream):
        async for chunk in stream:
            yield chunk
            text = chunk.text if chunk.restarts else text + chunk.text
            if len(text) >= next_look:
                next_look = len(text) + LOOP_CHARS
                if find_loop(text) >= 0:
                    yield ModelChunk(finish_reason="length")
                    return


def end_looping_answer(text: str, language: str, *, was_streamed: bool) -> str:
    """An answer whose end is a loop, with the sentence in `language` or else in English. Of one that nobody has read
    yet, the repetitions are left out."""
    written = text
    while not was_streamed and (start := find_loop(written)) >= 0:  # it looks at the end of a long text only
        written = written[:start].rstrip()
    return f"{written}\n\n{say('repeated', language)}"
