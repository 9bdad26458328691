"""The MCP server: exposes the agent, tools, skills and runs to MCP clients."""
