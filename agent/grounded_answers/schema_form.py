"""`SchemaForm`: a checked answer put into the JSON schema that a caller asked for, by the model, and checked again."""

import json
from dataclasses import replace

from pydantic import JsonValue

from agent.core.errors import ModelRequestError
from agent.core.models import JsonObject, Tier
from agent.grounded_answers import Tailored
from agent.grounded_answers.errors import TailorSchemaError
from agent.grounded_answers.no_answer_text import contains_no_answer_text
from agent.grounded_answers.schema import asked_schema, nothing_in, problems, read_json, schema_fault
from agent.llm.port import ModelReply
from agent.prompts import render
from agent.run_context.model_calls import MeteredModels
from agent.run_context.outputs import data_block

TRIES = 2
ANSWER_CHARS = 32_000


class SchemaForm:
    """The form of one answer; answers stay as they are where the request names no schema.

    Both ways raise `TailorSchemaError` where the answer does not go into the schema, and for a schema that is none."""

    def __init__(self, models: MeteredModels, question: str, options: JsonObject) -> None:
        self._models = models
        self._question = question
        self._schema = asked_schema(options)

    @property
    def is_asked(self) -> bool:
        """Whether the request names a schema."""
        return self._schema is not None

    def by_rules(self, tailored: Tailored, reason: str) -> Tailored:
        """Without a model only that there is nothing can be said in a schema."""
        if self._schema is None:
            return tailored
        if not _is_nothing(tailored):
            raise _refused(f"an answer in a JSON schema takes a model, and {reason}")
        return self._nothing(tailored, self._schema)

    async def by_model(self, tailored: Tailored, tier: Tier) -> Tailored:
        """The answer as JSON, with nothing in it that the checked answer does not say; asked for twice at most. Raises
        `ModelError`, `BudgetError` too."""
        if self._schema is None:
            return tailored
        if _is_nothing(tailored):
            return self._nothing(tailored, self._schema)
        if fault := schema_fault(self._schema):
            raise _refused(fault)
        messages = self._messages(tailored, self._schema)
        found: list[str] = []
        for _ in range(TRIES):
            reply = await self._reply(messages, tier)
            value, found = self._judged(reply.text, tailored, self._schema)
            if not found:
                return _with(tailored, value)
            messages = (
                *messages,
                {"role": "assistant", "content": reply.text},
                {"role": "user", "content": render("tailor_schema_again", problems="\n".join(f"- {p}" for p in found))},
            )
        raise _refused(f"the model put the answer into it {TRIES} times, and each time wrongly: {'; '.join(found)}")

    async def _reply(self, messages: tuple[JsonObject, ...], tier: Tier) -> ModelReply:
        """A reply under the caller's schema; from an endpoint that takes no such schema, by the prompt alone."""
        try:
            return await self._models.complete("completion", messages, tier=tier)
        except ModelRequestError:
            return await self._models.complete("completion", messages, tier=tier, formed=False)

    def _judged(self, text: str, tailored: Tailored, schema: JsonObject) -> tuple[JsonValue, list[str]]:
        try:
            value = read_json(text)
        except ValueError:
            return None, ["it is no JSON"]
        return value, problems(value, schema, tailored.output, self._question)

    def _messages(self, tailored: Tailored, schema: JsonObject) -> tuple[JsonObject, ...]:
        shown = json.dumps(schema, ensure_ascii=False, indent=1)
        asked = data_block("user_request", self._question, limit=ANSWER_CHARS)
        answer = data_block("answer", tailored.output.content, limit=ANSWER_CHARS)
        return (
            {"role": "system", "content": render("tailor_schema", schema=shown)},
            {"role": "user", "content": f"{asked}\n{answer}"},
        )

    def _nothing(self, tailored: Tailored, schema: JsonObject) -> Tailored:
        fault = schema_fault(schema)
        try:
            if not fault:
                return _with(tailored, nothing_in(schema))
        except ValueError:
            fault = "the documents don't say, and the schema has no room for that (null, an empty list, a text)"
        raise _refused(fault)


def _is_nothing(tailored: Tailored) -> bool:
    return not tailored.output.citations and contains_no_answer_text(tailored.output.content)


def _with(tailored: Tailored, value: JsonValue) -> Tailored:
    content = json.dumps(value, ensure_ascii=False, indent=2)
    return replace(tailored, output=tailored.output.model_copy(update={"content": content}))


def _refused(why: str) -> TailorSchemaError:
    return TailorSchemaError(
        f"the answer cannot be given in the JSON schema that was asked for: {why}", agent_id="tailor"
    )
