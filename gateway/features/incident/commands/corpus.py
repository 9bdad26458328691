"""`stepgate corpus prepare|build|query|example`: turns table rows into documents, and documents into a collection."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent.core.errors import NotFoundError
from agent.core.models import LOCAL_OWNER
from agent.text.plurals import format_count
from gateway.cli import lazy_rich
from gateway.cli.groups import HelpfulGroup
from gateway.cli.session import gateway_command, run_with_gateway
from gateway.features.documents.parts import get_documents
from gateway.features.incident.engine.collection_names import EXAMPLE_COLLECTIONS

if TYPE_CHECKING:
    from gateway.bootstrap import Stepgate
    from gateway.features.documents.engine.ingest.corpus import Faults
    from gateway.features.documents.engine.ingest.corpus_index import BuildReport
    from gateway.features.documents.engine.ingest.corpus_prepare import PrepareReport

app = typer.Typer(
    help="Table rows as documents: prepare a corpus, build a collection from it, query it.", cls=HelpfulGroup
)

MAX_SHOWN_FAULTS = 20
EXAMPLE_COMPANY, EXAMPLE_ISSUES = EXAMPLE_COLLECTIONS
SAMPLE = "P1 incident: user profile picture errors causing latency and failures."


@app.command("prepare")
def prepare_corpus(
    mapping: Annotated[Path, typer.Argument(help="Mapping of rows to documents, in YAML or JSON.")],
    tables: Annotated[list[Path], typer.Argument(help="CSV, TSV, JSON or JSON Lines files.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The corpus to write.")] = Path("corpus.jsonl"),
) -> None:
    """Turn the rows of tables into a corpus: one JSON document a line."""
    from gateway.features.documents.engine.ingest.corpus_mapping import load_mapping  # noqa: PLC0415 - `--help` does not need it
    from gateway.features.documents.engine.ingest.corpus_prepare import prepare  # noqa: PLC0415 - as above

    with lazy_rich.show_progress("Preparing", counts_bytes=True) as progress:
        report = prepare(
            load_mapping(mapping.expanduser()), _expand_paths(tables), output.expanduser(), progress=progress
        )
    _print_prepared(report)
    raise SystemExit(0 if report.documents else 1)


@app.command("build")
@gateway_command()
async def build_collection(
    stepgate: "Stepgate",
    corpora: Annotated[list[Path], typer.Argument(help="Corpora made by `prepare`.")],
    collection: Annotated[str, typer.Option(help="The target collection.")] = "issues",
    prune: Annotated[
        bool, typer.Option("--prune", help="Remove documents of earlier corpora that are not in these files.")
    ] = False,
) -> int:
    """Load corpora into a collection; unchanged documents are skipped."""
    with lazy_rich.show_progress("Building", counts_bytes=True) as progress:
        report = await get_documents(stepgate).corpus.build(
            LOCAL_OWNER, collection, _expand_paths(corpora), prune=prune, progress=progress
        )
    _print_built(report)
    return 0 if report.added or report.changed or report.unchanged else 1


@app.command("query")
def query_collection(
    query: Annotated[str, typer.Argument(help="The search query.")],
    collection: Annotated[str, typer.Option(help="The collection to search.")] = "issues",
    service: Annotated[str, typer.Option(help="Only issues of this service or project.")] = "",
    severity: Annotated[str, typer.Option(help="Only issues of this severity or priority.")] = "",
    limit: Annotated[int, typer.Option(min=1, max=10, help="How many results at most.")] = 3,
) -> None:
    """Search a collection of issues as the tool `search_previous_issues` does."""
    from agent.tools import ToolContext  # noqa: PLC0415 - `--help` does not need it
    from gateway.features.incident.tools import (  # noqa: PLC0415 - as above
        NO_SIMILAR_ISSUE,
        SearchPreviousIssuesInput,
        SearchPreviousIssuesTool,
    )

    if not query.strip():
        raise typer.BadParameter("the query is empty")

    async def work(stepgate: "Stepgate") -> int:
        tool = SearchPreviousIssuesTool(get_documents(stepgate).library, collection)
        search_input = SearchPreviousIssuesInput(query=query, limit=limit, service=service, severity=severity)
        output = await tool.run(search_input, ToolContext(run_id="", owner=LOCAL_OWNER))
        for number, hit in enumerate(output.results, start=1):
            print(f"{number}. {hit.ticket}  {hit.relevance:.2f}  {hit.source}  ({hit.retrieval_mode}, {hit.match})")
            print(f"   {hit.summary}")
            print(f"   {' '.join(hit.snippet.split())[:200]}")
            print(f"   why: {hit.why_selected}")
        if output.note:
            print(f"note: {output.note}")
        if not output.results:
            print(NO_SIMILAR_ISSUE)
        return 0 if output.results else 1

    raise SystemExit(run_with_gateway(work))


@app.command("example")
def load_example(
    folder: Annotated[Path | None, typer.Option(help="Also store the prepared corpora in this folder.")] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Remove the example company again.")] = False,
) -> None:
    """Load the example company: policies, runbooks and tickets into `example-company`, tickets and incidents into
    `example-issues`. Your own collections stay as they are.
    """
    if remove:
        run_with_gateway(_remove_example)
        return
    from gateway.features.incident.engine.evidence import choose_collections  # noqa: PLC0415 - as above
    from gateway.features.incident.example_company import load_example_company  # noqa: PLC0415 - `--help` does not need it

    async def work(stepgate: "Stepgate") -> None:
        into = folder.expanduser() if folder is not None else None
        read, prepared, built = await load_example_company(stepgate, LOCAL_OWNER, into)
        print(f"{EXAMPLE_COMPANY}: {read.read} documents read, {read.unchanged} unchanged")
        for corpus in prepared:
            _print_prepared(corpus)
        for collection in built:
            _print_built(collection)
        chosen = await choose_collections(get_documents(stepgate).library, LOCAL_OWNER, None)
        if chosen != EXAMPLE_COLLECTIONS:
            print(f"The room `incident` searches {chosen.knowledge} and {chosen.issues}, unless its `collections` are:")
            print(f"    collections: [{EXAMPLE_COMPANY}, {EXAMPLE_ISSUES}]")
        print(f'Now: stepgate ask --room incident "{SAMPLE}"')

    print(f"The example company goes into the collections {EXAMPLE_COMPANY} and {EXAMPLE_ISSUES}, and nowhere else.")
    print("`stepgate corpus example --remove` removes it.")
    if folder is not None:
        folder.expanduser().mkdir(parents=True, exist_ok=True)
    run_with_gateway(work)


async def _remove_example(stepgate: "Stepgate") -> None:
    """Removes the collections of the example company, as far as they exist."""
    for name in (EXAMPLE_COMPANY, EXAMPLE_ISSUES):
        try:
            count = await get_documents(stepgate).library.drop_collection(LOCAL_OWNER, name, by=LOCAL_OWNER)
        except NotFoundError:
            print(f"{name}: there is no such collection")
        else:
            print(f"{name}: removed, with {format_count(count, 'document')}")


def _expand_paths(paths: list[Path]) -> list[Path]:
    return [path.expanduser() for path in paths]


def _print_prepared(report: "PrepareReport") -> None:
    """Prints how many rows became documents, and why others did not."""
    merged = f", {report.superseded} replaced by later versions" if report.superseded else ""
    print(
        f"{report.path}: {report.documents} documents of {report.rows} rows{merged}, {report.faults.count} left out; "
        f"{report.seconds:.1f} s"
    )
    if not report.documents:
        print("  no row became a document: nothing was written")
    _print_faults(report.faults)
    for note in report.notes:
        print(f"  note: {note}")


def _print_built(report: "BuildReport") -> None:
    """Prints how many documents were loaded."""
    print(
        f"{report.collection}: {report.added} added, {report.changed} changed, {report.unchanged} unchanged, "
        f"{report.removed} removed; {format_count(report.chunks, 'passage')} in {report.seconds:.1f} s"
    )
    if not (report.added or report.changed or report.unchanged):
        print("  it contains no documents; `stepgate corpus prepare` makes documents from table rows")
    _print_faults(report.faults)
    if report.absent:
        print(f"  note: {report.absent} documents of the collection are not in these files; --prune removes them")
    for note in report.notes:
        print(f"  note: {note}")


def _print_faults(faults: "Faults") -> None:
    for fault in faults.kept[:MAX_SHOWN_FAULTS]:
        print(f"  left out: {fault}")
    if faults.count > MAX_SHOWN_FAULTS:
        print(f"  and {faults.count - MAX_SHOWN_FAULTS} more")
