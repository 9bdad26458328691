"""Renders what the gateway sends: events of a run as frames, one module a protocol, and failures as bodies.

These are pure: a frame depends only on events, so that any door can resume. `sse.py`, `deferred_response.py` and
`error_responses.py` send them.
"""
