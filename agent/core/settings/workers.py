"""Which process does what, and how much at a time."""

from typing import Literal

from pydantic import BaseModel, Field, field_validator

from agent.core.settings.field_types import NameList


class WorkerSettings(BaseModel):
    """Which process does what, and how much at a time."""

    serve_workers: int = Field(
        default=1, gt=0, le=64, description="processes behind the port; more than 1 needs Linux and AGENT_REDIS_URL"
    )
    dispatch: Literal["local", "queue"] = Field(
        default="local",
        description="who executes runs: the process that accepts them, or any process of a fleet, through a queue in "
        "AGENT_DATABASE_URL (needs the extra `scale`; docs/scale.md)",
    )
    queue_lanes: NameList = Field(
        default=("runs", "batch", "ingest"),
        description="with AGENT_DISPATCH=queue, the lanes from which this process takes work: runs, batch, ingest",
    )
    queue_slots: int = Field(
        default=15,
        ge=0,
        le=1000,
        description="with AGENT_DISPATCH=queue, runs of each lane that this process executes at the same time; 0: "
        "none, workers execute all",
    )
    worker_port: int | None = Field(
        default=None,
        ge=0,
        le=65535,
        description="port of `stepgate worker` for /health and /metrics, at AGENT_HOST; unset: none",
    )
    max_concurrent_runs: int = Field(default=100, gt=0, description="runs that execute in parallel")
    max_queued_runs: int = Field(default=1000, ge=0, description="runs that wait before new ones get 503")
    lease_seconds: float = Field(
        default=15, gt=0.2, description="how long a worker may be silent before another one takes its runs, in seconds"
    )
    drain_seconds: float = Field(
        default=15, ge=0, description="how long the gateway waits for running runs after SIGTERM, in seconds"
    )

    @property
    def takes_ingestion(self) -> bool:
        """Whether this process ingests documents."""
        return self.dispatch == "local" or ("ingest" in self.queue_lanes and self.queue_slots > 0)

    @field_validator("queue_lanes")
    @classmethod
    def _check_lanes(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        unknown = sorted(set(value) - {"runs", "batch", "ingest"})
        if unknown or not value:
            raise ValueError(
                f"{unknown[0] if unknown else 'nothing'!r} is not a lane; the lanes are runs, batch, ingest"
            )
        return tuple(dict.fromkeys(value))
