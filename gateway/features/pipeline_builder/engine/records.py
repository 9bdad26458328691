"""The stored form of a conversation and its uncertainties. Times are UTC seconds since 1970."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from agent.core.models import JsonObject, Usage
from agent.core.subagent_result import Severity
from agent.storage.sql import Row

ConversationStatus = Literal["active", "applied", "abandoned"]
"""Only `active` conversations change; they never become active again."""
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
    """One conversation.

    `asked` holds the user's messages, shortened, for the summary; `turns` counts answered messages; `run_id` is the run
    that answers one now; `tainted` says that external text contributed to what is known. `applied` records by whom,
    when, into which collection, and which uncertainties were overridden.
    """

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
class ConversationUncertainty:
    """An uncertainty of a conversation. `resolved_by` says how (`user_confirmed`, `pipeline_adjusted` ...), `resolver`
    who."""

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
    def is_blocking(self) -> bool:
        """Whether it keeps the pipeline from being applied."""
        return self.severity == "blocking" and not self.resolved


NumberedUncertainty = tuple[int, ConversationUncertainty]


def number_open(uncertainties: Sequence[ConversationUncertainty]) -> list[NumberedUncertainty]:
    """The open uncertainties with their numbers; of equal ones the first.

    An uncertainty keeps its number during the conversation: resolved ones leave gaps.
    """
    numbered: dict[tuple[str, str], NumberedUncertainty] = {}
    for number, one in enumerate(uncertainties, start=1):
        if not one.resolved:
            numbered.setdefault((one.severity, one.message), (number, one))
    return list(numbered.values())


def read_conversation_row(row: Row) -> Conversation:
    """Reads a row of `CONVERSATION_COLUMNS`."""
    (
        conversation_id, owner, chat_id, source_id, collection, status, pipeline, analysis, validation, applied,
        job_id, summary, questions, turns, tainted, run_id, claimed, calls, prompt, completion, cost, archived, created,
        updated,
    ) = row  # fmt: skip
    return Conversation(
        id=conversation_id,
        owner=owner,
        chat_id=chat_id,
        source_id=source_id,
        collection=collection,
        status=status,
        pipeline=_parse_json(pipeline),
        analysis=_parse_json(analysis),
        validation=_parse_json(validation),
        applied=_parse_json(applied),
        job_id=job_id,
        summary=summary,
        asked=tuple(json.loads(questions)),
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


def read_uncertainty_row(row: Row) -> ConversationUncertainty:
    """Reads a row of `UNCERTAINTY_COLUMNS`."""
    (
        uncertainty_id, conversation_id, origin, severity, message, context, resolved, how, resolver, note, at, created,
    ) = row  # fmt: skip
    return ConversationUncertainty(
        id=uncertainty_id,
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


def _parse_json(text: str | None) -> JsonObject | None:
    value: JsonObject | None = json.loads(text) if text is not None else None
    return value
