"""The OpenAI Agents SDK with its defaults: the Responses API of the endpoint in the environment."""

import os

from checks import ADA, MODEL, PERSON, SUM, TOOL_RESULT, WEATHER, check, contains, equal, run_checks

os.environ |= {"OPENAI_BASE_URL": f"{MODEL}/v1", "OPENAI_API_KEY": "none"}  # as its users configure it

from agents import (
    Agent,
    HostedMCPTool,
    OpenAIChatCompletionsModel,
    OpenAIConversationsSession,
    Runner,
    SQLiteSession,
    function_tool,
    set_tracing_disabled,
)
from openai import AsyncOpenAI
from pydantic import BaseModel

set_tracing_disabled(True)  # traces go to OpenAI


class Person(BaseModel):
    """A person."""

    name: str
    age: int


@function_tool
def get_weather(city: str) -> str:
    """Returns the weather."""
    return f"{TOOL_RESULT} in {city}"


@check("a room that plans: answer, items, usage")
async def planned() -> None:
    result = await Runner.run(Agent(name="Planner", model="stepgate"), SUM)
    contains(result.final_output, "42")
    assert result.context_wrapper.usage.total_tokens > 0
    kinds = [getattr(item, "type", "") for response in result.raw_responses for item in response.output]
    contains(kinds, "mcp_call")


@check("a stream")
async def streamed() -> None:
    result = Runner.run_streamed(Agent(name="Planner", model="stepgate"), SUM)
    kinds = [event.type async for event in result.stream_events()]
    contains(result.final_output, "42")
    contains(kinds, "raw_response_event")


@check("tools")
async def tools() -> None:
    agent = Agent(name="Weather", model="chat", instructions="Be brief.", tools=[get_weather])
    result = await Runner.run(agent, WEATHER)
    contains(result.final_output, TOOL_RESULT)
    equal(len(result.raw_responses), 2)
    stream = Runner.run_streamed(agent, WEATHER)
    names = [event.name async for event in stream.stream_events() if event.type == "run_item_stream_event"]
    contains(names, "tool_output")


@check("structured output")
async def structured() -> None:
    result = await Runner.run(Agent(name="Person", model="chat", output_type=Person), PERSON)
    equal(result.final_output, Person(name="Ada", age=36))


@check("sessions: SQLite, previous_response_id")
async def sessions() -> None:
    agent = Agent(name="Chat", model="chat")
    session = SQLiteSession("names")
    await Runner.run(agent, ADA, session=session)
    contains((await Runner.run(agent, "Who am I?", session=session)).final_output, "Ada-Marie")
    first = await Runner.run(agent, ADA)
    second = await Runner.run(agent, "Who am I?", previous_response_id=first.last_response_id)
    contains(second.final_output, "Ada-Marie")


@check("sessions: conversations of the endpoint")
async def conversations() -> None:
    agent = Agent(name="Chat", model="chat")
    session = OpenAIConversationsSession()
    await Runner.run(agent, ADA, session=session)
    contains((await Runner.run(agent, "Who am I?", session=session)).final_output, "Ada-Marie")
    equal(len(await session.get_items()), 4)
    await session.clear_session()


@check("the gateway's tools as a hosted MCP server, with approval")
async def hosted() -> None:
    config = {"type": "mcp", "server_label": "stepgate", "require_approval": "always"}
    asked = []

    def approve(request):
        asked.append(request.data.name)
        return {"approve": True}

    tool = HostedMCPTool(tool_config=config, on_approval_request=approve)
    result = await Runner.run(Agent(name="Planner", model="stepgate", tools=[tool]), SUM)
    contains(result.final_output, "42")
    equal(len(asked), 1)


@check("chat completions")
async def chat_completions() -> None:
    async with AsyncOpenAI() as client:
        model = OpenAIChatCompletionsModel(model="chat", openai_client=client)
        result = await Runner.run(Agent(name="Weather", model=model, tools=[get_weather]), WEATHER)
    contains(result.final_output, TOOL_RESULT)


if __name__ == "__main__":
    run_checks()
