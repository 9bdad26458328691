"""`BuilderConversationStore`: conversations about pipelines and their uncertainties. Messages are stored elsewhere, for
a day."""

import json
import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Literal

from agent.core.models import JsonObject, Usage
from agent.core.subagent_result import Uncertainty
from agent.core.surrogates import replace_surrogates, to_storable_text
from agent.storage.sql import SqlClient
from gateway.features.pipeline_builder.engine.records import (
    CONVERSATION_COLUMNS,
    UNCERTAINTY_COLUMNS,
    Conversation,
    ConversationStatus,
    ConversationUncertainty,
    Origin,
    read_conversation_row,
    read_uncertainty_row,
)

# Collections are known by name: one that was dropped is no longer this conversation's.
_SELECTED = CONVERSATION_COLUMNS.replace(
    "collection,",
    "(SELECT c.name FROM collections c WHERE c.owner = agent_conversations.owner "
    "AND c.name = agent_conversations.collection),",
    1,
)
_BLOCKING = "severity = 'blocking' AND resolved = 0"
MESSAGE_CHARS = 2_000
CONVERSATION_PREFIX = "conv_"
"""What the ids of conversations begin with. A chat's id could too, but then names a chat of this gateway."""


class BuilderConversationStore:
    """The conversations of each owner. Methods raise `StoreError`."""

    def __init__(self, statements: SqlClient, clock: Callable[[], float]) -> None:
        self._statements = statements
        self._clock = clock

    async def add(
        self,
        owner: str,
        *,
        source_id: str | None = None,
        chat_id: str | None = None,
        pipeline: JsonObject | None = None,
        analysis: JsonObject | None = None,
        tainted: bool = False,
    ) -> Conversation:
        """Creates a conversation, optionally with another one's results. Returns the existing one of the same chat."""
        now = self._clock()
        conversation_id = f"{CONVERSATION_PREFIX}{secrets.token_hex(16)}"
        chat = to_storable_text(chat_id) if chat_id is not None else None
        rows = await self._statements.write(
            "INSERT INTO agent_conversations (id, owner, chat_id, source_id, status, current_pipeline, "
            "source_analysis, tainted, created, updated) VALUES (?,?,?,?,'active',?,?,?,?,?) "
            "ON CONFLICT DO NOTHING RETURNING id",
            conversation_id, owner, chat, source_id, _dump_optional_json(pipeline), _dump_optional_json(analysis),
            int(tainted), now, now,
        )  # fmt: skip
        existing = await self.get(conversation_id if rows else chat or "", owner)
        assert existing is not None, "it was just written, or is there"
        return existing

    async def get(self, conversation_id: str, owner: str) -> Conversation | None:
        """The owner's conversation with this id or this chat id, or None."""
        wanted = to_storable_text(conversation_id)
        query = f"SELECT {_SELECTED} FROM agent_conversations WHERE owner = ? AND (id = ? OR chat_id = ?)"  # noqa: S608
        rows = await self._statements.read(query, owner, wanted, wanted)
        return read_conversation_row(rows[0]) if rows else None

    async def list_newest(
        self,
        owner: str,
        *,
        limit: int = 50,
        before: Conversation | None = None,
        status: ConversationStatus | None = None,
        archived: bool = False,
        archive_before: float = 0.0,
    ) -> list[Conversation]:
        """Conversations, newest first, created before `before`. Archived ones only if `archived`; those that
        ended before the time `archive_before` count as archived.
        """
        query = (
            f"SELECT {_SELECTED} FROM agent_conversations WHERE owner = ? AND (? = '' OR status = ?) "  # noqa: S608
            f"AND {'' if archived else 'NOT '}(archived IS NOT NULL OR (status <> 'active' AND updated < ?)) "
            "AND (created < ? OR (created = ? AND id < ?)) "
            "ORDER BY created DESC, id DESC LIMIT ?"
        )
        created, last = (before.created, before.id) if before is not None else (float("1e18"), "")
        rows = await self._statements.read(
            query, owner, status or "", status or "", archive_before, created, created, last, limit
        )
        return [read_conversation_row(row) for row in rows]

    async def sum_usage(self, owner: str) -> Usage:
        """The usage of all conversations of an owner."""
        ((calls, prompt, completion, cost),) = await self._statements.read(
            "SELECT COALESCE(SUM(model_calls), 0), COALESCE(SUM(prompt_tokens), 0), "
            "COALESCE(SUM(completion_tokens), 0), SUM(cost_usd) FROM agent_conversations WHERE owner = ?",
            owner,
        )
        return Usage(
            model_calls=int(calls), prompt_tokens=int(prompt), completion_tokens=int(completion), cost_usd=cost
        )

    async def claim(self, conversation: Conversation, run_id: str) -> bool:
        """Records that this run answers a message. Returns False if another run does, or the conversation is not
        active."""
        now = self._clock()
        rows = await self._statements.write(
            "UPDATE agent_conversations SET run_id = ?, claimed = ?, updated = ? "
            "WHERE id = ? AND run_id IS NULL AND status = 'active' RETURNING id",
            run_id, now, now, conversation.id,
        )  # fmt: skip
        return bool(rows)

    async def release_claim(self, conversation: Conversation, run_id: str) -> None:
        """Releases the claim of a run that was never created."""
        await self._statements.write(
            "UPDATE agent_conversations SET run_id = NULL WHERE id = ? AND run_id = ?", conversation.id, run_id
        )

    async def complete_run(self, conversation: Conversation, run_id: str, asked: Sequence[str], usage: Usage) -> bool:
        """Records the end of this run and its usage, once; returns whether this call recorded it."""
        rows = await self._statements.write(
            "UPDATE agent_conversations SET run_id = NULL, turns = turns + 1, asked = ?, "
            "model_calls = model_calls + ?, prompt_tokens = prompt_tokens + ?, "
            "completion_tokens = completion_tokens + ?, cost_usd = COALESCE(cost_usd + ?, ?, cost_usd), updated = ? "
            "WHERE id = ? AND run_id = ? RETURNING id",
            replace_surrogates(json.dumps(list(asked), ensure_ascii=False)), usage.model_calls, usage.prompt_tokens,
            usage.completion_tokens, usage.cost_usd, usage.cost_usd, self._clock(), conversation.id, run_id,
        )  # fmt: skip
        return bool(rows)

    async def list_unfinished(self) -> list[Conversation]:
        """Every owner's conversations with a run. Checked after a restart."""
        query = f"SELECT {_SELECTED} FROM agent_conversations WHERE run_id IS NOT NULL ORDER BY claimed"  # noqa: S608
        return [read_conversation_row(row) for row in await self._statements.read(query)]

    async def list_half_applied(self) -> list[Conversation]:
        """Every owner's applied conversations without a recorded job."""
        query = (
            f"SELECT {_SELECTED} FROM agent_conversations WHERE status = 'applied' AND archived IS NULL "  # noqa: S608
            "AND job_id IS NULL"
        )
        return [read_conversation_row(row) for row in await self._statements.read(query)]

    async def set_source(self, conversation: Conversation, source_id: str) -> None:
        """Sets the source if there is none, and drops findings about a source that was removed."""
        await self._statements.write(
            "UPDATE agent_conversations SET source_id = ?, source_analysis = NULL, validation = NULL, updated = ? "
            "WHERE id = ? AND source_id IS NULL",
            source_id, self._clock(), conversation.id,
        )  # fmt: skip

    async def set_pipeline(self, conversation: Conversation, pipeline: JsonObject, *, validated: bool) -> bool:
        """Stores the proposed pipeline; keeps the validation if `validated`. Returns False if the conversation is not
        active."""
        rows = await self._statements.write(
            "UPDATE agent_conversations SET current_pipeline = ?, "
            "validation = CASE WHEN ? = 1 THEN validation ELSE NULL END, updated = ? "
            "WHERE id = ? AND status = 'active' RETURNING id",
            _dump_json(pipeline), int(validated), self._clock(), conversation.id,
        )  # fmt: skip
        return bool(rows)

    async def set_analysis(self, conversation: Conversation, analysis: JsonObject) -> bool:
        """Stores the source analysis and drops the validation, which is outdated now. Returns False if not active."""
        rows = await self._statements.write(
            "UPDATE agent_conversations SET source_analysis = ?, validation = NULL, updated = ? "
            "WHERE id = ? AND status = 'active' RETURNING id",
            _dump_json(analysis), self._clock(), conversation.id,
        )  # fmt: skip
        return bool(rows)

    async def set_validation(self, conversation: Conversation, report: JsonObject) -> bool:
        """Stores a validation report. Returns False if the conversation is not active."""
        rows = await self._statements.write(
            "UPDATE agent_conversations SET validation = ?, updated = ? "
            "WHERE id = ? AND status = 'active' RETURNING id",
            _dump_json(report), self._clock(), conversation.id,
        )  # fmt: skip
        return bool(rows)

    async def set_summary(self, conversation: Conversation, summary: str) -> None:
        """Stores the summary that is used after the messages expire."""
        await self._statements.write(
            "UPDATE agent_conversations SET summary = ?, updated = ? WHERE id = ?",
            to_storable_text(summary), self._clock(), conversation.id,
        )  # fmt: skip

    async def mark_tainted(self, conversation: Conversation) -> None:
        """Records that external text contributed to what is known."""
        await self._statements.write("UPDATE agent_conversations SET tainted = 1 WHERE id = ?", conversation.id)

    async def apply(self, conversation: Conversation, collection: str, applied: JsonObject) -> bool:
        """Ends the conversation as applied. Returns False if it is not active."""
        rows = await self._statements.write(
            "UPDATE agent_conversations SET status = 'applied', collection = ?, applied = ?, updated = ? "
            "WHERE id = ? AND status = 'active' AND current_pipeline IS NOT NULL RETURNING id",
            to_storable_text(collection), _dump_json(applied), self._clock(), conversation.id,
        )  # fmt: skip
        return bool(rows)

    async def set_job(self, conversation: Conversation, job_id: str) -> None:
        """Records the job that reads the source into the collection."""
        await self._statements.write(
            "UPDATE agent_conversations SET job_id = ? WHERE id = ? AND status = 'applied'", job_id, conversation.id
        )

    async def abandon(self, conversation: Conversation) -> bool:
        """Ends the conversation without applying anything. Returns False if it is not active."""
        rows = await self._statements.write(
            "UPDATE agent_conversations SET status = 'abandoned', updated = ? WHERE id = ? AND status = 'active' "
            "RETURNING id",
            self._clock(), conversation.id,
        )  # fmt: skip
        return bool(rows)

    async def archive(self, before: float) -> list[str]:
        """Archives conversations that ended before that time; returns their ids."""
        rows = await self._statements.write(
            "UPDATE agent_conversations SET archived = ? WHERE status <> 'active' AND archived IS NULL "
            "AND updated < ? RETURNING id",
            self._clock(), before,
        )  # fmt: skip
        return [str(row[0]) for row in rows]

    async def list_uncertainties(self, conversation: Conversation) -> list[ConversationUncertainty]:
        """The uncertainties of a conversation, oldest first."""
        query = (
            f"SELECT {UNCERTAINTY_COLUMNS} FROM conversation_uncertainties WHERE conversation_id = ? "  # noqa: S608
            "ORDER BY created, id"
        )
        return [read_uncertainty_row(row) for row in await self._statements.read(query, conversation.id)]

    async def list_blocking(self, conversation: Conversation) -> list[ConversationUncertainty]:
        """The uncertainties that keep its pipeline from being applied."""
        query = (
            f"SELECT {UNCERTAINTY_COLUMNS} FROM conversation_uncertainties "  # noqa: S608
            f"WHERE conversation_id = ? AND {_BLOCKING} ORDER BY created, id"
        )
        return [read_uncertainty_row(row) for row in await self._statements.read(query, conversation.id)]

    async def record_uncertainties(
        self, conversation: Conversation, origin: Origin, found: Iterable[Uncertainty], *, settled_by: str | None
    ) -> list[ConversationUncertainty]:
        """Records what `origin` reports now; returns the new uncertainties.

        Those it reported before and no longer reports are resolved by `settled_by`; None leaves them open. Those it
        still reports stay as they are.
        """
        wanted = {(one.severity, to_storable_text(one.message)[:MESSAGE_CHARS]): one for one in found}
        known_uncertainties = [
            uncertainty for uncertainty in await self.list_uncertainties(conversation) if uncertainty.origin == origin
        ]
        for uncertainty in known_uncertainties:
            if (
                settled_by is not None
                and not uncertainty.resolved
                and (uncertainty.severity, uncertainty.message) not in wanted
            ):
                await self.resolve(uncertainty, how=settled_by, resolver=origin)
        # What only this origin had settled counts as new when it is said again; a person's word stands.
        known_pairs = {
            (one.severity, one.message) for one in known_uncertainties if not one.resolved or one.resolver != origin
        }
        return [
            await self._add_uncertainty(conversation, origin, severity, message, one)
            for (severity, message), one in wanted.items()
            if (severity, message) not in known_pairs
        ]

    async def resolve(
        self, uncertainty: ConversationUncertainty, *, how: str, resolver: str, note: str = ""
    ) -> ConversationUncertainty | None:
        """Records who resolved an uncertainty and how. Returns None if it was resolved already."""
        now = self._clock()
        rows = await self._statements.write(
            "UPDATE conversation_uncertainties SET resolved = 1, resolved_by = ?, resolver = ?, note = ?, "
            "resolved_at = ? WHERE id = ? AND resolved = 0 RETURNING id",
            to_storable_text(how), resolver, to_storable_text(note) or None, now, uncertainty.id,
        )  # fmt: skip
        if not rows:
            return None
        return replace(
            uncertainty, resolved=True, resolved_by=how, resolver=resolver, note=note or None, resolved_at=now
        )

    async def _add_uncertainty(
        self,
        conversation: Conversation,
        origin: Origin,
        severity: Literal["blocking", "notable", "info"],
        message: str,
        one: Uncertainty,
    ) -> ConversationUncertainty:
        made = ConversationUncertainty(
            id=f"unc_{secrets.token_hex(8)}",
            conversation_id=conversation.id,
            origin=origin,
            severity=severity,
            message=message,
            context=one.context,
            resolved=False,
            created=self._clock(),
        )
        await self._statements.write(
            "INSERT INTO conversation_uncertainties (id, conversation_id, owner, origin, severity, message, context, "
            "created) VALUES (?,?,?,?,?,?,?,?)",
            made.id, conversation.id, conversation.owner, origin, severity, message, _dump_json(one.context),
            made.created,
        )  # fmt: skip
        return made


def _dump_optional_json(value: JsonObject | None) -> str | None:
    return _dump_json(value) if value is not None else None


def _dump_json(value: JsonObject) -> str:
    return replace_surrogates(json.dumps(value, ensure_ascii=False))
