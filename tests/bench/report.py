"""How benchmark figures are printed and CPU is read."""

import os
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float:
    """CPU a process has used, user and system, in seconds (Linux)."""
    fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def table(title: str, rows: list[tuple[str, float, str, float | None]]) -> None:
    """Rows of (name, figure, unit, limit); the ratio is figure over limit, below 1 is within."""
    print(f"\n{title}")
    for name, figure, unit, limit in rows:
        against = "" if limit is None else f"   limit {limit:g} {unit}   ratio {figure / limit:.2f}"
        print(f"  {name:<46} {figure:9.2f} {unit:<6}{against}")
