"""LiteLLM's SDK as a client, through its provider for endpoints of OpenAI's form."""

import json
from typing import Any

import litellm
from checks import MODEL, PERSON, RULES, SUM, TOOL_RESULT, WEATHER, check, contains, equal, run_checks

CHAT: dict[str, Any] = {"api_base": f"{MODEL}/v1", "api_key": "none"}
TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
SCHEMA = {
    "type": "json_schema",
    "json_schema": {
        "name": "person",
        "schema": {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}},
    },
}


def user(text: str) -> list[Any]:
    """A conversation of one message."""
    return [{"role": "user", "content": text}]


@check("chat: answer, usage")
def chat() -> None:
    done: Any = litellm.completion(model="openai/stepgate", messages=user(SUM), **CHAT)
    contains(done.choices[0].message.content, "42")
    assert done.usage.total_tokens > 0
    rules: Any = litellm.completion(model="openai/stepgate", messages=user(SUM), api_base=f"{RULES}/v1", api_key="none")
    contains(rules.choices[0].message.content, "42")


@check("chat: stream with usage")
def stream() -> None:
    options: Any = {"stream": True, "stream_options": {"include_usage": True}}
    chunks: Any = list(litellm.completion(model="openai/stepgate", messages=user(SUM), **options, **CHAT))
    contains("".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices), "42")
    assert chunks[-1].usage.total_tokens > 0


@check("chat: tools")
def tools() -> None:
    asked: Any = litellm.completion(model="openai/chat", messages=user(WEATHER), tools=[TOOL], **CHAT)
    message = asked.choices[0].message
    equal(json.loads(message.tool_calls[0].function.arguments), {"city": "Lund"})
    result = {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": TOOL_RESULT}
    history = [*user(WEATHER), message, result]
    done: Any = litellm.completion(model="openai/chat", messages=history, tools=[TOOL], **CHAT)
    contains(done.choices[0].message.content, TOOL_RESULT)


@check("chat: structured output")
def structured() -> None:
    done: Any = litellm.completion(model="openai/chat", messages=user(PERSON), response_format=SCHEMA, **CHAT)
    equal(json.loads(done.choices[0].message.content), {"name": "Ada", "age": 36})


@check("chat: asynchronous")
async def asynchronous() -> None:
    done: Any = await litellm.acompletion(model="openai/stepgate", messages=user(SUM), **CHAT)
    contains(done.choices[0].message.content, "42")


@check("responses, also as a stream")
def responses() -> None:
    done: Any = litellm.responses(model="openai/stepgate", input=SUM, **CHAT)
    contains(json.dumps(done.model_dump()), "42")
    events: Any = list(litellm.responses(model="openai/stepgate", input=SUM, stream=True, **CHAT))
    equal(events[-1].type, "response.completed")


@check("embeddings")
def embeddings() -> None:
    vectors: Any = litellm.embedding(model="openai/default", input=["a", "b"], **CHAT)
    equal(len(vectors.data), 2)


if __name__ == "__main__":
    # LiteLLM's own models, whenever one of them is made, and its record of a response, whose usage it has rewritten.
    rewritten = "(?s)Pydantic serializer warnings:.*Expected `ResponseAPIUsage`"
    run_checks("Items? '.*' on TypedDict class", "Accessing the 'model_", rewritten)
