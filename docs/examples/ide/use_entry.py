"""Connects to the servers of an IDE's file by MCP, as the IDE does: `python use_entry.py mcp.json`."""

import asyncio
import json
import sys
from pathlib import Path

from mcp import Client


async def main(text: str) -> None:
    print(text)
    async with Client(json.loads(text)["mcpServers"]["stepgate"]["url"]) as client:
        for tool in (await client.list_tools()).tools:
            print(tool.name)
        result = await client.call_tool("agent_run", {"task": "What is 17.5 * 240?"})
        print(*(block.text for block in result.content if block.type == "text"))


asyncio.run(main(Path(sys.argv[1]).read_text("utf-8")))
