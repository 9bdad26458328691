"""Its sub-agents."""
