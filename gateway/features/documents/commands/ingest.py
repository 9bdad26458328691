"""`stepgate ingest SOURCE`, and `stepgate collections list|show|delete|reindex|templates|pipeline`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent.core.models import LOCAL_OWNER
from agent.text.plurals import format_count
from gateway.cli import lazy_rich
from gateway.cli.groups import HelpfulGroup
from gateway.cli.session import format_local_time, gateway_command, get_operator_name
from gateway.cli.text_files import read_text_file
from gateway.features.documents.parts import get_documents

if TYPE_CHECKING:
    from gateway.bootstrap import Stepgate
    from gateway.features.documents.engine.ingest.dry_run_report import ValidationReport
    from gateway.features.documents.engine.ingest.library import IngestReport

app = typer.Typer(help="Collections: the documents that answers are based on.", cls=HelpfulGroup)

MAX_SHOWN_SKIPPED = 20
INCOMPLETE_NOTE = (
    "incomplete: the last ingestion was interrupted. What it had read can be searched, as can everything from "
    "before; run `stepgate ingest` with the same source to continue."
)

_VERDICTS = {
    "ready": "ready",
    "needs_adjustment": "usable, but check the failures",
    "blocking_issues": "not ready: too many files cannot be read",
}


@gateway_command()
async def ingest(
    stepgate: "Stepgate",
    source: Annotated[str, typer.Argument(help="A folder, a file, a web address, or gdrive:ID.")],
    collection: Annotated[str, typer.Option(help="The target collection.")] = "documents",
    template: Annotated[
        str | None, typer.Option(help="Pipeline template; `stepgate collections templates` lists them.")
    ] = None,
    pipeline: Annotated[Path | None, typer.Option(help="File with a pipeline as JSON, instead of a template.")] = None,
    recursive: Annotated[
        bool | None, typer.Option(help="Include subfolders (default for folders) or linked pages (off by default).")
    ] = None,
    max_depth: Annotated[int | None, typer.Option(help="Links away from the start of a web site.", min=0)] = None,
    max_pages: Annotated[int | None, typer.Option(help="Pages of a web site that are read.", min=1)] = None,
    credentials: Annotated[str | None, typer.Option(help="Name of the stored credential of the source.")] = None,
    password_file: Annotated[
        Path | None, typer.Option(help="File with the password of protected PDFs; only you may be able to read it.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Try it on a sample without writing anything.")] = False,
    sample: Annotated[int, typer.Option(help="Number of files in a dry run.", min=1, max=1000)] = 50,
) -> int:
    """Read documents into a collection; unchanged ones are skipped."""
    from agent.storage.credentials import read_password_file  # noqa: PLC0415
    from gateway.features.documents.engine.ingest.source_specs import parse_source_address  # noqa: PLC0415 - not needed for `--help`
    from gateway.features.documents.engine.ingest.templates import build_requested_pipeline, from_template  # noqa: PLC0415

    limits = {"max_depth": max_depth, "max_pages": max_pages}
    wanted = parse_source_address(source, recursive, credentials).model_copy(update=limits)
    password = read_password_file(password_file) if password_file is not None else None
    chosen = build_requested_pipeline(
        template, None, None if pipeline is None else read_text_file(pipeline, "--pipeline")
    )
    if dry_run:
        tried = await get_documents(stepgate).library.dry_run(wanted, chosen or from_template(), sample_count=sample)
        _print_dry_run(tried)
        return 0 if tried.assessment != "blocking_issues" else 1
    with lazy_rich.show_progress("Reading") as progress:
        report = await get_documents(stepgate).library.ingest(
            LOCAL_OWNER, collection, wanted, pipeline=chosen, password=password, progress=progress, may_pair=True
        )
    _print_report(report)
    return 0 if report.read or report.unchanged else 1


@app.command("list")
@gateway_command()
async def list_collections(stepgate: "Stepgate") -> None:
    """List the collections."""
    collections = await get_documents(stepgate).library.list_collections(LOCAL_OWNER)
    rows = []
    for name, count in collections.items():
        row = await get_documents(stepgate).library.get_collection(LOCAL_OWNER, name)
        rows.append((name, str(count), row.pipeline.template or "its own", row.status, row.embedder or "none"))
    lazy_rich.print_rows(
        ("collection", "documents", "pipeline", "state", "vectors"),
        rows,
        empty="No collections yet; create one with `stepgate ingest FOLDER --collection NAME`.",
        pad_edge=True,
    )
    if any(state == "incomplete" for *_, state, _ in rows):
        print(INCOMPLETE_NOTE)


@app.command("templates")
def list_pipelines() -> None:
    """List the pipeline templates and their purposes."""
    from gateway.features.documents.engine.ingest.templates import list_templates  # noqa: PLC0415 - not needed for `--help`

    rows = [
        (one.name, ", ".join(one.suggested_for), ", ".join(f"{knob.name}={knob.default}" for knob in one.parameters))
        for one in list_templates()
    ]
    lazy_rich.print_rows(("template", "for", "parameters"), rows, pad_edge=True)


@app.command()
@gateway_command()
async def show(stepgate: "Stepgate", collection: Annotated[str, typer.Argument(help="The collection.")]) -> None:
    """List the documents of a collection."""
    rows = [
        (one.name, one.file_type, str(one.pages or ""), str(len(one.chunk_ids)), format_local_time(one.at))
        for one in await get_documents(stepgate).library.list_documents(LOCAL_OWNER, collection)
    ]
    lazy_rich.print_rows(("document", "type", "pages", "passages", "read"), rows, pad_edge=True)


@app.command("pipeline")
@gateway_command()
async def show_pipeline(
    stepgate: "Stepgate", collection: Annotated[str, typer.Argument(help="The collection.")]
) -> None:
    """Print the pipeline of a collection as JSON, to edit and pass to `stepgate ingest --pipeline`."""
    row = await get_documents(stepgate).library.get_collection(LOCAL_OWNER, collection)
    print(row.pipeline.model_dump_json(indent=2))


@app.command()
@gateway_command()
async def delete(stepgate: "Stepgate", collection: Annotated[str, typer.Argument(help="The collection.")]) -> None:
    """Remove a collection with its passages, vectors and uploads; your files stay."""
    count = await get_documents(stepgate).library.drop_collection(LOCAL_OWNER, collection, by=get_operator_name())
    print(f"removed {collection!r}: {count} document{'s' if count != 1 else ''}")


@app.command()
@gateway_command()
async def reindex(stepgate: "Stepgate", collection: Annotated[str, typer.Argument(help="The collection.")]) -> None:
    """Rebuild a collection's stems and vectors with this release and its embedder. If interrupted, call it again to
    continue.
    """
    with lazy_rich.show_progress("Embedding") as progress:
        made = await get_documents(stepgate).library.reindex(LOCAL_OWNER, collection, progress)
    if made.words:
        print(f"{made.collection}: {format_count(made.words, 'passage')} have new stems")
    if not made.embedder:
        return
    print(
        f"{made.collection}: {format_count(made.chunks, 'passage')} of "
        f"{format_count(made.documents, 'document')} have vectors by {made.embedder}, in {made.seconds:.1f} s"
    )


def _print_dry_run(report: "ValidationReport") -> None:
    """Prints what a pipeline would make of a source."""
    print(f"{_VERDICTS[report.assessment]}. {report.summary}")
    print(f"tried {report.files_tested} of {report.files_found} files; nothing was written")
    stats = report.chunk_stats
    if stats.count:
        print(
            f"passages: {stats.count}, of {stats.min} to {stats.max} characters (median {stats.median:g}, "
            f"95 % within {stats.p95}); {stats.empty} empty, {stats.duplicates} twice"
        )
    print("seconds: " + ", ".join(f"{stage} {seconds:.2f}" for stage, seconds in report.stage_timings.items()))
    for name, category in report.failure_categories.items():
        print(f"{name}: {category.count}" + (f"; {category.suggested_fix}" if category.suggested_fix else ""))
        for one in [file for file in report.files if file.source in category.examples]:
            print(f"  {one.name}: {one.message} ({one.error_code})")
    for uncertainty in report.uncertainties:
        if uncertainty.severity == "info":
            print(f"note: {uncertainty.message}")


def _print_report(report: "IngestReport") -> None:
    """Prints how many files were read, and why others were not."""
    left = f", {report.left_out} left out by the pipeline" if report.left_out else ""
    print(
        f"{report.collection}: {report.read} read, {report.unchanged} unchanged, {report.removed} removed, "
        f"{len(report.skipped)} skipped{left}; {format_count(report.chunks, 'passage')} in {report.seconds:.1f} s"
    )
    if report.coverage is not None:
        print(f"  coverage: {report.coverage}")
    for skipped in report.skipped[:MAX_SHOWN_SKIPPED]:
        print(f"  skipped {skipped.source}: {skipped.reason} ({skipped.code})")
    if len(report.skipped) > MAX_SHOWN_SKIPPED:
        rest = ", ".join(f"{code}: {count}" for code, count in report.by_reason.items())
        print(f"  and {len(report.skipped) - MAX_SHOWN_SKIPPED} more; in all {rest}")
    if report.nothing_read_reason:
        print(f"  {report.nothing_read_reason}")
    for code, ask in {one.code: one.remedy for one in report.skipped if one.remedy}.items():
        print(f"  {code}: {ask}")
    for note in report.notes:
        print(f"  note: {note}")
