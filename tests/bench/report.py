"""The table: a figure a row, each against its aim and against the references of the same run."""

import os
import platform
import sys
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

HEADS = ("what", "Stepgate", "aim", "", "references")
WIDTHS = (48, 26, 11, 4)
"""The most characters of a column; longer cells go on in the next line. With three columns of references and what is
between them a line has at most 140 characters."""
GAP = "  "

Lines = list[str]


class NotMeasuredError(Exception):
    """Raised by a measurement that cannot be made here; its text says why."""


@dataclass(frozen=True, slots=True)
class Row:
    """One figure. `ours`, `aim` and the figures of `references` are in `unit`.

    `references` are by name, in the order of the table; a text says why there is no figure. `at_least` turns the aim
    round (more is better); `note` follows our figure, such as "12 of 14 caught"; `details` go below the table."""

    what: str
    unit: str
    ours: float
    aim: float
    references: Mapping[str, float | str] = field(default_factory=dict)
    at_least: bool = False
    note: str = ""
    details: Sequence[str] = ()

    @property
    def verdict(self) -> str:
        """`ok` or `MISS`, by the figure as it is printed."""
        shown = float(_digits(self.ours))
        return "ok" if (shown >= self.aim if self.at_least else shown <= self.aim) else "MISS"

    def cells(self) -> tuple[str, str, str, str]:
        """The line's cells before the references."""
        ours = f"{_shown(self.ours, self.unit)} {self.note}".strip()
        return self.what, ours, f"{'>=' if self.at_least else '<='} {_shown_aim(self.aim, self.unit)}", self.verdict

    def describe_reference(self, name: str) -> tuple[str, str, str]:
        """A reference's name, its figure, and ours over it; `-` for what could not be had."""
        other = self.references[name]
        if isinstance(other, str):
            return name, "-", ""
        return name, _shown(other, self.unit), f"{_digits(self.ours / other)} x" if other else ""


def compare(row: Row, names: Sequence[str], *, aim: float) -> list[Row]:
    """A row with our figure over the least of these references, or none where none of them could be had."""
    figures = {name: figure for name in names if isinstance(figure := row.references.get(name), float)}
    if not figures:
        return []
    best = min(figures, key=lambda name: figures[name])
    among = "the fastest of them, " if len(names) > 1 else ""
    return [Row(f"{row.what.split()[0]} the same over {among}{best}", "x", row.ours / figures[best], aim)]


def render(
    rows: Sequence[Row],
    *,
    rounds: int,
    versions: Mapping[str, str] | None = None,
    not_measured: Mapping[str, str] | None = None,
    seconds: float | None = None,
) -> str:
    """The whole table as text. `versions` says what the references are, by their names; `not_measured` why there is no
    row, by its number."""
    cells = [row.cells() for row in rows]
    references = [[row.describe_reference(name) for name in row.references] for row in rows]
    widths = [
        min(limit, max(map(len, column)))
        for limit, column in zip(WIDTHS, zip(HEADS[:-1], *cells, strict=True), strict=True)
    ]
    parts = [part for described in references for part in described]
    inner = [max((len(part[column]) for part in parts), default=0) for column in range(3)]
    blocks = [[[head] for head in HEADS], [["-" * width] for width in (*widths, sum(inner) + 2 * len(GAP))]]
    for cell, described in zip(cells, references, strict=True):
        listed = [GAP.join(text.ljust(width) for text, width in zip(part, inner, strict=True)) for part in described]
        blocks.append(
            [*(textwrap.wrap(text, width) for text, width in zip(cell, widths, strict=True)), listed or ["-"]]
        )
    text = [_machine(rounds), "", *(line for block in blocks for line in _lay_out(block, widths)), ""]
    text += [f"{row.what.split()[0]}: {detail}" for row in rows for detail in row.details]
    text += [f"{number}: not measured: {reason}" for number, reason in (not_measured or {}).items()]
    text += _explain_references(rows, versions or {})
    if seconds is not None:
        text.append(f"measured in {seconds:.0f} s")
    return "\n".join(text)


def _lay_out(block: Sequence[Lines], widths: Sequence[int]) -> Lines:
    """The lines of one row, each cell's own lines under each other."""
    height = max(len(cell) for cell in block)
    padded = [[*cell, *[""] * (height - len(cell))] for cell in block]
    return [
        GAP.join(text.ljust(width) for text, width in zip(line, (*widths, 0), strict=True)).rstrip()
        for line in zip(*padded, strict=True)
    ]


def _explain_references(rows: Sequence[Row], versions: Mapping[str, str]) -> Lines:
    """One line for each reference: what it is, or why it could not be had."""
    found: dict[str, str] = {}
    for row in rows:
        for name, figure in row.references.items():
            if isinstance(figure, str):
                found[name] = figure
            else:
                found.setdefault(name, versions.get(name, ""))
    return [f"{name}: {said}" for name, said in found.items() if said]


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
    if 0 < value < 0.1:
        return f"{value:.3f}"
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _shown(value: float, unit: str) -> str:
    return f"{_digits(value)} {unit}".rstrip()


def _shown_aim(aim: float, unit: str) -> str:
    return f"{aim:g} {unit}".rstrip()
