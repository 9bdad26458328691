"""The official SDK for Python: chat completions, responses, embeddings, models and errors."""

import json
from typing import Any

import openai
from checks import ADA, MODEL, PERSON, RULES, SUM, TOOL_RESULT, WEATHER, check, contains, equal, run_checks
from openai.types.responses import Response
from pydantic import BaseModel


class Person(BaseModel):
    """What structured output is read into."""

    name: str
    age: int


class Weather(BaseModel):
    """The arguments of the tool."""

    city: str


def connect(url: str = MODEL, **options: Any) -> openai.OpenAI:
    """A client of a gateway."""
    return openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0, **options)


def user(text: str) -> list[Any]:
    """A conversation of one message."""
    return [{"role": "user", "content": text}]


CHAT_TOOL: Any = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Returns the weather.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
TOOL: Any = {"type": "function", **CHAT_TOOL["function"], "strict": False}


def step_titles(steps: Any) -> str:
    """The steps of a trace as text."""
    return json.dumps(steps)


@check("chat: answer, steps, metadata, usage")
def chat_with_plan() -> None:
    with connect() as client:
        completion = client.chat.completions.create(model="stepgate", messages=user(SUM), metadata={"mine": "1"})
    completion.model_dump()
    completion.model_dump_json()
    contains(completion.choices[0].message.content, "42")
    extra: Any = completion.model_extra
    contains(step_titles(extra["steps"]), "calculator")
    metadata: Any = getattr(completion, "metadata", None) or extra["metadata"]  # a field since version 3
    equal(metadata["mine"], "1")
    equal(extra["stepgate"]["tool_results"][0]["output"]["value"], "42")
    assert completion.usage
    assert completion.usage.total_tokens > 0
    assert completion._request_id


@check("chat without a model")
def chat_by_rules() -> None:
    with connect(RULES) as client:
        completion = client.chat.completions.create(model="stepgate", messages=user(SUM))
    completion.model_dump()
    contains(completion.choices[0].message.content, "42")
    contains(step_titles((completion.model_extra or {})["steps"]), "calculator")


@check("chat: stream with usage")
def chat_stream() -> None:
    with connect() as client:
        stream = client.chat.completions.create(
            model="stepgate", messages=user(SUM), stream=True, stream_options={"include_usage": True}
        )
        chunks = list(stream)
    for chunk in chunks:
        chunk.model_dump()
    contains("".join(c.choices[0].delta.content or "" for c in chunks if c.choices), "42")
    assert chunks[-1].usage
    contains(step_titles([c.model_extra for c in chunks]), "calculator")


@check("chat: stream helper")
def chat_stream_helper() -> None:
    with (
        connect() as client,
        client.chat.completions.stream(model="chat", messages=user(PERSON), response_format=Person) as stream,
    ):
        kinds = {event.type for event in stream}
        done = stream.get_final_completion()
    equal(done.choices[0].message.parsed, Person(name="Ada", age=36))
    contains(kinds, "content.delta")


@check("chat: asynchronous")
async def chat_async() -> None:
    async with openai.AsyncOpenAI(base_url=f"{MODEL}/v1", api_key="none") as client:
        completion = await client.chat.completions.create(model="stepgate", messages=user(SUM))
        stream = await client.chat.completions.create(model="stepgate", messages=user(SUM), stream=True)
        text = "".join([c.choices[0].delta.content or "" async for c in stream if c.choices])
    contains(completion.choices[0].message.content, "42")
    contains(text, "42")


@check("chat: structured output")
def chat_parse() -> None:
    with connect() as client:
        completion = client.chat.completions.parse(model="chat", messages=user(PERSON), response_format=Person)
    # Not dumped: the SDK's own type of `parsed` warns then, whatever the endpoint has sent.
    equal(completion.choices[0].message.parsed, Person(name="Ada", age=36))


