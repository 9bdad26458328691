"""`stepgate ingest SOURCE --collection NAME`, and `stepgate collections list|show|delete|templates|pipeline`."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from agent.core.errors import BadRequestError
from agent.core.models import LOCAL_OWNER
from gateway.cli.groups import Group
from gateway.cli.session import with_stepgate
from gateway.cli.tables import print_table
from gateway.cli.trials import print_trial

if TYPE_CHECKING:
    from agent.knowledge.library import IngestReport
    from gateway.bootstrap import Stepgate

app = typer.Typer(help="Collections: the documents that answers are looked up in.", cls=Group)

SHOWN_SKIPPED = 20


def ingest(
    source: Annotated[str, typer.Argument(help="A folder, a file, a web address, or gdrive:ID.")],
    collection: Annotated[str, typer.Option(help="The collection to read it into.")] = "documents",
    template: Annotated[
        str | None, typer.Option(help="Pipeline template; `stepgate collections templates` lists them.")
    ] = None,
    pipeline: Annotated[Path | None, typer.Option(help="File with a pipeline as JSON, instead of a template.")] = None,
    recursive: Annotated[
        bool | None, typer.Option(help="Also what lies below; folders do unless told not to, web pages if told to.")
    ] = None,
    credentials: Annotated[str | None, typer.Option(help="Name of the stored credential of the source.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Try it on a sample; write nothing.")] = False,
    sample: Annotated[int, typer.Option(help="Files that a dry run tries.", min=1, max=1000)] = 50,
) -> None:
    """Read documents into a collection; what has not changed since is skipped."""

    async def work(stepgate: "Stepgate") -> int:
        from agent.knowledge.sources import source_of_words  # noqa: PLC0415 - not needed for `--help`
        from agent.knowledge.templates import chosen_pipeline, from_template  # noqa: PLC0415

        wanted = source_of_words(source, recursive, credentials)
        chosen = chosen_pipeline(template, None, _text_of(pipeline))
        if dry_run:
            tried = await stepgate.library.dry_run(wanted, chosen or from_template(), sample_count=sample)
            print_trial(tried)
            return 0 if tried.assessment != "blocking_issues" else 1
        with _bar() as bar:
            task = bar.add_task("Reading", total=None, file="")

            def progress(name: str, done: int, total: int | None) -> None:
                bar.update(task, completed=done, total=total, file=escape(name[-40:]))

            report = await stepgate.library.ingest(LOCAL_OWNER, collection, wanted, pipeline=chosen, progress=progress)
        _print_report(report)
        return 0 if report.read or report.unchanged else 1

    raise SystemExit(with_stepgate(work))


@app.command("list")
def list_collections() -> None:
    """List the collections."""

    async def work(stepgate: "Stepgate") -> None:
        found = await stepgate.library.collections(LOCAL_OWNER)
        table = Table("collection", "documents", "pipeline", "state", "vectors", box=None)
        for name, count in found.items():
            row = await stepgate.library.collection(LOCAL_OWNER, name)
            table.add_row(
                escape(name), str(count), row.pipeline.template or "its own", row.status, escape(row.embedder) or "none"
            )
        if found:
            print_table(table)
        else:
            print("No collections yet; `stepgate ingest FOLDER --collection NAME` makes one.")

    with_stepgate(work)


@app.command("templates")
def list_pipelines() -> None:
    """List the pipeline templates, and what each is for."""
    from agent.knowledge.templates import list_templates  # noqa: PLC0415 - not needed for `--help`

    table = Table("template", "for", "parameters", box=None)
    for one in list_templates():
        knobs = ", ".join(f"{knob.name}={knob.default}" for knob in one.parameters)
        table.add_row(one.name, ", ".join(one.suggested_for), escape(knobs))
    print_table(table)


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


@app.command("pipeline")
def show_pipeline(collection: Annotated[str, typer.Argument(help="The collection.")]) -> None:
    """Print the pipeline of a collection as JSON, to be changed and given to `stepgate ingest --pipeline`."""

    async def work(stepgate: "Stepgate") -> None:
        row = await stepgate.library.collection(LOCAL_OWNER, collection)
        print(row.pipeline.model_dump_json(indent=2))

    with_stepgate(work)


@app.command()
def delete(collection: Annotated[str, typer.Argument(help="The collection.")]) -> None:
    """Remove a collection with its passages, vectors and uploads; your files stay."""

    async def work(stepgate: "Stepgate") -> None:
        count = await stepgate.library.drop(LOCAL_OWNER, collection)
        print(f"removed {collection!r}: {count} document{'s' if count != 1 else ''}")

    with_stepgate(work)


def _text_of(pipeline: Path | None) -> str | None:
    """What the file of a pipeline holds. `BadRequestError` when it cannot be read."""
    if pipeline is None:
        return None
    try:
        return pipeline.expanduser().read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadRequestError(f"the pipeline {pipeline} cannot be read: {error}", param="pipeline") from error


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
