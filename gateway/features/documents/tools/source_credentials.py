"""`source_credential_allow`: registers a source whose credential was never sent to its address, once a person has seen
both. Only callers with the scope `admin` may call it.
"""

from pydantic import Field

from agent.core.errors import AgentError, ToolError, ToolInputError
from agent.core.models import DeferredModel, JsonObject
from agent.policy.approval import format_value
from agent.tools import ToolContext, TypedTool, declare_roles
from agent.tools.stored_things import SAVES
from gateway.features.documents.engine.ingest.source_store import SourceStore
from gateway.features.documents.engine.search.models import ConnectorInput, SourceType

SOURCE_CREDENTIAL_TOOL = "source_credential_allow"


class SourceCredentialInput(DeferredModel):
    """Arguments of `source_credential_allow`."""

    source_type: SourceType = "web"
    source_identifier: str = Field(min_length=1, max_length=4000, description="the address of the source")
    credentials_id: str = Field(min_length=1, max_length=200, description="name of the stored credential it gets")
    recursive: bool = True
    max_depth: int | None = Field(default=None, ge=0, le=100, description="links away from the start of a web site")
    max_pages: int | None = Field(default=None, ge=1, le=1_000_000, description="pages of a web site that are read")
    name: str = Field(default="", max_length=200, description="what to call it; its identifier when empty")

    @property
    def source(self) -> ConnectorInput:
        """The source as connectors take it."""
        return ConnectorInput.model_validate(self.model_dump(exclude={"name"}))


class SourceCredentialOutput(DeferredModel):
    """The registered source."""

    source_id: str
    source_identifier: str
    credentials_id: str


class SourceCredentialTool(TypedTool[SourceCredentialInput, SourceCredentialOutput]):
    name = SOURCE_CREDENTIAL_TOOL
    description = "Register a source that is read with a stored credential, and let the credential go to its address."
    annotations = SAVES
    argument_roles = declare_roles(
        source_type="other",
        source_identifier="where",
        credentials_id="where",
        recursive="other",
        max_depth="other",
        max_pages="other",
        name="other",
    )
    keywords = ("source", "credential")
    is_opt_in = True
    requires_approval = True

    def __init__(self, sources: SourceStore) -> None:
        super().__init__()
        self._sources = sources

    async def preflight(self, args: JsonObject, context: ToolContext) -> None:
        """Raises `ToolDeniedError` for a caller without the scope `admin`."""
        context.require_scope("admin")

    async def explain(self, args: JsonObject, context: ToolContext) -> str:
        """The credential and the address."""
        call = SourceCredentialInput.model_validate(args)
        credential, address = format_value(call.credentials_id, None), format_value(call.source_identifier, None)
        return (
            f"   The stored credential {credential} would be sent to {address}, now and at each reading of the source."
        )

    async def run(self, args: SourceCredentialInput, context: ToolContext) -> SourceCredentialOutput:
        context.require_scope("admin")
        try:
            added = await self._sources.add(context.owner, args.source, args.name, may_pair=True)
        except AgentError as error:
            kind = ToolInputError if error.kind.http_status < 500 else ToolError
            raise kind(f"{error.message} ({error.code})") from error
        return SourceCredentialOutput(
            source_id=added.id, source_identifier=args.source_identifier, credentials_id=args.credentials_id
        )

    def format_text(self, output: SourceCredentialOutput) -> str:
        return f"Registered {output.source_id}: {output.source_identifier}, read with {output.credentials_id}."
