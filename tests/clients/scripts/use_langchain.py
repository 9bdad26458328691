"""LangChain: chat models with either API, structured output, tools, and agents."""

import json
from typing import Any

from checks import MODEL, PERSON, RULES, SUM, TOOL_RESULT, WEATHER, check, contains, equal, run_checks
from langchain.agents import create_agent
from langchain.agents.structured_output import ProviderStrategy
from langchain_core.messages import ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from pydantic import BaseModel


class Person(BaseModel):
    """A person."""

    name: str
    age: int


@tool
def get_weather(city: str) -> str:
    """Returns the weather."""
    return f"{TOOL_RESULT} in {city}"


def connect(room: str, url: str = MODEL, **options: Any) -> ChatOpenAI:
    """A chat model of a gateway."""
    return ChatOpenAI(model=room, base_url=f"{url}/v1", api_key="none", max_retries=0, **options)


@check("chat: answer, usage, stream")
def chat() -> None:
    model = connect("stepgate")
    message = model.invoke(SUM)
    contains(message.content, "42")
    assert message.usage_metadata
    assert message.usage_metadata["total_tokens"] > 0
    pieces = list(model.stream(SUM, stream_usage=True))
    contains("".join(str(piece.content) for piece in pieces), "42")
    assert any(piece.usage_metadata for piece in pieces)
    contains(connect("stepgate", RULES).invoke(SUM).content, "42")


@check("chat: structured output")
def structured() -> None:
    for method in ("json_schema", "json_mode"):
        person = connect("chat").with_structured_output(Person, method=method).invoke(PERSON)
        equal(person, Person(name="Ada", age=36))
    whole: Any = connect("chat").with_structured_output(Person, include_raw=True).invoke(PERSON)
    equal(whole["parsed"], Person(name="Ada", age=36))


@check("chat: tools")
def tools() -> None:
    model = connect("chat").bind_tools([get_weather])
    asked = model.invoke(WEATHER)
    equal(asked.tool_calls[0]["args"], {"city": "Lund"})
    result = ToolMessage(TOOL_RESULT, tool_call_id=asked.tool_calls[0]["id"])
    contains(model.invoke([("user", WEATHER), asked, result]).content, TOOL_RESULT)


@check("agent: tools, stream")
def agent() -> None:
    agent = create_agent(connect("chat"), tools=[get_weather])
    done = agent.invoke({"messages": [("user", WEATHER)]})
    equal([message.type for message in done["messages"]], ["human", "ai", "tool", "ai"])
    contains(done["messages"][-1].content, TOOL_RESULT)
    updates = list(agent.stream({"messages": [("user", WEATHER)]}, stream_mode="messages"))
    contains("".join(str(message.content) for message, _ in updates), TOOL_RESULT)


@check("agent: structured output")
def agent_structured() -> None:
    agent = create_agent(connect("chat"), tools=[], response_format=ProviderStrategy(Person))
    equal(agent.invoke({"messages": [("user", PERSON)]})["structured_response"], Person(name="Ada", age=36))


@check("responses: answer, items, stream")
def responses() -> None:
    model = connect("stepgate", use_responses_api=True)
    message = model.invoke(SUM)
    contains(message.text, "42")
    contains(json.dumps(message.content), "mcp_call")
    assert message.usage_metadata
    contains("".join(piece.text for piece in model.stream(SUM)), "42")


@check("responses: tools, structured output, previous_response_id")
def responses_tools() -> None:
    model = connect("chat", use_responses_api=True, use_previous_response_id=True)
    bound = model.bind_tools([get_weather])
    asked = bound.invoke(WEATHER)
    equal(asked.tool_calls[0]["args"], {"city": "Lund"})
    result = ToolMessage(TOOL_RESULT, tool_call_id=asked.tool_calls[0]["id"])
    contains(bound.invoke([("user", WEATHER), asked, result]).text, TOOL_RESULT)
    equal(model.with_structured_output(Person).invoke(PERSON), Person(name="Ada", age=36))


@check("responses: agent")
async def responses_agent() -> None:
    agent = create_agent(connect("chat", use_responses_api=True), tools=[get_weather])
    done = await agent.ainvoke({"messages": [("user", WEATHER)]})
    contains(done["messages"][-1].text, TOOL_RESULT)


@check("embeddings")
def embeddings() -> None:
    model = OpenAIEmbeddings(model="default", base_url=f"{MODEL}/v1", api_key="none", check_embedding_ctx_length=False)
    equal(len(model.embed_documents(["a", "b"])), 2)


if __name__ == "__main__":
    run_checks()
