"""OpenTelemetry traces of runs, by the GenAI conventions: an `invoke_agent` span with `execute_tool` and `chat` spans.

Spans are built from events and have their times. Needs the extra `otel`.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from agent.core import events as ev
from agent.core.errors import ConfigError
from agent.core.extras import format_install_hint
from agent.core.run_state import RunState

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span, Tracer

AttributeValue = str | int | float | bool


class RunTraces:
    """Turns the events of runs into spans. Without `content`, spans hold names and numbers only."""

    def __init__(self, tracer: "Tracer", *, content: bool) -> None:
        self._tracer = tracer
        self._content = content
        self._open: dict[str, Span] = {}

    def observe_event(self, state: RunState, event: ev.Event) -> None:
        """Handles one event of a run. A run observer."""
        body = event.body
        match body:
            case ev.RunClaimed():
                self._start_run_span(state, event)
            case ev.ToolReturned():
                self._add_tool_span(state, event, body)
            case ev.ModelReturned():
                self._add_model_span(state, event, body)
            case ev.RunSuspended() | ev.RunWaiting():
                self._end_run_span(state, event, None)
            case body if body.terminal:
                failure = body.failure.error_code if isinstance(body, ev.RunFailed) else None
                self._end_run_span(state, event, failure)
            case _:
                return

    def _start_run_span(self, state: RunState, event: ev.Event) -> None:
        at = state.created_at if event.epoch == 1 else event.at
        span = self._tracer.start_span(f"invoke_agent {state.room.id}", start_time=_to_nanoseconds(at))
        span.set_attributes(
            {
                "gen_ai.operation.name": "invoke_agent",
                "gen_ai.agent.name": state.room.id,
                "stepgate.run.id": state.run_id,
                "stepgate.run.epoch": event.epoch,
            }
        )
        if state.request.conversation_id:
            span.set_attribute("gen_ai.conversation.id", state.request.conversation_id)
        if self._content:
            span.set_attribute("stepgate.prompt", state.prompt)
        self._open[state.run_id] = span

    def _end_run_span(self, state: RunState, event: ev.Event, error: str | None) -> None:
        span = self._open.pop(state.run_id, None)
        if span is None:
            return
        span.set_attributes(
            {
                "stepgate.run.status": state.status,
                "gen_ai.usage.input_tokens": state.usage.prompt_tokens,
                "gen_ai.usage.output_tokens": state.usage.completion_tokens,
            }
        )
        if self._content and state.answer is not None:
            span.set_attribute("stepgate.answer", state.answer.text)
        _set_error(span, error)
        span.end(_to_nanoseconds(event.at))

    def _add_tool_span(self, state: RunState, event: ev.Event, body: ev.ToolReturned) -> None:
        attributes: dict[str, AttributeValue] = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": body.tool,
            "gen_ai.tool.call.id": body.call_id,
        }
        if self._content:
            attributes["stepgate.tool.result"] = body.text
        self._add_span(state, f"execute_tool {body.tool}", event, body.duration, attributes, body.error_code)

    def _add_model_span(self, state: RunState, event: ev.Event, body: ev.ModelReturned) -> None:
        attributes: dict[str, AttributeValue] = {
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": body.model,
            "gen_ai.usage.input_tokens": body.usage.prompt_tokens,
            "gen_ai.usage.output_tokens": body.usage.completion_tokens,
            "stepgate.purpose": body.purpose,
        }
        self._add_span(state, f"chat {body.model}", event, body.duration, attributes, body.error_code)

    def _add_span(
        self,
        state: RunState,
        name: str,
        event: ev.Event,
        seconds: float,
        attributes: Mapping[str, AttributeValue],
        error: str | None,
    ) -> None:
        """Adds a span that has ended, with the duration that the event states."""
        from opentelemetry.trace import set_span_in_context  # noqa: PLC0415 - an extra

        parent = self._open.get(state.run_id)
        context = set_span_in_context(parent) if parent is not None else None
        span = self._tracer.start_span(name, context, start_time=_to_nanoseconds(event.at - seconds))
        span.set_attributes(dict(attributes))
        if event.step_id is not None:
            span.set_attribute("stepgate.step.id", event.step_id)
        _set_error(span, error)
        span.end(_to_nanoseconds(event.at))


def build_tracer_provider(endpoint: str) -> "TracerProvider":
    """A provider that exports in the background to `/v1/traces` below an OTLP endpoint.

    Raises `ConfigError` without the extra.
    """
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415 - an extra
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415
    except ImportError as error:
        raise ConfigError(
            f"OTEL_EXPORTER_OTLP_ENDPOINT: OpenTelemetry is not installed; {format_install_hint('otel')}, or unset it"
        ) from error
    made = TracerProvider(resource=Resource.create({"service.name": "stepgate"}))
    made.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{endpoint.rstrip('/')}/v1/traces")))
    return made


def _set_error(span: "Span", code: str | None) -> None:
    if code is None:
        return
    from opentelemetry.trace import StatusCode  # noqa: PLC0415 - an extra

    span.set_attribute("error.type", code)
    span.set_status(StatusCode.ERROR)


def _to_nanoseconds(at: float) -> int:
    return int(at * 1e9)
