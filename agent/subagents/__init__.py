"""Sub-agents: delegated investigations, each with its own tools, prompt and limits."""
