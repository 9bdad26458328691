"""`ingest`: read documents into a collection, so that `search_knowledge` finds them."""

from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel, Field

from agent.core.errors import AgentError, ToolDeniedError, ToolError, ToolInputError
from agent.core.plurals import many
from agent.knowledge.errors import ConnectorAuthError
from agent.knowledge.ingestion import ASKS
from agent.knowledge.library import IngestReport, Library
from agent.knowledge.models import ConnectorInput, SourceType
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
        default="",
        max_length=4_000,
        description="a path below the readable folders, a URL, or gdrive:<id>; this or source_identifier is needed",
    )
    source_type: SourceType | None = Field(default=None, description="of source_identifier: gdrive, local or web")
    source_identifier: str = Field(default="", max_length=4_000, description="as over HTTP, instead of source")
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
    ask: str = ""


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
            source = beneath(_source(args), self._roots)
            report = await self._library.ingest(
                context.owner, args.collection, source, pipeline=chosen_pipeline(args.template), roots=self._roots
            )
        except ConnectorAuthError as error:
            raise ToolDeniedError(f"{error.message} ({error.code}: {ASKS[error.code]})") from error
        except AgentError as error:
            if error.kind.http_status < 500 and error.code != "ERR_CONFLICT":
                raise ToolInputError(f"{error.message} ({error.code})") from error
            raise ToolError(f"{error.message} ({error.code})") from error
        return _output(report)

    def text(self, output: IngestOutput) -> str:
        """As a sentence, and a line for each that was skipped."""
        first = (
            f"{output.collection}: {output.read} read, {output.unchanged} unchanged, {output.removed} removed, "
            f"{output.skipped_count} skipped; {many(output.passages, 'passage')}."
        )
        if not output.read and not output.unchanged and not output.skipped_count:
            first += " There is nothing in it that could be read."
        skipped = [f"Skipped {one.source}: {one.reason} ({one.code})" for one in output.skipped]
        asks = {one.code: f"{one.code}: {one.ask}" for one in output.skipped if one.ask}
        return "\n".join([first, *skipped, *asks.values()])


def _source(args: IngestInput) -> ConnectorInput:
    """What is to be read, by either of its names. `ToolInputError` for none, or both."""
    if bool(args.source.strip()) == bool(args.source_identifier.strip()):
        raise ToolInputError("give either source (a path, a URL or gdrive:<id>), or source_type and source_identifier")
    found = source_of_words(args.source or args.source_identifier, args.recursive, args.credentials)
    if args.source or args.source_type in (None, found.source_type):
        return found
    identifier = args.source_identifier.strip()
    recursive = args.source_type != "web" if args.recursive is None else args.recursive
    return found.model_copy(
        update={"source_type": args.source_type, "source_identifier": identifier, "recursive": recursive}
    )


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
            SkippedDocument(source=one.source, code=one.code, reason=one.reason, ask=one.ask)
            for one in report.skipped[:SHOWN_SKIPPED]
        ],
        notes=report.notes[:SHOWN_SKIPPED],
    )
