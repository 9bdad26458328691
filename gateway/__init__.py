"""The doors. No logic: a door turns a wire request into an `AgentRequest`, a renderer turns events into frames."""
