"""`Translator`: a request into English before it is planned, an answer into the user's language at the end.

By the fast tier, with code, links, citations and quoted words behind signs that the model only has to carry over.
"""

from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass

from agent.core.errors import ModelOutputError
from agent.core.language import name_of
from agent.core.models import JsonObject
from agent.execution.metering import MeteredModels
from agent.execution.protect import ANSWER, REQUEST, Restorer, protect
from agent.execution.run import Run
from agent.prompts import render
from agent.prompts.blocks import block

MAX_REQUEST_CHARS = 6_000
"""A longer request carries a document with it, which is not to be rewritten on the way to the planner."""


@dataclass(frozen=True, slots=True)
class Translator:
    """The translations of one run."""

    run: Run

    async def into_english(self, text: str, language: str) -> str:
        """The request in English. Raises `ModelError` (also for a reply that lost something) and `BudgetError`."""
        if len(text) > MAX_REQUEST_CHARS:
            raise ModelOutputError(f"a request of more than {MAX_REQUEST_CHARS:,} characters is not translated")
        protected = protect(text, REQUEST)
        messages = _messages("translate_request", "request", protected.text, language)
        reply = await MeteredModels(self.run).complete("translator", messages)
        if reply.finish_reason == "length" or not reply.text.strip() or protected.missing(reply.text):
            raise ModelOutputError("the translation of the request came back incomplete", agent_id="translator")
        restorer = Restorer(protected)
        return (restorer.feed(reply.text.strip()) + restorer.end()).strip()

    async def answer(self, text: str, language: str) -> AsyncIterator[str]:
        """The answer in the user's language, piece by piece; what the model lost of the citations and code comes at
        the end. Raises `ModelError` and `BudgetError`."""
        protected = protect(text, ANSWER)
        messages = _messages("translate_answer", "answer", protected.text, language)
        restorer = Restorer(protected)
        length = 0
        async with aclosing(MeteredModels(self.run).stream("translator", messages, tier="fast")) as chunks:
            async for chunk in chunks:
                length += len(chunk.text)
                if chunk.finish_reason == "length":
                    raise ModelOutputError("the translation of the answer was cut off", agent_id="translator")
                piece = restorer.feed(chunk.text) if chunk.text else ""
                if piece:
                    yield piece
        if not length:
            raise ModelOutputError("the translation of the answer came back empty", agent_id="translator")
        yield restorer.end()


def _messages(prompt: str, tag: str, text: str, language: str) -> tuple[JsonObject, ...]:
    return (
        {"role": "system", "content": render(prompt, language=name_of(language))},
        {"role": "user", "content": block(tag, text)},
    )
