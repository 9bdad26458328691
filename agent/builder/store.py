"""`BuilderStore`: the conversations about pipelines, and their uncertainties. The messages are elsewhere, for a day."""

import json
import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Literal

from agent.builder.records import (
    CONVERSATION_COLUMNS,
    UNCERTAINTY_COLUMNS,
    Conversation,
    ConversationStatus,
    Doubt,
    Origin,
    conversation_of,
    doubt_of,
)
from agent.core.codec import storable, whole
from agent.core.models import JsonObject, Usage
from agent.core.statements import Statements
from agent.core.subagents import Uncertainty

# Collections are known by name: one that was dropped is no longer this conversation's.
_READ = CONVERSATION_COLUMNS.replace(
    "collection,",
    "(SELECT c.name FROM collections c WHERE c.owner = agent_conversations.owner "
    "AND c.name = agent_conversations.collection),",
    1,
)
_BLOCKING = "severity = 'blocking' AND resolved = 0"
MESSAGE_CHARS = 2_000


class BuilderStore:
    """The conversations by owner; another owner's are not there. Methods raise `StoreError`."""

    def __init__(self, statements: Statements, clock: Callable[[], float]) -> None:
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
        """A new conversation, perhaps with what another one came to; the one that a chat has already is returned as it
        is."""
        now = self._clock()
        conversation_id = f"conv_{secrets.token_hex(16)}"
        chat = storable(chat_id) if chat_id is not None else None
        rows = await self._statements.write(
            "INSERT INTO agent_conversations (id, owner, chat_id, source_id, status, current_pipeline, "
            "source_analysis, tainted, created, updated) VALUES (?,?,?,?,'active',?,?,?,?,?) "
            "ON CONFLICT DO NOTHING RETURNING id",
            conversation_id, owner, chat, source_id, _kept(pipeline), _kept(analysis), int(tainted), now, now,
        )  # fmt: skip
        found = await self.get(conversation_id if rows else chat or "", owner)
        assert found is not None, "it was just written, or is there"
        return found

    async def get(self, conversation_id: str, owner: str) -> Conversation | None:
        """The conversation of this id, or of the chat with this id; None where there is none of this owner's."""
        wanted = storable(conversation_id)
        query = f"SELECT {_READ} FROM agent_conversations WHERE owner = ? AND (id = ? OR chat_id = ?)"  # noqa: S608
        rows = await self._statements.read(query, owner, wanted, wanted)
        return conversation_of(rows[0]) if rows else None

    async def newest(
        self,
        owner: str,
        *,
        limit: int = 50,
        before: Conversation | None = None,
        status: ConversationStatus | None = None,
        archived: bool = False,
    ) -> list[Conversation]:
        """Conversations, newest first; those older than `before`. Archived ones only when asked for."""
        query = (
            f"SELECT {_READ} FROM agent_conversations WHERE owner = ? AND (? = '' OR status = ?) "  # noqa: S608
            f"AND archived IS {'NOT ' if archived else ''}NULL AND (created < ? OR (created = ? AND id < ?)) "
            "ORDER BY created DESC, id DESC LIMIT ?"
        )
        created, last = (before.created, before.id) if before is not None else (float("1e18"), "")
        rows = await self._statements.read(query, owner, status or "", status or "", created, created, last, limit)
        return [conversation_of(row) for row in rows]

    async def usage(self, owner: str) -> Usage:
        """What all conversations of an owner have used."""
        ((calls, prompt, completion, cost),) = await self._statements.read(
            "SELECT COALESCE(SUM(model_calls), 0), COALESCE(SUM(prompt_tokens), 0), "
            "COALESCE(SUM(completion_tokens), 0), SUM(cost_usd) FROM agent_conversations WHERE owner = ?",
            owner,
        )
        return Usage(
            model_calls=int(calls), prompt_tokens=int(prompt), completion_tokens=int(completion), cost_usd=cost
        )

    async def claim(self, conversation: Conversation, run_id: str) -> bool:
        """Note that this run answers a message now; False when another does, or the conversation is not active."""
        now = self._clock()
        rows = await self._statements.write(
            "UPDATE agent_conversations SET run_id = ?, claimed = ?, updated = ? "
            "WHERE id = ? AND run_id IS NULL AND status = 'active' RETURNING id",
            run_id, now, now, conversation.id,
        )  # fmt: skip
        return bool(rows)

    async def unclaim(self, conversation: Conversation, run_id: str) -> None:
        """Take back a claim of a run that never came to be."""
        await self._statements.write(
            "UPDATE agent_conversations SET run_id = NULL WHERE id = ? AND run_id = ?", conversation.id, run_id
        )

    async def settle(self, conversation: Conversation, run_id: str, asked: Sequence[str], usage: Usage) -> bool:
        """Note that this run has ended and what it used, once; whether this call did it."""
        rows = await self._statements.write(
            "UPDATE agent_conversations SET run_id = NULL, turns = turns + 1, asked = ?, "
            "model_calls = model_calls + ?, prompt_tokens = prompt_tokens + ?, "
            "completion_tokens = completion_tokens + ?, cost_usd = COALESCE(cost_usd + ?, ?, cost_usd), updated = ? "
            "WHERE id = ? AND run_id = ? RETURNING id",
            whole(json.dumps(list(asked))), usage.model_calls, usage.prompt_tokens, usage.completion_tokens,
            usage.cost_usd, usage.cost_usd, self._clock(), conversation.id, run_id,
        )  # fmt: skip
        return bool(rows)

    async def under_way(self) -> list[Conversation]:
        """Every conversation, of all owners, whose message is being answered: to be looked at after a restart."""
        query = f"SELECT {_READ} FROM agent_conversations WHERE run_id IS NOT NULL ORDER BY claimed"  # noqa: S608
        return [conversation_of(row) for row in await self._statements.read(query)]

    async def half_applied(self) -> list[Conversation]:
        """Every conversation, of all owners, that was applied and whose job was never written down."""
        query = (
            f"SELECT {_READ} FROM agent_conversations WHERE status = 'applied' AND archived IS NULL "  # noqa: S608
            "AND job_id IS NULL"
        )
        return [conversation_of(row) for row in await self._statements.read(query)]

    async def set_source(self, conversation: Conversation, source_id: str) -> None:
        """Say which source it is about, where that is not known; what was found out of one that was removed is not of
        this one."""
        await self._statements.write(
            "UPDATE agent_conversations SET source_id = ?, source_analysis = NULL, validation = NULL, updated = ? "
            "WHERE id = ? AND source_id IS NULL",
            source_id, self._clock(), conversation.id,
        )  # fmt: skip

    async def set_pipeline(self, conversation: Conversation, pipeline: JsonObject, *, validated: bool) -> bool:
        """Keep a proposed pipeline, and the validation that is there if it is of this one; False when the
        conversation is not active any more."""
        rows = await self._statements.write(
            "UPDATE agent_conversations SET current_pipeline = ?, "
            "validation = CASE WHEN ? = 1 THEN validation ELSE NULL END, updated = ? "
            "WHERE id = ? AND status = 'active' RETURNING id",
            _json(pipeline), int(validated), self._clock(), conversation.id,
        )  # fmt: skip
        return bool(rows)

    async def set_analysis(self, conversation: Conversation, analysis: JsonObject) -> bool:
        """Keep what is known of the source, and drop the validation, which was on the source as it was; False when the
        conversation is not active any more."""
        rows = await self._statements.write(
            "UPDATE agent_conversations SET source_analysis = ?, validation = NULL, updated = ? "
            "WHERE id = ? AND status = 'active' RETURNING id",
            _json(analysis), self._clock(), conversation.id,
        )  # fmt: skip
        return bool(rows)

    async def set_validation(self, conversation: Conversation, report: JsonObject) -> bool:
        """Keep a validation report; False when the conversation is not active any more."""
        rows = await self._statements.write(
            "UPDATE agent_conversations SET validation = ?, updated = ? "
            "WHERE id = ? AND status = 'active' RETURNING id",
            _json(report), self._clock(), conversation.id,
        )  # fmt: skip
        return bool(rows)

    async def set_summary(self, conversation: Conversation, summary: str) -> None:
        """Keep what the conversation is about, for when its messages have expired."""
        await self._statements.write(
            "UPDATE agent_conversations SET summary = ?, updated = ? WHERE id = ?",
            storable(summary), self._clock(), conversation.id,
        )  # fmt: skip

    async def taint(self, conversation: Conversation) -> None:
        """Note that text from outside has a part in what is known."""
        await self._statements.write("UPDATE agent_conversations SET tainted = 1 WHERE id = ?", conversation.id)

    async def apply(self, conversation: Conversation, collection: str, applied: JsonObject) -> bool:
        """End the conversation with its pipeline applied; False when it was not active any more."""
        rows = await self._statements.write(
            "UPDATE agent_conversations SET status = 'applied', collection = ?, applied = ?, updated = ? "
            "WHERE id = ? AND status = 'active' AND current_pipeline IS NOT NULL RETURNING id",
            storable(collection), _json(applied), self._clock(), conversation.id,
        )  # fmt: skip
        return bool(rows)

    async def note_job(self, conversation: Conversation, job_id: str) -> None:
        """Write down the job that reads the source into the collection."""
        await self._statements.write(
            "UPDATE agent_conversations SET job_id = ? WHERE id = ? AND status = 'applied'", job_id, conversation.id
        )

    async def abandon(self, conversation: Conversation) -> bool:
        """End the conversation without anything applied; False when it was not active any more."""
        rows = await self._statements.write(
            "UPDATE agent_conversations SET status = 'abandoned', updated = ? WHERE id = ? AND status = 'active' "
            "RETURNING id",
            self._clock(), conversation.id,
        )  # fmt: skip
        return bool(rows)

    async def archive(self, before: float) -> list[str]:
        """Archive what was applied or abandoned before then; the ids."""
        rows = await self._statements.write(
            "UPDATE agent_conversations SET archived = ? WHERE status <> 'active' AND archived IS NULL "
            "AND updated < ? RETURNING id",
            self._clock(), before,
        )  # fmt: skip
        return [str(row[0]) for row in rows]

    async def doubts(self, conversation: Conversation) -> list[Doubt]:
        """The uncertainties of a conversation, oldest first."""
        query = (
            f"SELECT {UNCERTAINTY_COLUMNS} FROM conversation_uncertainties WHERE conversation_id = ? "  # noqa: S608
            "ORDER BY created, id"
        )
        return [doubt_of(row) for row in await self._statements.read(query, conversation.id)]

    async def blocking(self, conversation: Conversation) -> list[Doubt]:
        """Those that keep its pipeline from being applied."""
        query = (
            f"SELECT {UNCERTAINTY_COLUMNS} FROM conversation_uncertainties "  # noqa: S608
            f"WHERE conversation_id = ? AND {_BLOCKING} ORDER BY created, id"
        )
        return [doubt_of(row) for row in await self._statements.read(query, conversation.id)]

    async def record_doubts(
        self, conversation: Conversation, origin: Origin, found: Iterable[Uncertainty], *, settled_by: str | None
    ) -> list[Doubt]:
        """Take up what `origin` now says is doubtful; the new ones. What it said before and says no more is resolved
        by `settled_by`, or stays open where that is None; what it still says stays as it is."""
        wanted = {(one.severity, storable(one.message)[:MESSAGE_CHARS]): one for one in found}
        known = [doubt for doubt in await self.doubts(conversation) if doubt.origin == origin]
        for doubt in known:
            if settled_by is not None and not doubt.resolved and (doubt.severity, doubt.message) not in wanted:
                await self.resolve(doubt, how=settled_by, resolver=origin)
        # What only this origin had settled counts as new when it is said again; a person's word stands.
        said = {(one.severity, one.message) for one in known if not one.resolved or one.resolver != origin}
        return [
            await self._doubt(conversation, origin, severity, message, one)
            for (severity, message), one in wanted.items()
            if (severity, message) not in said
        ]

    async def resolve(self, doubt: Doubt, *, how: str, resolver: str, note: str = "") -> Doubt | None:
        """Record that a doubt is settled, by whom and how; None when it was already."""
        now = self._clock()
        rows = await self._statements.write(
            "UPDATE conversation_uncertainties SET resolved = 1, resolved_by = ?, resolver = ?, note = ?, "
            "resolved_at = ? WHERE id = ? AND resolved = 0 RETURNING id",
            storable(how), resolver, storable(note) or None, now, doubt.id,
        )  # fmt: skip
        if not rows:
            return None
        return replace(doubt, resolved=True, resolved_by=how, resolver=resolver, note=note or None, resolved_at=now)

    async def _doubt(
        self,
        conversation: Conversation,
        origin: Origin,
        severity: Literal["blocking", "notable", "info"],
        message: str,
        one: Uncertainty,
    ) -> Doubt:
        made = Doubt(
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
            made.id, conversation.id, conversation.owner, origin, severity, message, _json(one.context), made.created,
        )  # fmt: skip
        return made


def _kept(value: JsonObject | None) -> str | None:
    return _json(value) if value is not None else None


def _json(value: JsonObject) -> str:
    return whole(json.dumps(value, ensure_ascii=False))
