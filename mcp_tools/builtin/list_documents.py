"""`list_documents`: which documents there are to be asked about, by collection."""

from pydantic import BaseModel, Field

from agent.core.models import Frozen
from agent.knowledge.library import Library
from agent.tools import READ_ONLY, ToolContext, TypedTool
from mcp_tools.builtin.incident.evidence import unmarked

SHOWN = 50
"""Names of documents of one collection; the others are counted."""
NONE_YET = "There are no documents yet; `stepgate ingest FOLDER --collection NAME` reads some."


class ListDocumentsInput(BaseModel):
    """Where to look."""

    collection: str = Field(default="", max_length=200, description="one collection; empty for all of them")


class ListedCollection(Frozen):
    """A collection, how many documents it has, and the names of the first."""

    collection: str
    count: int
    documents: tuple[str, ...]


class ListDocumentsOutput(BaseModel):
    """The collections by name."""

    collections: list[ListedCollection]


class ListDocumentsTool(TypedTool[ListDocumentsInput, ListDocumentsOutput]):
    """Lists the caller's documents. Only rooms that name it have it."""

    name = "list_documents"
    description = "List the user's collections and the names of the documents in them."
    annotations = READ_ONLY
    tainted = True
    by_name = True
    keywords = ("documents", "collections", "list", "available")
    Input = ListDocumentsInput
    Output = ListDocumentsOutput

    def __init__(self, library: Library) -> None:
        super().__init__()
        self._library = library

    async def run(self, args: ListDocumentsInput, context: ToolContext) -> ListDocumentsOutput:
        """The names, in order; a collection that is not there has none."""
        listed = []
        for name in await self._library.collections(context.owner):
            if args.collection in ("", name):
                names = sorted(one.name for one in await self._library.documents(context.owner, name))
                listed.append(ListedCollection(collection=name, count=len(names), documents=tuple(names[:SHOWN])))
        return ListDocumentsOutput(collections=listed)

    def text(self, output: ListDocumentsOutput) -> str:
        """A paragraph for each collection."""
        return "\n\n".join(map(_told, output.collections)) or NONE_YET


def _told(one: ListedCollection) -> str:
    more = [f"- and {one.count - len(one.documents)} more"] if one.count > len(one.documents) else []
    lines = [f"**{one.collection}**: {one.count} document{'s' if one.count != 1 else ''}", ""]
    return "\n".join([*lines, *(f"- {unmarked(name)}" for name in one.documents), *more])
