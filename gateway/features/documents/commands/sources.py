"""`stepgate sources add|list|delete`: named sources of documents, referred to by id."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent.core.models import LOCAL_OWNER
from gateway.cli import lazy_rich
from gateway.cli.groups import HelpfulGroup
from gateway.cli.session import format_utc_time, gateway_command, get_operator_name, print_json, run_with_gateway
from gateway.features.documents.parts import get_documents

if TYPE_CHECKING:
    from gateway.bootstrap import Stepgate
    from gateway.features.documents.engine.ingest.source_store import NamedSource

app = typer.Typer(help="Sources: named sources of documents.", cls=HelpfulGroup)

_Owner = Annotated[str, typer.Option(help="The owner; with API keys, the owner of a key.")]


@app.command()
def add(
    source: Annotated[str, typer.Argument(help="A folder, a file, a web address, or gdrive:ID.")],
    name: Annotated[str, typer.Option(help="Its name; default its path or address.")] = "",
    recursive: Annotated[
        bool | None, typer.Option(help="Include subfolders (default for folders) or linked pages (off by default).")
    ] = None,
    max_depth: Annotated[int | None, typer.Option(help="Links away from the start of a web site.", min=0)] = None,
    max_pages: Annotated[int | None, typer.Option(help="Pages of a web site that are read.", min=1)] = None,
    credentials: Annotated[str | None, typer.Option(help="Name of the stored credential of the source.")] = None,
    owner: _Owner = LOCAL_OWNER,
) -> None:
    """Register a source and print its id; an existing one keeps its id. Paths must be below AGENT_FILE_ROOTS."""
    path = Path(source).expanduser()
    here = (
        path.resolve() if path.exists() else None
    )  # relative to the working folder, before it is taken as a path below a root

    async def work(stepgate: "Stepgate") -> None:
        from gateway.features.documents.engine.ingest.source_specs import parse_source_address  # noqa: PLC0415 - not needed for `--help`

        wanted = parse_source_address(source if here is None else str(here), recursive, credentials)
        wanted = wanted.model_copy(update={"max_depth": max_depth, "max_pages": max_pages})
        added = await get_documents(stepgate).sources.add(owner, wanted, name, may_pair=True)
        print(f"{added.id}  {added.request.source_type}: {added.request.source_identifier}")
        print(f'Build a pipeline for it: stepgate ask --room pipelines --conversation NAME "the source is {added.id}"')

    run_with_gateway(work)


@app.command("list")
@gateway_command()
async def list_sources(
    stepgate: "Stepgate",
    limit: Annotated[int, typer.Option(help="How many, newest first.", min=1, max=1000)] = 200,
    owner: _Owner = LOCAL_OWNER,
    as_json: Annotated[bool, typer.Option("--json", help="Print them as JSON.")] = False,
) -> None:
    """List the registered sources."""
    sources = await get_documents(stepgate).sources.list(owner, limit=limit)
    if as_json:
        print_json([_to_row(one) for one in sources])
        return
    table = lazy_rich.Table("source", "name", "type", "where", "added", box=None, pad_edge=False)
    for one in sources:
        request = one.request
        words = (one.id, one.name, request.source_type, request.source_identifier, format_utc_time(one.created))
        table.add_row(*map(lazy_rich.escape, words))
        table.columns[0].no_wrap = True
    if sources:
        lazy_rich.print_table(table)
    else:
        print("No sources yet; see `stepgate sources add --help`.")


@app.command()
@gateway_command()
async def delete(
    stepgate: "Stepgate",
    source_id: Annotated[str, typer.Argument(help="The source's id, see `stepgate sources list`.")],
    owner: _Owner = LOCAL_OWNER,
) -> None:
    """Delete a source. Its conversations stay, without it; collections and files are not changed."""
    await get_documents(stepgate).sources.remove(source_id, owner, by=get_operator_name())
    print(f"deleted {source_id}; collections read from it are unchanged")


def _to_row(source: "NamedSource") -> dict[str, object]:
    request = source.request.model_dump(mode="json")
    return {"id": source.id, "name": source.name, **request, "created_at": format_utc_time(source.created)}
