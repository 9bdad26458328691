"""The table: one line a figure, each against its aim and against the references of the same run."""

import os
import platform
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

HEADS = ("what", "Stepgate", "aim", "", "floor", "peer", "ratio")


@dataclass(frozen=True, slots=True)
class Row:
    """One figure. `ours`, `aim` and the references are in `unit`; a reference that could not be had is its reason.

    `at_least` turns the aim round (more is better); `note` follows our figure, such as "12 of 14 caught"."""

    what: str
    unit: str
    ours: float
    aim: float
    floor: float | str = "-"
    peer: float | str = "-"
    at_least: bool = False
    note: str = ""
    details: Sequence[str] = field(default=())

    @property
    def verdict(self) -> str:
        """`ok` or `MISS`, by the figure as it is printed."""
        shown = float(_digits(self.ours))
        return "ok" if (shown >= self.aim if self.at_least else shown <= self.aim) else "MISS"

    def cells(self) -> tuple[str, ...]:
        """The line's cells, in the order of `HEADS`."""
        ours = f"{_shown(self.ours, self.unit)} {self.note}".strip()
        aim = f"{'>=' if self.at_least else '<='} {self.aim:g}{' ' + self.unit if self.unit else ''}"
        floor, peer = _shown(self.floor, self.unit), _shown(self.peer, self.unit)
        return self.what, ours, aim, self.verdict, floor, peer, self._ratio()

    def _ratio(self) -> str:
        against = (("floor", self.floor), ("peer", self.peer))
        parts = [f"{self.ours / other:.2f} x {name}" for name, other in against if isinstance(other, float) and other]
        return ", ".join(parts)


def render(rows: Sequence[Row], *, peer: str, rounds: int, seconds: float | None = None) -> str:
    """The whole table as text. `peer` is the framework's name and version, or why there is none."""
    heads = tuple(f"peer: {peer}" if head == "peer" else head for head in HEADS)
    lines = [heads, *(row.cells() for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADS))]
    text = [_machine(rounds), ""]
    for number, line in enumerate(lines):
        text.append("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
        if number == 0:
            text.append("  ".join("-" * width for width in widths))
    text += ["", *(f"{row.what.split()[0]}: {detail}" for row in rows for detail in row.details)]
    text.append("floor: a pass-through proxy on aiohttp that makes the same model calls and keeps nothing")
    if seconds is not None:
        text.append(f"measured in {seconds:.0f} s")
    return "\n".join(text)


def _machine(rounds: int) -> str:
    python = ".".join(str(part) for part in sys.version_info[:3])
    return (
        f"Stepgate bench: medians of {rounds} rounds, contenders in turn; {_processor()}, {os.cpu_count()} cores, "
        f"load {os.getloadavg()[0]:.1f}, Python {python}"
    )


def _processor() -> str:
    file = Path("/proc/cpuinfo")
    lines = file.read_text("utf-8").splitlines() if file.exists() else []
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def _digits(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _shown(value: float | str, unit: str) -> str:
    return value if isinstance(value, str) else f"{_digits(value)} {unit}".rstrip()
