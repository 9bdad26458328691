"""`stepgate memory list|delete|reindex`."""

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from agent.core.models import LOCAL_OWNER
from gateway.cli import screen
from gateway.cli.groups import Group
from gateway.cli.session import operator, with_stepgate

if TYPE_CHECKING:
    from agent.core.memory import Kind
    from gateway.bootstrap import Stepgate

app = typer.Typer(help="Memory: what is remembered for you, and forgetting it.", cls=Group)


@app.command("list")
def list_memories(
    limit: Annotated[int, typer.Option(help="How many, newest first.", min=1)] = 50,
    everything: Annotated[bool, typer.Option("--all", help="Exchanges of conversations too.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print them as JSON.")] = False,
) -> None:
    """List the newest memories."""

    async def work(stepgate: "Stepgate") -> None:
        kind: Kind | None = None if everything else "fact"
        memories = await stepgate.memory.newest(LOCAL_OWNER, kind=kind, limit=limit)
        if as_json:
            rows = [
                {"id": m.id, "text": m.text, "kind": m.kind, "source": m.source, "at": _when(m.at)} for m in memories
            ]
            print(json.dumps(rows, indent=2, ensure_ascii=False))
            return
        table = screen.Table("memory", "when", "text", box=None)
        for memory in memories:
            table.add_row(memory.id, _when(memory.at), screen.escape(" ".join(memory.text.split())))
            table.columns[0].no_wrap = True
        screen.Console().print(table if memories else 'Nothing is remembered yet; ask "remember that ...".')

    with_stepgate(work)


@app.command()
def delete(memory_id: Annotated[str, typer.Argument(help="The memory's id.")]) -> None:
    """Forget one memory."""

    async def work(stepgate: "Stepgate") -> None:
        await stepgate.memory.delete(LOCAL_OWNER, memory_id, by=operator())
        print(f"forgot {memory_id}")

    with_stepgate(work)


@app.command()
def reindex() -> None:
    """Make the vectors anew with the configured embedder, after it was changed. Nothing is lost: texts are kept."""

    async def work(stepgate: "Stepgate") -> None:
        from agent.core.memory import EMBEDDER_SETTINGS  # noqa: PLC0415 - not needed for `--help`

        if not stepgate.memory.has_embedder:
            print(f"no embedder is set ({EMBEDDER_SETTINGS}); local vectors are always up to date")
            return

        with screen.Progress(console=screen.Console(stderr=True)) as progress:
            task = progress.add_task("Embedding memories", total=None)
            count = await stepgate.memory.reindex(
                lambda done, total: progress.update(task, completed=done, total=total)
            )
        print(f"{count} memories have vectors by {await stepgate.memory.check(ask=True)}")

    with_stepgate(work)


def _when(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).astimezone().strftime("%Y-%m-%d %H:%M")
