"""`stepgate sources add|list|delete`: where documents come from, named once and spoken of by id."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent.core.models import LOCAL_OWNER
from gateway.cli import screen
from gateway.cli.groups import Group
from gateway.cli.session import operator, with_stepgate

if TYPE_CHECKING:
    from agent.builder.sources import NamedSource
    from gateway.bootstrap import Stepgate

app = typer.Typer(help="Sources: where documents come from, registered once and spoken of by id.", cls=Group)

_Owner = Annotated[str, typer.Option(help="Whose they are; the owner of an API key, where there are any.")]


@app.command()
def add(
    source: Annotated[str, typer.Argument(help="A folder, a file, a web address, or gdrive:ID.")],
    name: Annotated[str, typer.Option(help="What to call it; its path or address when left out.")] = "",
    recursive: Annotated[
        bool | None, typer.Option(help="Also what lies below; folders do unless told not to, web pages if told to.")
    ] = None,
    credentials: Annotated[str | None, typer.Option(help="Name of the stored credential of the source.")] = None,
    owner: _Owner = LOCAL_OWNER,
) -> None:
    """Register a source and print its id; one that is there already keeps its id. Paths lie below AGENT_FILE_ROOTS."""
    path = Path(source).expanduser()
    here = path.resolve() if path.exists() else None  # as the terminal understands it, before it is one below a root

    async def work(stepgate: "Stepgate") -> None:
        from agent.knowledge.sources import source_of_words  # noqa: PLC0415 - not needed for `--help`

        wanted = source_of_words(source if here is None else str(here), recursive, credentials)
        added = await stepgate.conversations.builder.sources.add(owner, wanted, name)
        print(f"{added.id}  {added.request.source_type}: {added.request.source_identifier}")
        print(f'Build a pipeline for it: stepgate ask --room pipelines --conversation NAME "the source is {added.id}"')

    with_stepgate(work)


@app.command("list")
def list_sources(
    limit: Annotated[int, typer.Option(help="How many, newest first.", min=1, max=1000)] = 200,
    owner: _Owner = LOCAL_OWNER,
    as_json: Annotated[bool, typer.Option("--json", help="Print them as JSON.")] = False,
) -> None:
    """List the registered sources."""

    async def work(stepgate: "Stepgate") -> None:
        found = await stepgate.conversations.builder.sources.list(owner, limit=limit)
        if as_json:
            print(json.dumps([_row(one) for one in found], indent=2, ensure_ascii=False))
            return
        table = screen.Table("source", "name", "type", "where", "added", box=None, pad_edge=False)
        for one in found:
            request = one.request
            words = (one.id, one.name, request.source_type, request.source_identifier, _when(one.created))
            table.add_row(*map(screen.escape, words))
            table.columns[0].no_wrap = True
        if found:
            screen.print_table(table)
        else:
            print("No source is registered yet; see `stepgate sources add --help`.")

    with_stepgate(work)


@app.command()
def delete(
    source_id: Annotated[str, typer.Argument(help="The source's id, see `stepgate sources list`.")],
    owner: _Owner = LOCAL_OWNER,
) -> None:
    """Forget a source. Conversations about it stay, without it; collections and files are not touched."""

    async def work(stepgate: "Stepgate") -> None:
        await stepgate.conversations.builder.sources.remove(source_id, owner, by=operator())
        print(f"forgot {source_id}; collections that were read from it are as they were")

    with_stepgate(work)


def _row(source: "NamedSource") -> dict[str, object]:
    request = source.request.model_dump(mode="json")
    return {"id": source.id, "name": source.name, **request, "created_at": _when(source.created)}


def _when(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")
