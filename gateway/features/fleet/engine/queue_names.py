"""Names of queues. A lane is several queues: a process takes only jobs that it can do."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from agent.runs.dispatch import Lane

RUN_LANES: tuple[Lane, ...] = ("runs", "batch")
"""The lanes of runs. Their queues carry the digest of what a run finds in its process."""
_DIGEST_CHARS = 12
"""PostgreSQL's channels have 63 bytes at most, of which procrastinate takes 23 for a queue's notifications."""


def name_run_queue(lane: Lane, digest: str) -> str:
    """The queue of the runs of processes with this digest of rooms, roots, servers and skills."""
    return f"{lane}@{digest[:_DIGEST_CHARS]}"


def name_ingest_queue(root: Path | None) -> str:
    """The queue of ingestion: for processes that see the folder `root`, or for any of them."""
    if root is None:
        return "ingest"
    return f"ingest@{hashlib.sha256(str(root).encode()).hexdigest()[:_DIGEST_CHARS]}"


def list_queues(lane: Lane, digest: str, roots: Sequence[Path]) -> list[str]:
    """The queues of a lane from which a process takes jobs that has this digest and may read these roots."""
    if lane == "ingest":
        return [name_ingest_queue(None), *(name_ingest_queue(root) for root in roots)]
    return [name_run_queue(lane, digest)]


def get_lane(queue: str) -> Lane:
    """The lane of a queue."""
    return cast("Lane", queue.partition("@")[0])
