"""`PipelineBuilder`: the state of conversations about pipelines. Tools and HTTP doors use the same methods.

It starts no runs. `conversations.py` starts them, and their tools call back into this class.
"""

import logging
from collections.abc import Callable

from agent.core.errors import AgentError, BadRequestError, ConflictError, NotFoundError
from agent.core.models import JsonObject
from agent.core.subagent_result import SubAgentResult, Uncertainty
from agent.storage.audit import NO_AUDIT, AuditEvent, AuditLog
from agent.subagents import Caller, KeepResult
from agent.tools import ToolContext
from gateway.features.documents.engine.ingest.collection_store import Collection, CollectionStore
from gateway.features.documents.engine.ingest.job_runner import IngestJobs
from gateway.features.documents.engine.ingest.jobs import JobRequest
from gateway.features.documents.engine.ingest.library import Library
from gateway.features.documents.engine.ingest.pipeline import PipelineDAG
from gateway.features.documents.engine.ingest.pipeline_check import parse_pipeline
from gateway.features.documents.engine.ingest.source_store import PREFIX, NamedSource, SourceStore
from gateway.features.documents.engine.search.models import ConnectorInput
from gateway.features.pipeline_builder.engine.conversation_store import BuilderConversationStore
from gateway.features.pipeline_builder.engine.errors import (
    BlockingUncertaintyError,
    ConversationNotActiveError,
    PipelineMissingError,
)
from gateway.features.pipeline_builder.engine.messages import MessageLog, list_chat_history
from gateway.features.pipeline_builder.engine.records import Conversation, ConversationUncertainty
from gateway.features.pipeline_builder.engine.subagent_findings import SubAgentFindings, has_report, is_validated
from gateway.features.pipeline_builder.engine.subagents import FindSource
from gateway.features.pipeline_builder.engine.summary import build_briefing, build_summary

log = logging.getLogger(__name__)


