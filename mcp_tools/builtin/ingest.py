"""`ingest`: read documents into a collection, so that `search_knowledge` finds them."""

from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel, Field

from agent.core.errors import AgentError, ToolDeniedError, ToolError, ToolInputError
from agent.knowledge.errors import ConnectorAuthError
from agent.knowledge.library import IngestReport, Library
from agent.knowledge.roots import beneath
from agent.knowledge.sources import source_of_words
from agent.knowledge.templates import chosen_pipeline
from agent.tools import ToolAnnotations, ToolContext, TypedTool

READS_IN = ToolAnnotations(read_only=False, destructive=False, idempotent=True, open_world=True)
TIMEOUT_S = 600.0
"""A folder may take minutes. What was read by then stays read, and another call goes on from there."""
SHOWN_SKIPPED = 20


class IngestInput(BaseModel):
    """What to read, and where to."""

    source: str = Field(
        min_length=1, max_length=4_000, description="a path below the readable folders, a URL, or gdrive:<id>"
    )
    collection: str = Field(default="documents", min_length=1, max_length=200, description="where to read it into")
    recursive: bool | None = Field(
        default=None, description="also what lies below: folders (the default for paths) or linked pages"
    )
    template: str | None = Field(
        default=None, max_length=100, description="pipeline template; empty: as it was read before"
    )
    credentials: str | None = Field(default=None, max_length=200, description="name of a stored credential")


class SkippedDocument(BaseModel):
    """A document that was not read, and why."""

    source: str
    code: str
    reason: str


class IngestOutput(BaseModel):
    """What became of the source. `skipped` has the first of those that were not read."""

    collection: str
    read: int
    unchanged: int
    removed: int
    passages: int
    seconds: float
    skipped_count: int
    skipped: list[SkippedDocument]
    notes: list[str]


class IngestTool(TypedTool[IngestInput, IngestOutput]):
    """Reads documents into a collection of the caller. Doing it twice reads nothing twice."""

    name = "ingest"
    description = (
        "Read the user's documents (a folder, a file, a web page) into a collection that can be searched then."
    )
    annotations = READS_IN
    tainted = True
    timeout_s = TIMEOUT_S
    keywords = ("ingest", "import", "index")
    Input = IngestInput
    Output = IngestOutput

    def __init__(self, library: Library, roots: Sequence[Path]) -> None:
        super().__init__()
        self._library = library
        self._roots = tuple(roots)

    async def run(self, args: IngestInput, context: ToolContext) -> IngestOutput:
        """Read what has changed."""
        try:
            source = beneath(source_of_words(args.source, args.recursive, args.credentials), self._roots)
            report = await self._library.ingest(
                context.owner, args.collection, source, pipeline=chosen_pipeline(args.template), roots=self._roots
            )
        except ConnectorAuthError as error:
            raise ToolDeniedError(error.message) from error
        except AgentError as error:
            if error.kind.http_status < 500 and error.code != "ERR_CONFLICT":
                raise ToolInputError(error.message) from error
            raise ToolError(error.message) from error
        return _output(report)

    def text(self, output: IngestOutput) -> str:
        """As a sentence, and a line for each that was skipped."""
        first = (
            f"{output.collection}: {output.read} read, {output.unchanged} unchanged, {output.removed} removed, "
            f"{output.skipped_count} skipped; {output.passages} passages."
        )
        return "\n".join([first, *(f"Skipped {one.source}: {one.reason}" for one in output.skipped)])


def _output(report: IngestReport) -> IngestOutput:
    return IngestOutput(
        collection=report.collection,
        read=report.read,
        unchanged=report.unchanged,
        removed=report.removed,
        passages=report.chunks,
        seconds=round(report.seconds, 3),
        skipped_count=len(report.skipped),
        skipped=[
            SkippedDocument(source=one.source, code=one.code, reason=one.reason)
            for one in report.skipped[:SHOWN_SKIPPED]
        ],
        notes=report.notes[:SHOWN_SKIPPED],
    )
