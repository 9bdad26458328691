"""LangChain's adapters: the tools of the gateway's MCP server as tools of LangChain."""

from checks import MODEL, SUM, check, contains, run_checks
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.tools import load_mcp_tools

SERVERS = {"stepgate": {"transport": "streamable_http", "url": f"{MODEL}/mcp/all"}}


@check("tools: list and call")
async def tools() -> None:
    found = {tool.name: tool for tool in await MultiServerMCPClient(SERVERS).get_tools()}
    contains(str(await found["calculator"].ainvoke({"expression": "2*21"})), "42")
    contains(str(await found["agent_run"].ainvoke({"task": SUM})), "42")


@check("tools of one session")
async def session() -> None:
    async with MultiServerMCPClient(SERVERS).session("stepgate") as session:
        found = {tool.name: tool for tool in await load_mcp_tools(session)}
        contains(str(await found["agent_run"].ainvoke({"task": SUM})), "42")


@check("resources, prompts")
async def resources() -> None:
    client = MultiServerMCPClient(SERVERS)
    assert await client.get_resources("stepgate")


if __name__ == "__main__":
    run_checks()
