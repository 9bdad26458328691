"""Policy: guardrails, and when a person must approve."""
