"""Observation by operators: logs, metrics and traces. All but the logs derive from the runs' own events.

Begin with `metrics.py` `Metrics`, `traces.py` `RunTraces`, `logs.py` `log_run` and `requests.py` `RequestMiddleware`.
"""
