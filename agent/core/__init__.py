"""The shared vocabulary: models, events, run state, errors, settings.

Begin with `models/request.py` `AgentRequest`, `run_state.py` `RunState`, `run_reducer.py` `apply`, `errors.py`
`AgentError` and `settings/__init__.py` `Settings`.
"""
