"""AgentDojo through the gateway: what a user's task costs in questions, and what an attacker gets (`__main__.py`)."""