class PipelineBuilder:
    """Reads and changes conversations, per owner. Every method may raise `StoreError`."""

    def __init__(
        self,
        store: BuilderConversationStore,
        sources: SourceStore,
        messages: MessageLog,
        library: Library,
        collections: CollectionStore,
        jobs: IngestJobs,
        words: FindSource,
        clock: Callable[[], float],
        audit: AuditLog = NO_AUDIT,
    ) -> None:
        self._audit = audit
        self.store = store
        self.sources = sources
        self.messages = messages
        self._library = library
        self._collections = collections
        self._jobs = jobs
        self._find_by_name = words
        self._findings = SubAgentFindings(store, sources, words)
        self._clock = clock

    async def get(self, conversation_id: str, owner: str) -> Conversation:
        """A conversation by its id or by its chat's id. Raises `NotFoundError`, also for another owner's."""
        conversation = await self.store.get(conversation_id, owner)
        if conversation is None:
            raise NotFoundError(f"there is no conversation {conversation_id[:100]!r}", agent_id="builder")
        return conversation

    async def find_conversation_for_call(self, context: ToolContext) -> Conversation:
        """The conversation that a tool call belongs to. The first call of a chat, or of a run without one,
        creates it."""
        name = context.conversation_id or context.run_id
        return await self.store.get(name, context.owner) or await self.store.add(context.owner, chat_id=name)

    async def get_source(self, conversation: Conversation) -> NamedSource | None:
        """The conversation's source, or None if it has none or the source was removed."""
        if conversation.source_id is None:
            return None
        try:
            return await self.sources.get(conversation.source_id, conversation.owner)
        except NotFoundError:
            return None

    async def find_source(self, source_id: str, caller: Caller) -> ConnectorInput:
        """Resolves a source name. Implements `FindSource`.

        An empty name is the conversation's own source, `src_...` is a registered one; anything else is a path, a URL or
        `gdrive:<id>`.
        """
        name = source_id.strip()
        if name.startswith(PREFIX):
            return (await self.sources.get(name, caller.owner)).request
        if not name and caller.conversation_id is not None:
            conversation = await self.store.get(caller.conversation_id, caller.owner)
            source = await self.get_source(conversation) if conversation is not None else None
            if source is not None:
                return source.request
        return await self._find_by_name(source_id, caller)

    async def build_briefing(self, conversation: Conversation) -> tuple[str, bool]:
        """The briefing for a new turn, and whether the earlier messages have expired."""
        expired = conversation.turns > 0 and not await self._has_earlier_messages(conversation)
        source, uncertainties = await self.get_source(conversation), await self.store.list_uncertainties(conversation)
        return build_briefing(conversation, source, uncertainties, expired=expired), expired

    async def propose_pipeline(self, conversation: Conversation, pipeline: PipelineDAG) -> None:
        """Stores a checked pipeline as the proposed one. Raises `ConversationNotActiveError`."""
        self.require_active(conversation)
        keeps_report = has_report(conversation, pipeline)
        if not await self.store.set_pipeline(conversation, pipeline.model_dump(mode="json"), validated=keeps_report):
            raise self._make_not_active_error(conversation)
        await self._findings.restore_validation(conversation, pipeline)
        await self._findings.resolve_handled(conversation, pipeline)
        await self.update_summary(conversation)

    async def inherit_uncertainties(self, conversation: Conversation, known: Conversation) -> None:
        """Copies the uncertainties of another conversation about the same source into a new one."""
        await self._findings.inherit_uncertainties(conversation, known)

    async def name_source(self, conversation: Conversation, words: str) -> Conversation:
        """Sets the source of a conversation that has none and returns the updated conversation. See
        `SubAgentFindings`."""
        await self._findings.name_source(conversation, words)
        return await self.get(conversation.id, conversation.owner)

    async def require_source(self, conversation: Conversation, words: str) -> Conversation:
        """The conversation with this source: sets it if there is none yet.

        Raises `BadRequestError` if it is about another source, and what finding the source raises.
        """
        self.require_active(conversation)
        if conversation.source_id is None:
            return await self.name_source(conversation, words.strip())
        if not await self._findings.is_about(conversation, words.strip()):
            raise BadRequestError(
                f"this conversation is about {conversation.source_id}; begin another one for another source",
                agent_id="builder",
                param="source_id",
            )
        return conversation

    def make_result_keeper(self, agent_id: str) -> KeepResult:
        """The callback that stores this sub-agent's results, see `KeepResult`. It does nothing outside
        conversations."""

        async def keep(task: JsonObject, result: SubAgentResult, context: ToolContext) -> str | None:
            name = context.conversation_id or context.run_id
            conversation = await self.store.get(name, context.owner)
            if conversation is None or conversation.status != "active":
                return None
            other = await self._findings.keep(agent_id, conversation, task, result)
            await self.update_summary(conversation)
            return other

        return keep

    async def resolve_uncertainty(
        self, conversation: Conversation, uncertainty_id: str, *, how: str, by: str, note: str = ""
    ) -> ConversationUncertainty:
        """Resolves an uncertainty on behalf of a person.

        Raises `NotFoundError`, `ConflictError` if it is resolved already, and `ConversationNotActiveError`.
        """
        self.require_active(conversation)
        uncertainty = next(
            (one for one in await self.store.list_uncertainties(conversation) if one.id == uncertainty_id), None
        )
        if uncertainty is None:
            raise NotFoundError(
                f"there is no uncertainty {uncertainty_id[:100]!r} in this conversation", agent_id="builder"
            )
        conflict = ConflictError(
            f"{uncertainty_id} is resolved already ({uncertainty.resolved_by})", agent_id="builder"
        )
        if uncertainty.resolved:
            raise conflict
        about: JsonObject = {"uncertainty": uncertainty.id, "severity": uncertainty.severity}
        act = AuditEvent("conversation.resolve", conversation.id, owner=conversation.owner, by=by, detail=about)
        async with self._audit.record_before(act):
            resolved = await self.store.resolve(uncertainty, how=how, resolver=by, note=note)
            if resolved is None:
                raise conflict
        await self.update_summary(conversation)
        return resolved

    async def apply(self, conversation: Conversation, collection: str, *, force: bool, by: str) -> Conversation:
        """Creates the collection and starts to read the source into it.

        Repeating the call with the same collection changes nothing, unless that collection was deleted. Raises what
        `check_can_apply` raises.
        """
        if conversation.status == "applied" and _get_applied_collection(conversation) == collection:
            if conversation.job_id is not None and await self._collections.get(conversation.owner, collection) is None:
                raise ConversationNotActiveError(
                    f"Conversation is not active: {conversation.id} was applied to {collection!r}, which has been "
                    "deleted since; start another one to build it again: POST /api/v2/agent/conversations "
                    f'{{"from_conversation": "{conversation.id}"}}',
                    agent_id="builder",
                )
            return await self._finish_apply(conversation)
        blocking = await self.check_can_apply(conversation, collection, force=force)
        overridden = [one.id for one in blocking]
        applied: JsonObject = {
            "collection": collection,
            "by": by,
            "at": self._clock(),
            "force": force,
            "overridden": [*overridden],
            "validated": is_validated(conversation, self._get_current_pipeline(conversation)),
        }
        about: JsonObject = {"collection": collection, "force": force, "overridden": [*overridden]}
        act = AuditEvent("conversation.apply", conversation.id, owner=conversation.owner, by=by, detail=about)
        async with self._audit.record_before(act):
            if not await self.store.apply(conversation, collection, applied):
                raise self._make_not_active_error(conversation)
        if overridden:
            log.warning("%s applied %s by force over %s", by, conversation.id, ", ".join(overridden))
        return await self._finish_apply(await self.get(conversation.id, conversation.owner))

    async def check_can_apply(
        self, conversation: Conversation, collection: str, *, force: bool
    ) -> list[ConversationUncertainty]:
        """The blocking uncertainties that applying would override. Called before a person is asked for
        approval.

        Raises `ConversationNotActiveError`, `PipelineMissingError`, `BlockingUncertaintyError` unless `force`,
        `ConflictError` if the collection exists, and `BadRequestError` for an unusable name or source.
        """
        self.require_active(conversation)
        pipeline = self._get_current_pipeline(conversation)
        blocking = await self.store.list_blocking(conversation)
        if blocking and not force:
            raise BlockingUncertaintyError(
                [Uncertainty(severity=one.severity, message=one.message, context=one.context) for one in blocking]
            )
        source = await self.get_source(conversation)
        if source is None:
            raise BadRequestError(
                "there is nothing to read: this conversation has no source, or it was removed. Name it by source_id "
                "(spawn_source_analyzer, build_pipeline), or begin another conversation about a source",
                agent_id="builder",
            )
        await self._library.check_ingest(conversation.owner, collection, source.request, pipeline)
        if collection in await self._library.list_collections(conversation.owner):
            raise ConflictError(
                f"there is a collection {collection!r} already; choose another name", agent_id="builder"
            )
        return blocking

    async def abandon(self, conversation: Conversation, *, by: str | None = None) -> Conversation:
        """Ends the conversation without applying anything; `by` is recorded. Abandoning twice is not an error.

        Raises `ConversationNotActiveError` for an applied conversation.
        """
        if conversation.status != "abandoned":
            self.require_active(conversation)
            act = AuditEvent("conversation.abandon", conversation.id, owner=conversation.owner, by=by)
            async with self._audit.record_before(act):
                if not await self.store.abandon(conversation):
                    raise self._make_not_active_error(conversation)
            await self.update_summary(conversation)
        return await self.get(conversation.id, conversation.owner)

    async def finish_half_applied(self) -> None:
        """Finishes conversations that were applied when the gateway stopped before the job was created."""
        for conversation in await self.store.list_half_applied():
            try:
                await self._finish_apply(conversation)
            except AgentError as error:  # one that cannot be finished must not keep the gateway from starting
                log.warning("%s is applied and not indexed: %s", conversation.id, error.message)

    async def update_summary(self, conversation: Conversation) -> None:
        """Rebuilds the stored summary from what is known now."""
        fresh = await self.get(conversation.id, conversation.owner)
        text = build_summary(fresh, await self.get_source(fresh), await self.store.list_uncertainties(fresh))
        if text != fresh.summary:
            await self.store.set_summary(fresh, text)

    def require_active(self, conversation: Conversation) -> None:
        """Raises `ConversationNotActiveError` unless the conversation is active."""
        if conversation.status != "active":
            raise self._make_not_active_error(conversation)

    def _make_not_active_error(self, conversation: Conversation) -> ConversationNotActiveError:
        collection, ended, ask = _get_applied_collection(conversation), "has ended", ""
        if conversation.status == "applied":
            deleted = conversation.collection is None
            ended = f"was applied to the collection {collection!r}{', which is deleted' if deleted else ''}"
            ask = "" if deleted else f"ask the collection {collection!r} (room `knowledge`), or "
        elif conversation.status == "abandoned":
            ended = "was abandoned"
        return ConversationNotActiveError(
            f"Conversation is not active: {conversation.id} {ended}. What you can do: {ask}begin another conversation, "
            "in a new chat (over MCP: under a new conversation_id), or from this one's pipeline: POST "
            f'/api/v2/agent/conversations {{"from_conversation": "{conversation.id}"}}',
            agent_id="builder",
            status=conversation.status,
            collection=collection or None,
        )

    async def _finish_apply(self, conversation: Conversation) -> Conversation:
        """Creates the collection's row and its job if they do not exist yet."""
        collection, source = _get_applied_collection(conversation), await self.get_source(conversation)
        if conversation.job_id is None and source is not None:
            pipeline = self._get_current_pipeline(conversation)
            if await self._collections.get(conversation.owner, collection) is None:
                # `incomplete` until the job has read it: the job says how far it is.
                row = Collection(collection, pipeline, (source.request,), status="incomplete")
                await self._collections.put(conversation.owner, row)
            request = JobRequest(source=source.request, pipeline=pipeline)
            job = await self._jobs.submit(conversation.owner, collection, request)
            await self.store.set_job(conversation, job.id)
        await self.update_summary(conversation)
        return await self.get(conversation.id, conversation.owner)

    async def _has_earlier_messages(self, conversation: Conversation) -> bool:
        """Whether messages other than the current one are still stored."""
        return len(list_chat_history(await self.messages.read(conversation.id))) > 1

    def _get_current_pipeline(self, conversation: Conversation) -> PipelineDAG:
        if conversation.pipeline is None:
            raise PipelineMissingError("No pipeline configured: ask for a proposal first", agent_id="builder")
        return parse_pipeline(conversation.pipeline)


def _get_applied_collection(conversation: Conversation) -> str:
    """The name of the collection it was applied to, even if that was deleted; empty if it was not applied."""
    return str(conversation.applied.get("collection") or "") if conversation.applied is not None else ""
