"""What the feature does in runs of its room: the answer ends with the newest favourite, and the log says which."""

from collections.abc import Sequence

from agent.core.models import rooms_with
from agent.run_context.extensions import Extension
from agent.run_context.run import Run
from agent.run_context.run_hooks import RunHooks
from agent.storage.sql import OwnedRows, Row, SqlClient
from gateway.feature_host import FeatureHost
from stepgate_poems.events import PoemRecalled

NEWEST = "SELECT title FROM poem_favourites WHERE owner = ? ORDER BY added DESC, title LIMIT 1"


class PoemHooks(RunHooks):
    """Reminds those who have favourites."""

    name = "poems"
    rooms = rooms_with(id="poems")

    def __init__(self, statements: SqlClient) -> None:
        self.owner_rows = OwnedRows(statements, NEWEST)

    def load(self, run: Run, rows: Sequence[Row]) -> str:
        """The title of the newest favourite."""
        return str(rows[0][0])

    async def list_caveats(self, run: Run) -> Sequence[str]:
        """The reminder. A run that goes on after a crash reads in its log what it has said already."""
        recalled = run.state.feature_events.get(PoemRecalled.type)
        if not isinstance(recalled, PoemRecalled):
            await run.emit(PoemRecalled(title=str(run.feature_data[self.name])))
            recalled = run.state.feature_events[PoemRecalled.type]
        assert isinstance(recalled, PoemRecalled)
        return (f"Your newest favourite is {recalled.title}.",)


def list_extensions(host: FeatureHost) -> list[Extension]:
    """The hooks."""
    return [Extension("poems", hooks=(PoemHooks(host.statements),))]
