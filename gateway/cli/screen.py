"""What commands show things with: rich, loaded when there is something to show, for `serve` never shows anything.

Used by attribute (`screen.Table`): that is when it is loaded."""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console
    from rich.markdown import Markdown
    from rich.markup import escape
    from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
    from rich.table import Table

__all__ = [
    "BarColumn", "Console", "DownloadColumn", "Markdown", "MofNCompleteColumn", "Progress", "Table", "TextColumn",
    "TimeElapsedColumn", "escape", "print_table",
]  # fmt: skip

WIDEST = 10_000
"""Characters of a line that nobody looks at; long texts are one line each there."""
_HOMES = {"Console": "console", "Markdown": "markdown", "Table": "table", "escape": "markup"}


def __getattr__(name: str) -> Any:
    """A name of rich."""
    if name in __all__:
        return getattr(import_module(f"rich.{_HOMES.get(name, 'progress')}"), name)
    raise AttributeError(name)


def print_table(table: "Table") -> None:
    """Print a table on stdout: cut to the width of a terminal, whole where another program reads it. Its columns must
    not wrap when they are to be cut."""
    from rich.console import Console  # noqa: PLC0415

    if sys.stdout.isatty():
        Console().print(table)
        return
    console = Console(width=WIDEST)
    with console.capture() as captured:
        console.print(table)
    for line in captured.get().splitlines():
        print(line.rstrip())
