"""Request and response models of the doors of pipeline conversations."""

from datetime import datetime

from pydantic import BaseModel, ConfigDict, Field, StrictBool

from agent.core.models import DeferredModel, JsonObject
from agent.core.record_item import RecordItem
from agent.core.subagent_result import Severity
from gateway.features.pipeline_builder.engine.messages import MessageRole
from gateway.features.pipeline_builder.engine.records import ConversationStatus


class CreateConversationRequest(BaseModel):
    """About which source, or from what another conversation came to."""

    model_config = ConfigDict(extra="forbid")

    source_id: str | None = Field(
        default=None, min_length=1, max_length=200, description="id of a source, see /v1/sources"
    )
    from_conversation: str | None = Field(
        default=None,
        min_length=1,
        max_length=200,
        description="id of another conversation, whatever became of it: its pipeline is the proposal to begin with, "
        "and its source is the source where source_id is not given",
    )


class SendMessageRequest(BaseModel):
    """What the user says. `stream` decides between server-sent events and one JSON object; where it is not given, the
    Accept header does, and events are the default. `approvals` are the ids of the approvals that the client displays:
    the message answers no other question, and gets a 409 if another one is open or these are decided."""

    model_config = ConfigDict(extra="forbid")

    message: str
    stream: bool | None = None
    approvals: list[str] | None = Field(default=None, max_length=1_000)


class ApplyPipelineRequest(BaseModel):
    """Where to. `force` overrides unresolved blocking uncertainties, which is recorded: only by the JSON `true`."""

    model_config = ConfigDict(extra="forbid")

    collection_name: str = Field(min_length=1, max_length=200)
    force: StrictBool = False


class ResolveUncertainty(BaseModel):
    """How it was settled, and why."""

    model_config = ConfigDict(extra="forbid")

    resolved_by: str = Field(default="user_confirmed", min_length=1, max_length=50)
    note: str = Field(default="", max_length=2_000)


class ConversationResponse(RecordItem):
    """A conversation in short."""

    id: str
    status: ConversationStatus
    source_id: str | None
    collection_id: str | None = Field(validation_alias="collection")
    created_at: datetime = Field(validation_alias="created")
    updated_at: datetime = Field(validation_alias="updated")
    archived_at: datetime | None = Field(default=None, validation_alias="archived")


class UsageTotals(RecordItem):
    """Tokens and money; the cost is null where no price is known."""

    model_calls: int
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    cost_usd: float | None


class ConversationList(DeferredModel):
    """Conversations, newest first; `next` is what to pass as `before` for older ones. `usage` is that of all of the
    caller's."""

    data: list[ConversationResponse]
    next: str | None = None
    usage: UsageTotals


class UncertaintyResponse(RecordItem):
    """Something doubtful."""

    id: str
    severity: Severity
    message: str
    context: JsonObject
    origin: str
    resolved: bool
    resolved_by: str | None = None
    resolver: str | None = None
    note: str | None = None
    resolved_at: datetime | None = None


class MessageResponse(RecordItem):
    """Something that was said or done."""

    role: MessageRole
    content: str
    timestamp: datetime
    metadata: JsonObject


class ConversationDetailResponse(ConversationResponse):
    """A conversation with all that is known. `messages` are empty once they have expired; `messages_note` says why
    they cannot be had otherwise. `run_id` is the run that answers a message now; `question` is what it asks of a
    person, who replies with the next message, and `approvals` are the ids of its requests."""

    current_pipeline: JsonObject | None
    source_analysis: JsonObject | None
    validation: JsonObject | None
    uncertainties: list[UncertaintyResponse]
    messages: list[MessageResponse]
    messages_note: str = ""
    question: str = ""
    approvals: list[str] = Field(default_factory=list)
    summary: str | None
    usage: UsageTotals
    applied: JsonObject | None
    job_id: str | None
    run_id: str | None


class ApplyResponse(DeferredModel):
    """What was begun; /v1/jobs/{job_id} says how far it is."""

    collection_id: str
    collection_name: str
    status: str
    job_id: str | None


class MessageAnswer(DeferredModel):
    """An answer as one object. `approvals` are the questions it ends with, where it waits for a person."""

    run_id: str
    status: str
    response: str
    approvals: list[str]
    current_pipeline: JsonObject | None
    uncertainties: list[UncertaintyResponse]
