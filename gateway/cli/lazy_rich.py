"""Loads rich when a command prints something; `serve` never does.

Use it by attribute (`lazy_rich.Table`): that is when rich is imported.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

from gateway.cli.terminal_output import get_console_class

if TYPE_CHECKING:
    from rich.console import Console
    from rich.markdown import Markdown
    from rich.markup import escape
    from rich.table import Table

__all__ = [
    "Console", "Markdown", "Table", "escape", "print_rows", "print_table", "show_progress",
]  # fmt: skip

UNLIMITED_WIDTH = 10_000
"""Width of output that is not a terminal: each long text stays one line."""
_MODULES = {"Console": "console", "Markdown": "markdown", "Table": "table", "escape": "markup"}


def __getattr__(name: str) -> Any:
    """A name of rich."""
    if name == "Console":
        return get_console_class()
    if name in __all__:
        return getattr(import_module(f"rich.{_MODULES.get(name, 'progress')}"), name)
    raise AttributeError(name)


ReportProgress = Callable[[str, int, int | None], None]
"""Takes the name of a file, how much is done, and how much there is in all, if that is known."""


def print_table(table: "Table") -> None:
    """Prints a table on stdout: cut to the width of a terminal, whole if another program reads it.

    Columns that may be cut must not wrap.
    """

    if sys.stdout.isatty():
        get_console_class()().print(table)
        return
    console = get_console_class()(width=UNLIMITED_WIDTH)
    with console.capture() as captured:
        console.print(table)
    for line in captured.get().splitlines():
        print(line.rstrip())


def print_rows(
    columns: Sequence[str], rows: Iterable[Sequence[str]], *, empty: str = "", pad_edge: bool = False
) -> None:
    """Prints rows of plain text as a table on stdout; `empty` if that is set and there are no rows."""
    from rich.markup import escape  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    table = Table(*columns, box=None, pad_edge=pad_edge)
    for row in rows:
        table.add_row(*map(escape, row))
    if empty and not table.rows:
        print(empty)
    else:
        print_table(table)


@contextmanager
def show_progress(what: str, *, counts_bytes: bool = False) -> Iterator[ReportProgress]:
    """Shows a progress bar on stderr that counts files, or bytes. Yields the function that moves it."""
    from rich.markup import escape  # noqa: PLC0415
    from rich.progress import (  # noqa: PLC0415
        BarColumn,
        DownloadColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
    )

    count = DownloadColumn() if counts_bytes else MofNCompleteColumn()
    file_column = TextColumn("[dim]{task.fields[file]}[/dim]")
    columns = (TextColumn("{task.description}"), BarColumn(), count, TimeElapsedColumn(), file_column)
    console = get_console_class()(stderr=True)
    # Without a terminal to redraw, all that it would print is an empty line at its end.
    with Progress(*columns, console=console, transient=True, disable=not console.is_interactive) as bar:
        task = bar.add_task(what, total=None, file="")

        def report(name: str, done: int, total: int | None) -> None:
            bar.update(task, completed=done, total=total, file=escape(name[-40:]))

        yield report
