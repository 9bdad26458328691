"""Pydantic AI: agents with either API of OpenAI, tools, typed output, streams, and the gateway as an MCP server."""

from checks import MODEL, RULES, SUM, TOOL_RESULT, WEATHER, check, contains, equal, run_checks
from pydantic import BaseModel
from pydantic_ai import Agent, NativeOutput
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider


class Person(BaseModel):
    """A person."""

    name: str
    age: int


def provider(url: str = MODEL) -> OpenAIProvider:
    """The endpoint of a gateway."""
    return OpenAIProvider(base_url=f"{url}/v1", api_key="none")


def get_weather(city: str) -> str:
    """The weather."""
    return f"{TOOL_RESULT} in {city}"


APIS = (OpenAIChatModel, OpenAIResponsesModel)


@check("both APIs: answer, usage")
async def answer() -> None:
    for api in APIS:
        result = await Agent(api("stepgate", provider=provider())).run(SUM)
        contains(result.output, "42")
        assert result.usage.output_tokens > 0
    contains((await Agent(OpenAIChatModel("stepgate", provider=provider(RULES))).run(SUM)).output, "42")


@check("both APIs: stream")
async def stream() -> None:
    for api in APIS:
        async with Agent(api("stepgate", provider=provider())).run_stream(SUM) as result:
            contains(await result.get_output(), "42")


@check("both APIs: tools")
async def tools() -> None:
    for api in APIS:
        agent = Agent(api("chat", provider=provider()), tools=[get_weather])
        contains((await agent.run(WEATHER)).output, TOOL_RESULT)


@check("both APIs: typed output as a tool, and natively")
async def typed() -> None:
    for api in APIS:
        by_tool = Agent(api("chat", provider=provider()), output_type=Person)
        equal((await by_tool.run("Report a person.")).output, Person(name="Ada", age=36))
        native = Agent(api("chat", provider=provider()), output_type=NativeOutput(Person))
        equal((await native.run("Invent a person.")).output, Person(name="Ada", age=36))


@check("the gateway as an MCP server")
async def mcp() -> None:
    async with MCPToolset(f"{MODEL}/mcp/all") as tools:
        names = [tool.name for tool in await tools.list_tools()]
        result = await tools.direct_call_tool("calculator", {"expression": "2*21"})
    contains(names, "agent_run")
    contains(str(result), "42")


if __name__ == "__main__":
    run_checks()
