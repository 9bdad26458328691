"""Prometheus metrics: runs, steps, tools and models counted from events; requests counted by `requests.py`.

Names follow Prometheus' conventions: seconds, totals, no unbounded labels. A caller's choice (a room, a tool) is a
label only if the operator has set the list of values.
"""

import os
from collections.abc import Callable, Mapping
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

from agent.core import events as ev
from agent.core.run_state import RunState
from gateway.worker_process import METRICS_ENVIRONMENT

_SECONDS = (0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900)


class Metrics:
    """The counters of one gateway, in their own registry."""

    content_type = "text/plain; version=0.0.4; charset=utf-8"
    """That of `render`."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._runs = self.make_counter("runs_total", "Runs that ended, by room and status.", "room", "status")
        self._run_seconds = self._make_histogram("run_duration_seconds", "From acceptance to the end of a run.", "room")
        self._verdicts = self.make_counter("step_verdicts_total", "Verdicts of the supervisor.", "outcome", "by")
        self._tools = self.make_counter("tool_calls_total", "Tool calls that returned.", "tool", "result")
        self._tool_seconds = self._make_histogram("tool_call_duration_seconds", "Time of a tool call.", "tool")
        self._models = self.make_counter("model_calls_total", "Model calls that ended.", "model", "purpose", "result")
        self._model_seconds = self._make_histogram("model_call_duration_seconds", "Time of a model call.", "model")
        self._tokens = self.make_counter("model_tokens_total", "Tokens of model calls.", "model", "kind")
        self._cost = self.make_counter("model_cost_usd_total", "Cost of model calls where it is known.", "model")
        self._fallbacks = self.make_counter(
            "model_fallbacks_total", "Upstreams that failed where another was asked.", "model", "error"
        )
        self._plans = self.make_counter("plans_total", "Plans, by who made them.", "origin", "fallback")
        self._approvals = self.make_counter("approvals_total", "What became of requests for approval.", "decision")
        self._gates = self.make_counter("gates_total", "Verification gates.", "gate", "result")
        self._pruned = Counter(
            "stepgate_pruned_runs_total", "Runs that were deleted because of their age.", registry=self.registry
        )
        self._requests = self.make_counter("http_requests_total", "Requests.", "method", "route", "status")
        self._request_seconds = self._make_histogram(
            "http_request_duration_seconds", "Time until the last byte.", "route"
        )
        # `livesum`: with several workers behind one port, the sum over those that live.
        self.live = Gauge(
            "stepgate_runs_live", "Runs this gateway holds.", registry=self.registry, multiprocess_mode="livesum"
        )

    def make_counter(self, name: str, text: str, *labels: str) -> Counter:
        """A counter of this gateway; features make their own with it."""
        return Counter(f"stepgate_{name}", text, labels, registry=self.registry)

    def observe_event(self, state: RunState, event: ev.Event) -> None:
        """Counts one event of a run. A run observer."""
        count = _COUNTS.get(type(event.body))
        if count is not None:
            count(self, event.body)
        elif event.body.terminal:
            self._runs.labels(state.room.id, state.status).inc()
            self._run_seconds.labels(state.room.id).observe(max(0.0, event.at - state.created_at))

    def count_pruned_runs(self, count: int) -> None:
        """Counts runs that were deleted because of their age."""
        self._pruned.inc(count)

    def count_request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Counts one HTTP request."""
        self._requests.labels(method, route, str(status)).inc()
        self._request_seconds.labels(route).observe(seconds)

    def render(self) -> bytes:
        """All metrics in Prometheus' text format; with several workers behind one port, those of all."""
        if METRICS_ENVIRONMENT not in os.environ:
            return generate_latest(self.registry)
        registry = CollectorRegistry()
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return generate_latest(registry)

    def _count_plan(self, body: ev.PlanProposed) -> None:
        self._plans.labels(body.plan.origin, str(body.fallback_reason is not None).lower()).inc()

    def _count_approval(self, body: ev.ApprovalDecided) -> None:
        self._approvals.labels(body.decision).inc()

    def _count_verdict(self, body: ev.StepJudged) -> None:
        self._verdicts.labels(body.verdict.outcome.value, body.verdict.by).inc()

    def _count_gate(self, body: ev.GateChecked) -> None:
        self._gates.labels(body.gate, "passed" if body.passed else "failed").inc()

    def _count_tool_call(self, body: ev.ToolReturned) -> None:
        self._tools.labels(body.tool, body.error_code or "ok").inc()
        self._tool_seconds.labels(body.tool).observe(body.duration)

    def _count_model_call(self, body: ev.ModelReturned) -> None:
        self._models.labels(body.model, body.purpose, body.error_code or "ok").inc()
        self._model_seconds.labels(body.model).observe(body.duration)
        self._tokens.labels(body.model, "prompt").inc(body.usage.prompt_tokens)
        self._tokens.labels(body.model, "completion").inc(body.usage.completion_tokens)
        for failed in body.failed_upstreams:
            self._fallbacks.labels(failed.model, failed.error_code).inc()
        if body.usage.cost_usd is not None:
            self._cost.labels(body.model).inc(body.usage.cost_usd)

    def _make_histogram(self, name: str, text: str, *labels: str) -> Histogram:
        return Histogram(f"stepgate_{name}", text, labels, buckets=_SECONDS, registry=self.registry)


_COUNTS: Mapping[type[ev.EventBody], Callable[[Metrics, Any], None]] = {
    ev.PlanProposed: Metrics._count_plan,
    ev.ApprovalDecided: Metrics._count_approval,
    ev.ToolReturned: Metrics._count_tool_call,
    ev.ModelReturned: Metrics._count_model_call,
    ev.StepJudged: Metrics._count_verdict,
    ev.GateChecked: Metrics._count_gate,
}
"""How each type of event is counted, beside the end of a run."""
