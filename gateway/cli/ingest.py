"""`stepgate ingest SOURCE`, and `stepgate collections list|show|delete|reindex|templates|pipeline`."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent.core.errors import BadRequestError
from agent.core.models import LOCAL_OWNER
from agent.core.plurals import many
from gateway.cli import screen
from gateway.cli.groups import Group
from gateway.cli.session import operator, with_stepgate
from gateway.cli.trials import print_trial

if TYPE_CHECKING:
    from agent.knowledge.library import IngestReport
    from gateway.bootstrap import Stepgate

app = typer.Typer(help="Collections: the documents that answers are looked up in.", cls=Group)

SHOWN_SKIPPED = 20
INCOMPLETE = (
    "incomplete: the last reading broke off. What it had read is there and can be searched, as is everything from "
    "before; `stepgate ingest` with the same source goes on from there."
)


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
    password_file: Annotated[
        Path | None, typer.Option(help="File with the password of protected PDFs; only you may be able to read it.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Try it on a sample; write nothing.")] = False,
    sample: Annotated[int, typer.Option(help="Files that a dry run tries.", min=1, max=1000)] = 50,
) -> None:
    """Read documents into a collection; what has not changed since is skipped."""

    async def work(stepgate: "Stepgate") -> int:
        from agent.core.credentials import password_in  # noqa: PLC0415
        from agent.knowledge.sources import source_of_words  # noqa: PLC0415 - not needed for `--help`
        from agent.knowledge.templates import chosen_pipeline, from_template  # noqa: PLC0415

        wanted = source_of_words(source, recursive, credentials)
        password = password_in(password_file) if password_file is not None else None
        chosen = chosen_pipeline(template, None, _text_of(pipeline))
        if dry_run:
            tried = await stepgate.library.dry_run(wanted, chosen or from_template(), sample_count=sample)
            print_trial(tried)
            return 0 if tried.assessment != "blocking_issues" else 1
        with reading_bar() as bar:
            task = bar.add_task("Reading", total=None, file="")

            def progress(name: str, done: int, total: int | None) -> None:
                bar.update(task, completed=done, total=total, file=screen.escape(name[-40:]))

            report = await stepgate.library.ingest(
                LOCAL_OWNER, collection, wanted, pipeline=chosen, password=password, progress=progress
            )
        _print_report(report)
        return 0 if report.read or report.unchanged else 1

    raise SystemExit(with_stepgate(work))


@app.command("list")
def list_collections() -> None:
    """List the collections."""

    async def work(stepgate: "Stepgate") -> None:
        found = await stepgate.library.collections(LOCAL_OWNER)
        broken_off = False
        table = screen.Table("collection", "documents", "pipeline", "state", "vectors", box=None)
        for name, count in found.items():
            row = await stepgate.library.collection(LOCAL_OWNER, name)
            broken_off |= row.status == "incomplete"
            table.add_row(
                screen.escape(name),
                str(count),
                row.pipeline.template or "its own",
                row.status,
                screen.escape(row.embedder) or "none",
            )
        if found:
            screen.print_table(table)
            if broken_off:
                print(INCOMPLETE)
        else:
            print("No collections yet; `stepgate ingest FOLDER --collection NAME` makes one.")

    with_stepgate(work)


@app.command("templates")
def list_pipelines() -> None:
    """List the pipeline templates, and what each is for."""
    from agent.knowledge.templates import list_templates  # noqa: PLC0415 - not needed for `--help`

    table = screen.Table("template", "for", "parameters", box=None)
    for one in list_templates():
        knobs = ", ".join(f"{knob.name}={knob.default}" for knob in one.parameters)
        table.add_row(one.name, ", ".join(one.suggested_for), screen.escape(knobs))
    screen.print_table(table)


@app.command()
def show(collection: Annotated[str, typer.Argument(help="The collection.")]) -> None:
    """List the documents of a collection."""

    async def work(stepgate: "Stepgate") -> None:
        table = screen.Table("document", "type", "pages", "passages", "read", box=None)
        for document in await stepgate.library.documents(LOCAL_OWNER, collection):
            when = datetime.fromtimestamp(document.at, UTC).astimezone().strftime("%Y-%m-%d %H:%M")
            passages = str(len(document.chunk_ids))
            table.add_row(screen.escape(document.name), document.file_type, str(document.pages or ""), passages, when)
        screen.print_table(table)

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
        count = await stepgate.library.drop(LOCAL_OWNER, collection, by=operator())
        print(f"removed {collection!r}: {count} document{'s' if count != 1 else ''}")

    with_stepgate(work)


@app.command()
def reindex(collection: Annotated[str, typer.Argument(help="The collection.")]) -> None:
    """Make a collection's stems and vectors as this release and its embedder do; interrupted, it goes on when called
    again."""

    async def work(stepgate: "Stepgate") -> None:
        with reading_bar() as bar:
            task = bar.add_task("Embedding", total=None, file="")

            def progress(name: str, done: int, total: int | None) -> None:
                bar.update(task, completed=done, total=total, file=screen.escape(name[-40:]))

            made = await stepgate.library.reindex(LOCAL_OWNER, collection, progress)
        if made.words:
            print(f"{made.collection}: {many(made.words, 'passage')} are found by other stems now")
        if not made.embedder:
            return
        print(
            f"{made.collection}: {many(made.chunks, 'passage')} of {many(made.documents, 'document')} have vectors by "
            f"{made.embedder}, in {made.seconds:.1f} s"
        )

    with_stepgate(work)


def _text_of(pipeline: Path | None) -> str | None:
    """What the file of a pipeline holds. `BadRequestError` when it cannot be read."""
    if pipeline is None:
        return None
    try:
        return pipeline.expanduser().read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadRequestError(f"the pipeline {pipeline} cannot be read: {error}", param="pipeline") from error


def reading_bar() -> "screen.Progress":
    """How many of how many are read, on stderr; a task of it has the field `file`."""
    return screen.Progress(
        screen.TextColumn("{task.description}"),
        screen.BarColumn(),
        screen.MofNCompleteColumn(),
        screen.TimeElapsedColumn(),
        screen.TextColumn("[dim]{task.fields[file]}[/dim]"),
        console=screen.Console(stderr=True),
        transient=True,
    )


def _print_report(report: "IngestReport") -> None:
    """What became of the files, and why some were not read."""
    left = f", {report.left_out} left out by the pipeline" if report.left_out else ""
    print(
        f"{report.collection}: {report.read} read, {report.unchanged} unchanged, {report.removed} removed, "
        f"{len(report.skipped)} skipped{left}; {many(report.chunks, 'passage')} in {report.seconds:.1f} s"
    )
    for skipped in report.skipped[:SHOWN_SKIPPED]:
        print(f"  skipped {skipped.source}: {skipped.reason} ({skipped.code})")
    if len(report.skipped) > SHOWN_SKIPPED:
        rest = ", ".join(f"{code}: {count}" for code, count in report.by_reason.items())
        print(f"  and {len(report.skipped) - SHOWN_SKIPPED} more; in all {rest}")
    if report.why_nothing:
        print(f"  {report.why_nothing}")
    for code, ask in {one.code: one.ask for one in report.skipped if one.ask}.items():
        print(f"  {code}: {ask}")
    for note in report.notes:
        print(f"  note: {note}")
