"""The table of the fleet: what was measured, the figure, its aim or what would be ideal, and the verdict."""

from collections.abc import Sequence
from dataclasses import dataclass

HEADS = ("what", "figure", "aim or ideal", "verdict")


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the table. `holds` says whether the figure keeps its aim; None where there is only an ideal.

    `details` are printed below the table, such as what the judge has found.
    """

    what: str
    figure: str
    aim: str = ""
    holds: bool | None = None
    details: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        """`ok`, `MISS`, or nothing without an aim."""
        return {None: "", True: "ok", False: "MISS"}[self.holds]


def judge_ends(what: str, accepted: int, ended: int, findings: Sequence[str]) -> Line:
    """The line that says whether all accepted runs have ended once. `findings` are what the judge has found;
    one is enough to miss the aim, and so is that there was no run at all.
    """
    return Line(
        f"{what}: ended of accepted",
        f"{ended} of {accepted}, {len(findings)} faults",
        "all, once",
        bool(accepted) and ended == accepted and not findings,
        tuple(findings),
    )


def render(lines: Sequence[Line], heading: str) -> str:
    """The whole table as text."""
    cells: list[tuple[str, ...]] = [HEADS, *((line.what, line.figure, line.aim, line.verdict) for line in lines)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(HEADS))]
    cells.insert(1, tuple("-" * width for width in widths))
    text = [heading, ""]
    text += ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]
    text += ["", *(f"- {line.what}: {detail}" for line in lines for detail in line.details)]
    return "\n".join(text).rstrip()
