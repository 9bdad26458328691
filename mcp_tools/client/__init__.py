"""The MCP client: connects external MCP servers and registers their tools.

Begin with `hub.py` `McpHub`, `McpServer`, `config.py` `McpServerConfig`, `tool_pin_store.py` `PinStore` and
`sanitize.py` `sanitize_text`.
"""
