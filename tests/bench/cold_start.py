"""CPU from the command to the first answered request, on a folder that exists and on a fresh one."""

import tempfile
from pathlib import Path

import httpx

from tests.bench.report import cpu_seconds, table
from tests.support.processes import GatewayProcess

LIMIT_S = 1.5


def main() -> None:
    """Print the table."""
    rows: list[tuple[str, float, str, float | None]] = []
    with tempfile.TemporaryDirectory() as folder:
        for name in ("fresh data folder", "existing data folder"):
            with GatewayProcess(Path(folder)) as gateway:
                httpx.get(f"{gateway.url}/health", timeout=30).raise_for_status()
                rows.append((f"cold start, {name}", cpu_seconds(gateway.process.pid), "s", LIMIT_S))
    table("Cold start", rows)
