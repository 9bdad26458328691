"""The tables of the evaluation's worlds, made from a seed: the same rows on every machine."""

import csv
import io
from collections.abc import Callable, Iterator
from functools import cache
from random import Random
from typing import NamedTuple

from gateway.features.evaluation.task_sets import load_tables

SEED = 20_260_101

Row = tuple[str | int, ...]


class Draw:
    """Numbers from a seed. Uses only `Random.random`, whose sequence Python guarantees across its releases."""

    def __init__(self, table: str) -> None:
        self._random = Random(f"{SEED}:{table}")  # noqa: S311 - test data

    def pick_integer(self, low: int, high: int) -> int:
        """An integer from `low` to `high`, both included."""
        return low + int(self._random.random() * (high - low + 1))

    def pick(self, values: tuple[str, ...]) -> str:
        """One of the values."""
        return values[self.pick_integer(0, len(values) - 1)]

    def pick_day(self, year: int) -> str:
        """A date of that year; never later than the 28th of a month."""
        return f"{year}-{self.pick_integer(1, 12):02}-{self.pick_integer(1, 28):02}"


class Table(NamedTuple):
    """A table of a set of tasks: the names of its columns, and what makes its rows."""

    header: tuple[str, ...]
    iter_rows: Callable[[Draw], Iterator[Row]]


@cache
def render_table(set_name: str, name: str) -> str:
    """A table of a set as CSV with a header. Raises `KeyError` for an unknown name."""
    table = load_tables(set_name)[name]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.header)
    writer.writerows(table.iter_rows(Draw(name)))
    return text.getvalue()
