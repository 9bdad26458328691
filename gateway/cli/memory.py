"""`stepgate memory list|delete|reindex`."""

from typing import TYPE_CHECKING, Annotated

import typer

from agent.core.models import LOCAL_OWNER
from gateway.cli import lazy_rich
from gateway.cli.groups import HelpfulGroup
from gateway.cli.session import format_local_time, gateway_command, get_operator_name, print_json

if TYPE_CHECKING:
    from agent.run_context.memory import Kind
    from gateway.bootstrap import Stepgate

app = typer.Typer(help="Memory: list and delete your memories.", cls=HelpfulGroup)


@app.command("list")
@gateway_command()
async def list_memories(
    stepgate: "Stepgate",
    limit: Annotated[int, typer.Option(help="How many, newest first.", min=1)] = 50,
    everything: Annotated[bool, typer.Option("--all", help="Include exchanges of conversations.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print them as JSON.")] = False,
) -> None:
    """List the newest memories."""
    kind: Kind | None = None if everything else "fact"
    memories = await stepgate.memory.list_newest(LOCAL_OWNER, kind=kind, limit=limit)
    if as_json:
        from mcp_tools.builtin.memory_forms import MemoryEntry  # noqa: PLC0415 - loaded with the engine

        entries = [MemoryEntry.model_validate(memory).model_dump(mode="json", exclude={"score"}) for memory in memories]
        print_json(
            [entry | {"at": format_local_time(memory.at)} for entry, memory in zip(entries, memories, strict=True)]
        )
        return
    if not memories:
        print('No memories yet; ask "remember that ...".')
        return
    table = lazy_rich.Table("memory", "when", "text", box=None, pad_edge=False)
    for memory in memories:
        table.add_row(memory.id, format_local_time(memory.at), lazy_rich.escape(" ".join(memory.text.split())))
    table.columns[0].no_wrap = True
    lazy_rich.print_table(table)


@app.command()
@gateway_command()
async def delete(stepgate: "Stepgate", memory_id: Annotated[str, typer.Argument(help="The memory's id.")]) -> None:
    """Delete one memory."""
    await stepgate.memory.delete(LOCAL_OWNER, memory_id, by=get_operator_name())
    print(f"forgot {memory_id}")


@app.command()
@gateway_command()
async def reindex(stepgate: "Stepgate") -> None:
    """Rebuild the vectors with the configured embedder after it has changed. Nothing is lost: the texts are stored."""
    from agent.llm.embedder.port import EMBEDDER_SETTINGS  # noqa: PLC0415 - not needed for `--help`

    if not stepgate.memory.has_embedder:
        print(f"no embedder is set ({EMBEDDER_SETTINGS}); local word vectors are always up to date")
        return

    with lazy_rich.show_progress("Embedding memories") as report:
        count = await stepgate.memory.reindex(lambda done, total: report("", done, total))
    print(
        f"{count} {'memory has' if count == 1 else 'memories have'} vectors by {await stepgate.memory.check(ask=True)}"
    )
