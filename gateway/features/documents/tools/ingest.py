"""`ingest`: reads documents into a collection, so that `search_knowledge` finds them."""

from collections.abc import Sequence
from pathlib import Path

from pydantic import Field

from agent.core.errors import AgentError, ToolDeniedError, ToolError, ToolInputError
from agent.core.models import DeferredModel, JsonObject
from agent.text.plurals import format_count
from agent.tools import PlanHints, ToolAnnotations, ToolContext, TypedTool, declare_roles
from gateway.features.documents.engine.ingest.allowed_paths import resolve_allowed
from gateway.features.documents.engine.ingest.errors import ConnectorAuthError
from gateway.features.documents.engine.ingest.ingest_report import REMEDIES
from gateway.features.documents.engine.ingest.library import IngestReport, Library
from gateway.features.documents.engine.ingest.source_specs import parse_source_address
from gateway.features.documents.engine.ingest.templates import build_requested_pipeline
from gateway.features.documents.engine.search.models import ConnectorInput, CoverageSummary, SourceType

INGEST_ANNOTATIONS = ToolAnnotations(read_only=False, destructive=False, idempotent=True, open_world=True)
TIMEOUT_S = 600.0
"""A folder may take minutes. After a time-out the read documents stay, and another call continues."""
MAX_SHOWN_SKIPPED = 20


class IngestInput(DeferredModel):
    """Arguments of `ingest`."""

    source: str = Field(
        default="",
        max_length=4_000,
        description="a path below the readable folders, a URL, or gdrive:<id>; this or source_identifier is needed",
    )
    source_type: SourceType | None = Field(default=None, description="of source_identifier: gdrive, local or web")
    source_identifier: str = Field(
        default="", max_length=4_000, description="instead of source: the identifier as in the HTTP API"
    )
    collection: str = Field(
        default="documents", min_length=1, max_length=200, description="the collection to read into"
    )
    recursive: bool | None = Field(
        default=None, description="also what lies below: folders (the default for paths) or linked pages"
    )
    template: str | None = Field(
        default=None, max_length=100, description="pipeline template; empty: as it was read before"
    )
    credentials: str | None = Field(default=None, max_length=200, description="name of a stored credential")


class SkippedDocument(DeferredModel):
    """A document that was not read, and why."""

    source: str
    code: str
    reason: str
    ask: str = ""


class IngestOutput(DeferredModel):
    """Counts of what was read. `skipped` lists the first of the skipped documents."""

    collection: str
    read: int
    unchanged: int
    removed: int
    passages: int
    seconds: float
    skipped_count: int
    skipped: list[SkippedDocument]
    notes: list[str]
    coverage: CoverageSummary | None = Field(
        default=None, description="how much of the text of the files read is in the collection"
    )


class IngestTool(TypedTool[IngestInput, IngestOutput]):
    """Reads documents into a collection of the caller. Unchanged documents are not read again."""

    name = "ingest"
    description = (
        "Read the user's documents (a folder, a file, a web page) into a collection, so that it can be searched."
    )
    annotations = INGEST_ANNOTATIONS
    argument_roles = declare_roles(
        source="where",
        source_type="other",
        source_identifier="where",
        collection="where",
        recursive="other",
        template="other",
        credentials="where",
    )
    tainted = True
    timeout_s = TIMEOUT_S
    keywords = ("ingest", "import", "index")
    hints = PlanHints(is_called_by_name=True)

    def __init__(self, library: Library, roots: Sequence[Path]) -> None:
        super().__init__()
        self._library = library
        self._roots = tuple(roots)

    async def preflight(self, args: JsonObject, context: ToolContext) -> None:
        """Raises `ToolDeniedError` for a caller without the scope `ingest`."""
        context.require_scope("ingest")

    async def run(self, args: IngestInput, context: ToolContext) -> IngestOutput:
        context.require_scope("ingest")
        try:
            source = resolve_allowed(_make_source(args), self._roots)
            report = await self._library.ingest(
                context.owner,
                args.collection,
                source,
                pipeline=build_requested_pipeline(args.template),
                roots=self._roots,
            )
        except ConnectorAuthError as error:
            raise ToolDeniedError(f"{error.message} ({error.code}: {REMEDIES[error.code]})") from error
        except AgentError as error:
            if error.kind.http_status < 500 and error.code != "ERR_CONFLICT":
                raise ToolInputError(f"{error.message} ({error.code})") from error
            raise ToolError(f"{error.message} ({error.code})") from error
        return _make_output(report)

    def format_text(self, output: IngestOutput) -> str:
        """A sentence, and a line for each skipped document."""
        first = (
            f"{output.collection}: {output.read} read, {output.unchanged} unchanged, {output.removed} removed, "
            f"{output.skipped_count} skipped; {format_count(output.passages, 'passage')}."
        )
        if not output.read and not output.unchanged and not output.skipped_count:
            first += " It holds nothing that can be read."
        if output.coverage is not None:
            first += f" {str(output.coverage).capitalize()}."
        skipped = [f"Skipped {one.source}: {one.reason} ({one.code})" for one in output.skipped]
        asks = {one.code: f"{one.code}: {one.ask}" for one in output.skipped if one.ask}
        return "\n".join([first, *skipped, *asks.values()])


def _make_source(args: IngestInput) -> ConnectorInput:
    """The source that the arguments name. Raises `ToolInputError` if they name none or two."""
    if bool(args.source.strip()) == bool(args.source_identifier.strip()):
        raise ToolInputError("give either source (a path, a URL or gdrive:<id>), or source_type and source_identifier")
    source_address = parse_source_address(args.source or args.source_identifier, args.recursive, args.credentials)
    if args.source or args.source_type in (None, source_address.source_type):
        return source_address
    identifier = args.source_identifier.strip()
    recursive = args.source_type != "web" if args.recursive is None else args.recursive
    return source_address.model_copy(
        update={"source_type": args.source_type, "source_identifier": identifier, "recursive": recursive}
    )


def _make_output(report: IngestReport) -> IngestOutput:
    return IngestOutput(
        collection=report.collection,
        read=report.read,
        unchanged=report.unchanged,
        removed=report.removed,
        passages=report.chunks,
        seconds=round(report.seconds, 3),
        skipped_count=len(report.skipped),
        skipped=[
            SkippedDocument(source=one.source, code=one.code, reason=one.reason, ask=one.remedy)
            for one in report.skipped[:MAX_SHOWN_SKIPPED]
        ],
        notes=report.notes[:MAX_SHOWN_SKIPPED],
        coverage=report.coverage,
    )
