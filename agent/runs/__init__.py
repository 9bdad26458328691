"""Runs: starting, executing, following and recovering them; sessions, rooms, the `steps` trace.

Begin with `run_intake.py` `RunIntake`, the one way in, `service.py` `AgentService`, `run_worker.py` `RunWorker` and
`response.py` `build_response`; a line of the trace comes from `trace_projection.py` `Projection`.
"""
