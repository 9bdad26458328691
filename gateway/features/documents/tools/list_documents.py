"""`list_documents`: lists the user's documents by collection."""

from pydantic import Field

from agent.core.models import DeferredModel, FrozenModel
from agent.tools import READ_ONLY, PlanHints, ToolContext, TypedTool
from gateway.features.documents.engine.grounded_answers.footnote_marks import strip_footnote_marks
from gateway.features.documents.engine.ingest.library import Library
from gateway.features.documents.engine.request_commands import DOCUMENT_LISTING

MAX_SHOWN = 50
"""The most document names of one collection; the others are counted."""
NO_DOCUMENTS = "There are no documents yet; `stepgate ingest FOLDER --collection NAME` reads some."


class ListDocumentsInput(DeferredModel):
    """Arguments of `list_documents`."""

    collection: str = Field(default="", max_length=200, description="one collection; empty for all of them")


class ListedCollection(FrozenModel):
    """A collection, its number of documents, and the first of their names."""

    collection: str
    count: int
    documents: tuple[str, ...]


class ListDocumentsOutput(DeferredModel):
    """The collections in order of name."""

    collections: list[ListedCollection]


class ListDocumentsTool(TypedTool[ListDocumentsInput, ListDocumentsOutput]):
    """Lists the caller's documents. Only rooms that name it offer it."""

    name = "list_documents"
    description = "List the user's collections and the names of the documents in them."
    annotations = READ_ONLY
    tainted = True
    is_opt_in = True
    keywords = ("documents", "collections", "list", "available")
    hints = PlanHints(commands=DOCUMENT_LISTING, source="collections")

    def __init__(self, library: Library) -> None:
        super().__init__()
        self._library = library

    async def run(self, args: ListDocumentsInput, context: ToolContext) -> ListDocumentsOutput:
        """The names in order. An unknown collection has none."""
        listed = []
        for name in await self._library.in_room(None, context.collections).list_collections(context.owner):
            if args.collection in ("", name):
                names = sorted(one.name for one in await self._library.list_documents(context.owner, name))
                listed.append(ListedCollection(collection=name, count=len(names), documents=tuple(names[:MAX_SHOWN])))
        return ListDocumentsOutput(collections=listed)

    def format_text(self, output: ListDocumentsOutput) -> str:
        return "\n\n".join(map(_format_collection, output.collections)) or NO_DOCUMENTS


def _format_collection(one: ListedCollection) -> str:
    more = [f"- and {one.count - len(one.documents)} more"] if one.count > len(one.documents) else []
    lines = [f"**{one.collection}**: {one.count} document{'s' if one.count != 1 else ''}", ""]
    return "\n".join([*lines, *(f"- {strip_footnote_marks(name)}" for name in one.documents), *more])
