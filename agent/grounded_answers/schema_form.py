"""`SchemaForm`: lets the model convert a checked answer into the caller's JSON schema, and checks the result."""

import json
from dataclasses import replace

from pydantic import JsonValue

from agent.core.errors import ModelRequestError
from agent.core.models import JsonObject, Tier
from agent.grounded_answers import BuiltAnswer
from agent.grounded_answers.errors import TailorSchemaError
from agent.grounded_answers.no_answer_text import contains_no_answer_text
from agent.grounded_answers.schema import (
    find_schema_error,
    get_requested_schema,
    list_problems,
    make_no_answer,
    parse_json,
)
from agent.llm.port import ModelReply
from agent.prompts import render
from agent.run_context.model_calls import MeteredModels
from agent.run_context.outputs import data_block

TRIES = 2
ANSWER_CHARS = 32_000


class SchemaForm:
    """Converts one answer. Answers stay as they are if the request names no schema.

    Both methods raise `TailorSchemaError` if the answer does not fit the schema or the schema is invalid."""

    def __init__(self, models: MeteredModels, question: str, options: JsonObject) -> None:
        self._models = models
        self._question = question
        self._schema = get_requested_schema(options)

    @property
    def is_requested(self) -> bool:
        """Whether the request names a schema."""
        return self._schema is not None

    def apply_without_model(self, answer: BuiltAnswer, reason: str) -> BuiltAnswer:
        """Returns the answer in the schema, which without a model is possible only if the documents do not say."""
        if self._schema is None:
            return answer
        if not _is_no_answer(answer):
            raise _make_error(f"an answer in a JSON schema takes a model, and {reason}")
        return self._say_no_answer(answer, self._schema)

    async def apply(self, answer: BuiltAnswer, tier: Tier) -> BuiltAnswer:
        """Returns the answer as JSON that holds nothing else than the checked answer. Asks at most `TRIES` times.

        Raises `ModelError` and `BudgetError` too."""
        if self._schema is None:
            return answer
        if _is_no_answer(answer):
            return self._say_no_answer(answer, self._schema)
        if fault := find_schema_error(self._schema):
            raise _make_error(fault)
        messages = self._messages(answer, self._schema)
        found: list[str] = []
        for _ in range(TRIES):
            reply = await self._ask(messages, tier)
            value, found = self._check_reply(reply.text, answer, self._schema)
            if not found:
                return _replace_content(answer, value)
            messages = (
                *messages,
                {"role": "assistant", "content": reply.text},
                {"role": "user", "content": render("tailor_schema_again", problems="\n".join(f"- {p}" for p in found))},
            )
        raise _make_error(f"the model put the answer into it {TRIES} times, and each time wrongly: {'; '.join(found)}")

    async def _ask(self, messages: tuple[JsonObject, ...], tier: Tier) -> ModelReply:
        """Returns a reply under the caller's schema, or by the prompt alone if the endpoint refuses the schema."""
        try:
            return await self._models.complete("completion", messages, tier=tier)
        except ModelRequestError:
            return await self._models.complete("completion", messages, tier=tier, formed=False)

    def _check_reply(self, text: str, answer: BuiltAnswer, schema: JsonObject) -> tuple[JsonValue, list[str]]:
        try:
            value = parse_json(text)
        except ValueError:
            return None, ["it is no JSON"]
        return value, list_problems(value, schema, answer.output, self._question)

    def _messages(self, answer: BuiltAnswer, schema: JsonObject) -> tuple[JsonObject, ...]:
        shown = json.dumps(schema, ensure_ascii=False, indent=1)
        question = data_block("user_request", self._question, limit=ANSWER_CHARS)
        shown_answer = data_block("answer", answer.output.content, limit=ANSWER_CHARS)
        return (
            {"role": "system", "content": render("tailor_schema", schema=shown)},
            {"role": "user", "content": f"{question}\n{shown_answer}"},
        )

    def _say_no_answer(self, answer: BuiltAnswer, schema: JsonObject) -> BuiltAnswer:
        fault = find_schema_error(schema)
        try:
            if not fault:
                return _replace_content(answer, make_no_answer(schema))
        except ValueError:
            fault = "the documents don't say, and the schema has no room for that (null, an empty list, a text)"
        raise _make_error(fault)


def _is_no_answer(answer: BuiltAnswer) -> bool:
    return not answer.output.citations and contains_no_answer_text(answer.output.content)


def _replace_content(answer: BuiltAnswer, value: JsonValue) -> BuiltAnswer:
    content = json.dumps(value, ensure_ascii=False, indent=2)
    return replace(answer, output=answer.output.model_copy(update={"content": content}))


def _make_error(why: str) -> TailorSchemaError:
    return TailorSchemaError(
        f"the answer cannot be given in the JSON schema that was asked for: {why}", agent_id="tailor"
    )
