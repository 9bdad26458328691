"""Planning: turns a request into a validated plan, by the planner model or by rules.

Begin with `planner.py` `PlannerAgent`, `request.py` `PlanningRequest`, `planned.py` `Planned`, `references.py`
`find_references` and `validate.py` `validate_plan`.
"""