@check("chat: tools, loop")
def chat_tools() -> None:
    with connect() as client:
        first = client.chat.completions.create(model="chat", messages=user(WEATHER), tools=[CHAT_TOOL])
        message = first.choices[0].message
        assert message.tool_calls
        call: Any = message.tool_calls[0]
        equal((call.function.name, json.loads(call.function.arguments)), ("get_weather", {"city": "Lund"}))
        equal(first.choices[0].finish_reason, "tool_calls")
        history: Any = [*user(WEATHER), message, {"role": "tool", "tool_call_id": call.id, "content": TOOL_RESULT}]
        done = client.chat.completions.create(model="chat", messages=history, tools=[CHAT_TOOL])
    contains(done.choices[0].message.content, TOOL_RESULT)


@check("chat: tools, parsed and streamed")
def chat_tools_parsed() -> None:
    tool = openai.pydantic_function_tool(Weather, name="get_weather")
    with connect() as client:
        parsed = client.chat.completions.parse(model="chat", messages=user(WEATHER), tools=[tool])
        with client.chat.completions.stream(model="chat", messages=user(WEATHER), tools=[tool]) as stream:
            streamed = stream.get_final_completion()
    for completion in (parsed, streamed):
        completion.model_dump()
        assert completion.choices[0].message.tool_calls
        equal(completion.choices[0].message.tool_calls[0].function.parsed_arguments, Weather(city="Lund"))


@check("responses: answer, items, usage")
def responses() -> None:
    with connect() as client:
        response = client.responses.create(model="stepgate", input=SUM, metadata={"mine": "1"})
        read = client.responses.retrieve(response.id)
        items = list(client.responses.input_items.list(response.id))
        client.responses.delete(response.id)
        try:
            client.responses.retrieve(response.id)
            raise AssertionError("a deleted response was found")
        except openai.NotFoundError:
            pass
    response.model_dump()
    Response.model_validate(response.to_dict())
    contains(response.output_text, "42")
    equal([item.type for item in response.output], ["reasoning", "mcp_call", "message"])
    assert response.usage
    assert response.usage.total_tokens > 0
    equal(read.to_dict(), response.to_dict())
    equal(items[0].to_dict()["content"], [{"type": "input_text", "text": SUM}])


@check("responses: stream")
def responses_stream() -> None:
    with connect() as client:
        with client.responses.stream(model="stepgate", input=SUM) as stream:
            kinds = [event.type for event in stream]
            final = stream.get_final_response()
        plain = [event.type for event in client.responses.create(model="stepgate", input=SUM, stream=True)]
    final.model_dump()
    contains(final.output_text, "42")
    equal((kinds[0], kinds[-1]), ("response.created", "response.completed"))
    contains(kinds, "response.mcp_call.completed")
    equal(plain[-1], "response.completed")


@check("responses: structured output")
def responses_parse() -> None:
    with connect() as client:
        response = client.responses.parse(model="chat", input=PERSON, text_format=Person)
        with client.responses.stream(model="chat", input=PERSON, text_format=Person) as stream:
            streamed = stream.until_done().get_final_response()
    equal(response.output_parsed, Person(name="Ada", age=36))
    equal(streamed.output_parsed, Person(name="Ada", age=36))


@check("responses: tools, previous_response_id")
def responses_tools() -> None:
    with connect() as client:
        asked = client.responses.create(model="chat", input=WEATHER, tools=[TOOL])
        call: Any = asked.output[0]
        equal((call.type, call.name, json.loads(call.arguments)), ("function_call", "get_weather", {"city": "Lund"}))
        output: Any = {"type": "function_call_output", "call_id": call.call_id, "output": TOOL_RESULT}
        done = client.responses.create(model="chat", input=[output], previous_response_id=asked.id, tools=[TOOL])
    contains(done.output_text, TOOL_RESULT)


