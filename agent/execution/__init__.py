"""Runs a plan: the stages of a run, the loop that drives them, and the execution and judging of steps.

Begin with `executor.py` `RunExecutor`, `workflow.py` `choose_next_stage`, `decide.py` `decide`, `tool_gateway.py`
`call_tool` and `supervisor.py` `StepSupervisorAgent`.
"""
