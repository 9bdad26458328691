"""Tools as MCP sees them: our own, and the one client for addresses that users and models choose."""
