"""Tables on stdout: cut to the width of a terminal, whole where another program reads them."""

import sys

from rich.console import Console
from rich.table import Table

WIDEST = 10_000
"""Characters of a line that nobody looks at; long texts are one line each there."""


def print_table(table: Table) -> None:
    """Print a table. Its columns must not wrap when they are to be cut."""
    if sys.stdout.isatty():
        Console().print(table)
        return
    console = Console(width=WIDEST)
    with console.capture() as captured:
        console.print(table)
    for line in captured.get().splitlines():
        print(line.rstrip())
