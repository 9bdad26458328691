"""`SchemaForm`: lets the model convert an answer from documents into the caller's JSON schema; checks the result."""

import asyncio
import json

from pydantic import JsonValue

from agent.answers.evidence import contains_no_answer_text
from agent.answers.schema_check import (
    find_schema_error,
    get_requested_schema,
    list_problems,
    make_no_answer,
    parse_json,
)
from agent.core.errors import ModelRequestError, RunError
from agent.core.events import StepOutput
from agent.core.models import JsonObject, TailorOutput, Tier
from agent.llm.port import ModelReply
from agent.llm.prompts import format_block, render
from agent.run_context.model_calls import MeteredModels, ModelCall
from agent.run_context.outputs import format_data_block

TRIES = 2
ANSWER_CHARS = 32_000


class TailorSchemaError(RunError):
    """Raised if the answer cannot be expressed in the JSON schema of the request. The run fails: a caller that parses
    by that schema can use no other answer."""

    code = "ERR_TAILOR_SCHEMA"


class SchemaForm:
    """Converts one answer of a completion step. Answers stay as they are if the request names no schema."""

    def __init__(self, models: MeteredModels, question: str, options: JsonObject) -> None:
        self._models = models
        self._question = question
        self._schema = get_requested_schema(options)

    @property
    def is_requested(self) -> bool:
        """Whether the request names a schema."""
        return self._schema is not None

    async def apply(self, output: StepOutput, tier: Tier | None) -> StepOutput:
        """The output with its answer as JSON that holds nothing else than the checked answer.

        The model is asked at most `TRIES` times. Without a tier, or if the documents do not say, no model is asked.
        Raises `TailorSchemaError` if the answer does not fit the schema or the schema is invalid, `ModelError` and
        `BudgetError`.
        """
        answer = output.tailored
        if self._schema is None or answer is None:
            return output
        if fault := await asyncio.to_thread(find_schema_error, self._schema):
            raise _make_error(fault)
        if not answer.citations and contains_no_answer_text(answer.content):
            value = await asyncio.to_thread(_make_no_answer, self._schema)
        elif tier is None:
            raise _make_error(f"an answer in a JSON schema needs a model, and {output.fallback_reason}")
        else:
            value = await self._convert(answer, self._schema, tier)
        content = json.dumps(value, ensure_ascii=False, indent=2)
        tailored = answer.model_copy(update={"content": content})
        return output.model_copy(update={"value": content, "text": content, "tailored": tailored})

    async def _convert(self, answer: TailorOutput, schema: JsonObject, tier: Tier) -> JsonValue:
        messages = self._build_messages(answer, schema)
        problems: list[str] = []
        for _ in range(TRIES):
            reply = await self._ask(messages, tier)
            try:
                value = parse_json(reply.text)
            except ValueError:
                problems = ["it is not JSON"]
            else:
                problems = await asyncio.to_thread(list_problems, value, schema, answer, self._question)
                if not problems:
                    return value
            messages = (
                *messages,
                {"role": "assistant", "content": reply.text},
                {
                    "role": "user",
                    "content": render(
                        "tailor_schema_again",
                        problems=format_block("problems", "\n".join(f"- {p}" for p in problems)),
                    ),
                },
            )
        raise _make_error(
            f"the model put the answer into it {TRIES} times, and each time wrongly: {'; '.join(problems)}"
        )

    async def _ask(self, messages: tuple[JsonObject, ...], tier: Tier) -> ModelReply:
        """A reply under the caller's schema, or by the prompt alone if the endpoint refuses the schema."""
        try:
            return await self._models.complete(ModelCall("completion", messages, tier=tier))
        except ModelRequestError:
            return await self._models.complete(ModelCall("completion", messages, tier=tier, has_response_format=False))

    def _build_messages(self, answer: TailorOutput, schema: JsonObject) -> tuple[JsonObject, ...]:
        schema_json = json.dumps(schema, ensure_ascii=False, indent=1)
        question = format_data_block("user_request", self._question, limit=ANSWER_CHARS)
        shown_answer = format_data_block("answer", answer.content, limit=ANSWER_CHARS)
        return (
            {"role": "system", "content": render("tailor_schema", schema=schema_json)},
            {"role": "user", "content": f"{question}\n{shown_answer}"},
        )


def _make_no_answer(schema: JsonObject) -> JsonValue:
    try:
        return make_no_answer(schema)
    except ValueError as error:
        why = "the documents don't say, and the schema cannot express that (null, an empty list, a text)"
        raise _make_error(why) from error


def _make_error(why: str) -> TailorSchemaError:
    return TailorSchemaError(f"the answer does not fit the requested JSON schema: {why}", agent_id="tailor")
