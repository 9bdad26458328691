"""The MCP client: connects external MCP servers and registers their tools."""
