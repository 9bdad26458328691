"""Logs, metrics and traces."""

from typing import Literal

from pydantic import BaseModel, Field


class ObservationSettings(BaseModel):
    """Logs, metrics and traces."""

    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="lowest level that is logged"
    )
    log_format: Literal["text", "json"] = Field(
        default="text", description="format of log lines: text for people, or one JSON object a line"
    )
    metrics: bool = Field(default=True, description="serve Prometheus metrics at /metrics")
    otel_endpoint: str | None = Field(
        default=None,
        description=("OTLP endpoint (HTTP) that receives a trace of every run; unset: none (needs the extra `otel`)"),
    )
    otel_content: bool = Field(
        default=False, description="include requests, arguments and answers in those traces, not only names and numbers"
    )
