"""Wire to `AgentRequest`, one file a protocol."""
