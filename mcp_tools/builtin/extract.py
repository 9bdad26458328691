"""`extract`: takes typed fields out of results, with a model that has no tools and sees nothing else.

A plan that needs an address out of a mail refers to the field, not to the mail. The values stay
untrusted: somebody else wrote them.
"""

import json
from typing import Final

from pydantic import ConfigDict, Field, JsonValue

from agent.core.errors import ModelError, ToolError, ToolInputError, ToolOutputError
from agent.core.fenced_json import iterate_json_blocks
from agent.core.models import DeferredModel, JsonObject
from agent.llm.port import ResponseSchema
from agent.llm.prompts import format_block, quote_inline, render
from agent.tools import PlanHints, ToolContext, ToolResult, TypedTool
from agent.tools.extracted_fields import EXTRACT, build_fields_schema, describe_fields, parse_fields, read_values

MAX_CHARS: Final = 60_000
"""Characters of the texts that are read, about 15,000 tokens. Of longer ones the rest is left out, and the result says
so."""
_ANY_FORM: JsonValue = ["string", "array", "object", "number", "boolean"]


class ExtractInput(DeferredModel):
    """Arguments of `extract`."""

    value: JsonValue = Field(description="what to read: a result such as $s1, or a list of them", json_schema_extra={})
    fields: JsonObject = Field(
        description="the fields to return by name: string, number, integer, boolean, date, id, a list of choices, an "
        "array, or an object of these"
    )
    wanted: str = Field(default="", max_length=2_000, description="what is looked for, from the request")


class ExtractOutput(DeferredModel):
    """The fields, by name."""

    model_config = ConfigDict(extra="allow", defer_build=True)


class ExtractTool(TypedTool[ExtractInput, ExtractOutput]):
    """Reads fields out of texts. A text cannot make it do anything: it has no tools, and its reply has only fields."""

    name = EXTRACT
    description = (
        "Take fields out of earlier results as typed values, for the inputs of later steps: names, addresses, dates, "
        "amounts, lists. What is not there is null."
    )
    keywords = ("extract", "field", "value", "take")
    hints = PlanHints(is_for_whole_plans=True)

    def __init__(self) -> None:
        super().__init__()
        properties = self._spec.input_schema["properties"]
        if isinstance(properties, dict) and isinstance(properties["value"], dict):
            properties["value"] = {"description": properties["value"].get("description", ""), "type": _ANY_FORM}

    async def run(self, args: ExtractInput, context: ToolContext) -> ExtractOutput:
        """Asks the model once, and once more with the problems of its reply."""
        fields = parse_fields(args.fields)
        if context.model is None:
            raise ToolError("extract needs a model, and this run has none", agent_id=self.name)
        text = _join_texts(args.value)
        if not text.strip():
            raise ToolInputError("there is nothing to read: the value is empty", agent_id=self.name)
        schema = ResponseSchema("fields", build_fields_schema(fields))
        excerpt = text[:MAX_CHARS]
        wanted = f"Looked for: {quote_inline(args.wanted)}\n" if args.wanted else ""
        messages: list[JsonObject] = [
            {"role": "system", "content": render("extract", fields=describe_fields(fields))},
            {"role": "user", "content": f"{wanted}{format_block('data', excerpt)}\nReply with the JSON object only."},
        ]
        problems = ["the reply has no JSON object"]
        for _ in range(2):
            reply = await self._ask(context, messages, schema)
            extracted = _read_object(reply)
            if extracted is not None:
                values, problems = read_values(fields, extracted)
                if not problems:
                    return ExtractOutput.model_validate(values)
            listed = format_block("problems", "\n".join(f"- {problem}" for problem in problems))
            messages += [
                {"role": "assistant", "content": reply[:4_000] or "(nothing)"},
                {
                    "role": "user",
                    "content": f"That reply does not fit:\n{listed}\nReply with the JSON object only.",
                },
            ]
        raise ToolOutputError(f"the model gave no fields that fit: {'; '.join(problems)}", agent_id=self.name)

    async def _ask(self, context: ToolContext, messages: list[JsonObject], schema: ResponseSchema) -> str:
        assert context.model is not None, "checked by run"
        try:
            return await context.model.ask(tuple(messages), schema=schema)
        except ModelError as error:
            raise ToolError(f"the model could not be asked: {error.message}", agent_id=self.name) from error

    def make_result(self, output: ExtractOutput) -> ToolResult:
        """The fields; as text, one line for each."""
        value = output.model_dump(mode="json")
        lines = (f"{name}: {one if isinstance(one, str) else _encode(one)}" for name, one in value.items())
        return ToolResult(value, "\n".join(lines))


def _join_texts(value: JsonValue) -> str:
    """The texts to read, one after the other; a value of another kind as JSON."""
    parts = value if isinstance(value, list) and any(isinstance(one, str) for one in value) else [value]
    return "\n\n".join(one if isinstance(one, str) else _encode(one) for one in parts if one not in (None, ""))


def _encode(value: JsonValue) -> str:
    return json.dumps(value, ensure_ascii=False)


def _read_object(reply: str) -> JsonObject | None:
    """The JSON object of a reply: the whole reply, a block of code, or what stands between its braces."""
    candidates = [reply, *(block[1] for block in iterate_json_blocks(reply))]
    candidates.append(reply[reply.find("{") : reply.rfind("}") + 1])
    for text in candidates:
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            return value
    return None
