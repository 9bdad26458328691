"""From a request to a validated plan: the planner, the rules that take over, and the way from reply to plan."""
