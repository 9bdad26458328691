"""The MCP server: exposes the agent, tools, skills and runs to MCP clients.

Begin with `mcp_server.py` `build_server`, `views.py` `View`, `toolsets.py` `Toolsets` and `current_principal.py`
`get_current_principal`.
"""