@check("responses: conversation by id")
def responses_conversation() -> None:
    with connect() as client:
        first = client.responses.create(model="chat", input=ADA)
        second = client.responses.create(model="chat", input="Who am I?", previous_response_id=first.id)
    contains(second.output_text, "Ada-Marie")
    equal(second.previous_response_id, first.id)


@check("conversations: create, use, items, delete")
def conversations() -> None:
    with connect() as client:
        conversation = client.conversations.create(metadata={"topic": "names"})
        client.responses.create(model="chat", input=ADA, conversation=conversation.id)
        second = client.responses.create(model="chat", input="Who am I?", conversation=conversation.id)
        items = [item.to_dict() for item in client.conversations.items.list(conversation.id, order="asc")]
        read = client.conversations.retrieve(conversation.id)
        client.conversations.delete(conversation.id)
    contains(second.output_text, "Ada-Marie")
    equal(read.metadata, {"topic": "names"})
    contains(json.dumps(items), "Who am I?")


@check("responses: background, resume, cancel")
def responses_background() -> None:
    with connect() as client:
        started = client.responses.create(model="stepgate", input=SUM, background=True)
        events = list(client.responses.retrieve(started.id, stream=True, starting_after=0))
        done = client.responses.retrieve(started.id)
        slow = client.responses.create(model="chat", input="Answer slowly.", background=True)
        cancelled = client.responses.cancel(slow.id)
    equal(events[-1].type, "response.completed")
    contains(done.output_text, "42")
    equal(cancelled.status, "cancelled")


@check("responses: approval")
def responses_approval() -> None:
    with connect() as client:
        asked = client.responses.create(model="careful", input=SUM)
        request = asked.output[-1]
        equal(request.type, "mcp_approval_request")
        reply: Any = {"type": "mcp_approval_response", "approval_request_id": request.id, "approve": True}
        done = client.responses.create(model="careful", input=[reply], previous_response_id=asked.id)
    contains(done.output_text, "42")


@check("responses: count of input tokens")
def responses_input_tokens() -> None:
    with connect() as client:
        counted = client.responses.input_tokens.count(model="chat", input=SUM)
    assert counted.input_tokens > 0


@check("embeddings, models, older completions")
def other_endpoints() -> None:
    with connect() as client:
        rooms = [model.id for model in client.models.list()]
        one = client.models.retrieve("stepgate")
        old = client.completions.create(model="chat", prompt="Say hello.")
        pieces = list(client.completions.create(model="chat", prompt="Say hello.", stream=True))
        vectors = client.embeddings.create(model="default", input=["a", "b"])
    contains(rooms, "chat")
    equal(one.id, "stepgate")
    equal(old.choices[0].text, "Hello from the model.")
    equal("".join(piece.choices[0].text for piece in pieces if piece.choices), "Hello from the model.")
    equal(len(vectors.data), 2)
    equal(len(vectors.data[0].embedding), len(vectors.data[1].embedding))


@check("errors: typed, with param and code")
def errors() -> None:
    with connect() as client:
        unknown = refused(openai.NotFoundError, client.chat.completions.create, model="none", messages=user("x"))
        two = refused(openai.BadRequestError, client.chat.completions.create, model="chat", messages=user("x"), n=2)
        odds = refused(openai.BadRequestError, client.responses.create, model="chat", input="x", top_logprobs=2)
        image = refused(openai.NotFoundError, client.images.generate, model="x", prompt="x")
    equal((unknown.param, unknown.code), ("model", "model_not_found"))
    equal((two.param, two.code), ("n", "unsupported_parameter"))
    equal((odds.param, odds.code), ("top_logprobs", "unsupported_parameter"))
    contains(image.message, "images")


def refused(expected: type[openai.APIStatusError], call: Any, **arguments: Any) -> openai.APIStatusError:
    """The error of a call. Raises AssertionError if it succeeds."""
    try:
        call(**arguments)
    except expected as error:
        return error
    raise AssertionError(f"no {expected.__name__} was raised")


if __name__ == "__main__":
    run_checks()
