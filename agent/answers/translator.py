"""`Translator`: translates a request into English before planning, and the answer into the user's language.

The fast tier translates. Code, links, citations and quotations are masked; the model only copies placeholders.
"""

from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass

from agent.answers.mask_for_translation import KEPT_IN_ANSWER, KEPT_IN_REQUEST, StreamUnmasker, mask
from agent.core.errors import ModelOutputError
from agent.core.models import JsonObject
from agent.llm.port import read_end
from agent.llm.prompts import format_block, render
from agent.run_context.model_calls import MeteredModels, ModelCall
from agent.run_context.run import Run
from agent.text.language import get_language_name

MAX_REQUEST_CHARS = 6_000
"""Characters. A longer request contains a document, which the planner must see unchanged."""


@dataclass(frozen=True, slots=True)
class Translator:
    """The translations of one run."""

    run: Run

    async def translate_request(self, text: str, language: str) -> str:
        """The request in English. Raises `ModelError`, also for an incomplete reply, and `BudgetError`."""
        if len(text) > MAX_REQUEST_CHARS:
            raise ModelOutputError(f"a request of more than {MAX_REQUEST_CHARS:,} characters is not translated")
        protected = mask(text, KEPT_IN_REQUEST)
        messages = _build_messages("translate_request", "request", protected.text, language)
        reply = await MeteredModels(self.run).complete(ModelCall("translator", messages))
        if not reply.is_whole or not reply.text.strip() or protected.find_missing(reply.text):
            raise ModelOutputError("the translation of the request came back incomplete", agent_id="translator")
        restorer = StreamUnmasker(protected)
        return (restorer.feed(reply.text.strip()) + restorer.end()).strip()

    async def translate_answer(self, text: str, language: str) -> AsyncIterator[str]:
        """Yields the answer in the user's language. Lost citations and code come at the end.

        Raises `ModelError` and `BudgetError`.
        """
        protected = mask(text, KEPT_IN_ANSWER)
        messages = _build_messages("translate_answer", "answer", protected.text, language)
        restorer = StreamUnmasker(protected)
        length = 0
        async with aclosing(MeteredModels(self.run).stream(ModelCall("translator", messages))) as chunks:
            async for chunk in chunks:
                if chunk.restarts and length:
                    raise ModelOutputError("the translation began with the model's thoughts", agent_id="translator")
                length += len(chunk.text)
                if chunk.finish_reason is not None and not read_end(chunk.finish_reason).is_whole:
                    raise ModelOutputError("the translation of the answer was cut off", agent_id="translator")
                piece = restorer.feed(chunk.text) if chunk.text else ""
                if piece:
                    yield piece
        if not length:
            raise ModelOutputError("the translation of the answer came back empty", agent_id="translator")
        yield restorer.end()


def _build_messages(prompt: str, tag: str, text: str, language: str) -> tuple[JsonObject, ...]:
    return (
        {"role": "system", "content": render(prompt, language=get_language_name(language))},
        {"role": "user", "content": format_block(tag, text)},
    )
