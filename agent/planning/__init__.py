"""Planning: turns a request into a validated plan, by the planner model or by rules."""
