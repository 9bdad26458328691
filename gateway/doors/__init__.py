"""Doors: wire requests to `AgentRequest`, one module a protocol."""
