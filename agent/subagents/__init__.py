"""Sub-agents: investigations that a conversation hands on, each with its own tools, prompt and limits."""
