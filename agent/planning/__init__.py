"""Planning: turns a request into a validated plan, by the planner model or by rules.

Begin with `planner.py` `PlannerAgent`, `request.py` `PlanningRequest`, `planned.py` `Planned` and `validate.py`
`validate_plan`. How a plan refers to results is in plan_references.py of agent.core.
"""
