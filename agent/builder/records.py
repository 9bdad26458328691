"""A conversation about a pipeline as it is kept, and what is doubtful in it. Times are UTC seconds since 1970."""

import json
from dataclasses import dataclass, field
from typing import Literal

from agent.core.models import JsonObject, Usage
from agent.core.statements import Row
from agent.core.subagents import Severity

ConversationStatus = Literal["active", "applied", "abandoned"]
"""Only `active` ones change, and never back."""
Origin = Literal["source_analyzer", "pipeline_validator", "conversation"]
CONVERSATION_COLUMNS = (
    "id, owner, chat_id, source_id, collection, status, current_pipeline, source_analysis, validation, applied, "
    "job_id, summary, asked, turns, tainted, run_id, claimed, model_calls, prompt_tokens, completion_tokens, cost_usd, "
    "archived, created, updated"
)
UNCERTAINTY_COLUMNS = (
    "id, conversation_id, origin, severity, message, context, resolved, resolved_by, resolver, note, resolved_at, "
    "created"
)


@dataclass(frozen=True, slots=True)
class Conversation:
    """One conversation. `asked` are the user's own words, shortened, for the summary; `turns` counts the messages that
    were answered; `run_id` is the run that answers one now; `tainted` that text from outside has a part in what is
    known. `applied` says by whom, when, into what, and which doubts were overridden by force."""

    id: str
    owner: str
    status: ConversationStatus
    created: float
    updated: float
    chat_id: str | None = None
    source_id: str | None = None
    collection: str | None = None
    pipeline: JsonObject | None = None
    analysis: JsonObject | None = None
    validation: JsonObject | None = None
    applied: JsonObject | None = None
    job_id: str | None = None
    summary: str | None = None
    asked: tuple[str, ...] = ()
    turns: int = 0
    tainted: bool = False
    run_id: str | None = None
    claimed: float = 0.0
    usage: Usage = field(default_factory=Usage)
    archived: float | None = None


@dataclass(frozen=True, slots=True)
class Doubt:
    """An uncertainty of a conversation. `resolved_by` says how (`user_confirmed`, `pipeline_adjusted` ...), `resolver`
    who did it."""

    id: str
    conversation_id: str
    origin: Origin
    severity: Severity
    message: str
    context: JsonObject
    resolved: bool
    created: float
    resolved_by: str | None = None
    resolver: str | None = None
    note: str | None = None
    resolved_at: float | None = None

    @property
    def blocks(self) -> bool:
        """Whether it keeps a pipeline from being applied."""
        return self.severity == "blocking" and not self.resolved


def conversation_of(row: Row) -> Conversation:
    """A row of `CONVERSATION_COLUMNS`."""
    (
        conversation_id, owner, chat_id, source_id, collection, status, pipeline, analysis, validation, applied,
        job_id, summary, asked, turns, tainted, run_id, claimed, calls, prompt, completion, cost, archived, created,
        updated,
    ) = row  # fmt: skip
    return Conversation(
        id=conversation_id,
        owner=owner,
        chat_id=chat_id,
        source_id=source_id,
        collection=collection,
        status=status,
        pipeline=_loaded(pipeline),
        analysis=_loaded(analysis),
        validation=_loaded(validation),
        applied=_loaded(applied),
        job_id=job_id,
        summary=summary,
        asked=tuple(json.loads(asked)),
        turns=int(turns),
        tainted=bool(tainted),
        run_id=run_id,
        claimed=float(claimed),
        usage=Usage(
            model_calls=int(calls), prompt_tokens=int(prompt), completion_tokens=int(completion), cost_usd=cost
        ),
        archived=archived,
        created=float(created),
        updated=float(updated),
    )


def doubt_of(row: Row) -> Doubt:
    """A row of `UNCERTAINTY_COLUMNS`."""
    (
        doubt_id, conversation_id, origin, severity, message, context, resolved, how, resolver, note, at, created,
    ) = row  # fmt: skip
    return Doubt(
        id=doubt_id,
        conversation_id=conversation_id,
        origin=origin,
        severity=severity,
        message=message,
        context=json.loads(context),
        resolved=bool(resolved),
        resolved_by=how,
        resolver=resolver,
        note=note,
        resolved_at=at,
        created=float(created),
    )


def _loaded(text: str | None) -> JsonObject | None:
    value: JsonObject | None = json.loads(text) if text is not None else None
    return value
