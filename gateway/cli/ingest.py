"""`stepgate ingest FOLDER --collection NAME`, and `stepgate collections list|show|delete`."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from agent.core.models import LOCAL_OWNER
from gateway.cli.groups import Group
from gateway.cli.session import with_stepgate
from gateway.cli.tables import print_table

if TYPE_CHECKING:
    from agent.knowledge.library import IngestReport
    from gateway.bootstrap import Stepgate

app = typer.Typer(help="Collections: the documents that answers are looked up in.", cls=Group)

SHOWN_SKIPPED = 20


def ingest(
    folder: Annotated[Path, typer.Argument(help="A folder, or one file.")],
    collection: Annotated[str, typer.Option(help="The collection to read it into.")] = "documents",
) -> None:
    """Read documents into a collection; what has not changed since is skipped."""

    async def work(stepgate: "Stepgate") -> int:
        with _bar() as bar:
            task = bar.add_task("Reading", total=None, file="")

            def progress(name: str, done: int, total: int) -> None:
                bar.update(task, completed=done, total=total, file=escape(name[-40:]))

            report = await stepgate.library.ingest(LOCAL_OWNER, collection, folder.expanduser(), progress=progress)
        _print_report(report)
        return 0 if report.read or report.unchanged else 1

    raise SystemExit(with_stepgate(work))


@app.command("list")
def list_collections() -> None:
    """List the collections."""

    async def work(stepgate: "Stepgate") -> None:
        found = await stepgate.library.collections(LOCAL_OWNER)
        table = Table("collection", "documents", box=None)
        for name, count in found.items():
            table.add_row(escape(name), str(count))
        if found:
            print_table(table)
        else:
            print("No collections yet; `stepgate ingest FOLDER --collection NAME` makes one.")

    with_stepgate(work)


@app.command()
def show(collection: Annotated[str, typer.Argument(help="The collection.")]) -> None:
    """List the documents of a collection."""

    async def work(stepgate: "Stepgate") -> None:
        table = Table("document", "type", "pages", "passages", "read", box=None)
        for document in await stepgate.library.documents(LOCAL_OWNER, collection):
            when = datetime.fromtimestamp(document.at, UTC).astimezone().strftime("%Y-%m-%d %H:%M")
            passages = str(len(document.chunk_ids))
            table.add_row(escape(document.name), document.file_type, str(document.pages or ""), passages, when)
        print_table(table)

    with_stepgate(work)


@app.command()
def delete(collection: Annotated[str, typer.Argument(help="The collection.")]) -> None:
    """Remove a collection with its passages and vectors; your files stay."""

    async def work(stepgate: "Stepgate") -> None:
        count = await stepgate.library.drop(LOCAL_OWNER, collection)
        print(f"removed {collection!r}: {count} document{'s' if count != 1 else ''}")

    with_stepgate(work)


def _bar() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("[dim]{task.fields[file]}[/dim]"),
        console=Console(stderr=True),
        transient=True,
    )


def _print_report(report: "IngestReport") -> None:
    """What became of the files, and why some were not read."""
    print(
        f"{report.collection}: {report.read} read, {report.unchanged} unchanged, {report.removed} removed, "
        f"{len(report.skipped)} skipped; {report.chunks} passages in {report.seconds:.1f} s"
    )
    for skipped in report.skipped[:SHOWN_SKIPPED]:
        print(f"  skipped {skipped.source}: {skipped.reason} ({skipped.code})")
    if len(report.skipped) > SHOWN_SKIPPED:
        rest = ", ".join(f"{code}: {count}" for code, count in report.by_reason.items())
        print(f"  and {len(report.skipped) - SHOWN_SKIPPED} more; in all {rest}")
    for note in report.notes:
        print(f"  note: {note}")
