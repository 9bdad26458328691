"""`PipelineBuilder`: what a conversation about a pipeline knows, and what becomes of it. Tools and doors use it alike.

It starts no runs; `conversations.py` does, and these are carried out by tools that come back here."""

import logging
from collections.abc import Callable

from agent.builder.errors import BlockingUncertaintyError, ConversationNotActiveError, PipelineMissingError
from agent.builder.findings import Findings, has_report, is_validated
from agent.builder.messages import MessageLog, history
from agent.builder.records import Conversation, Doubt
from agent.builder.sources import PREFIX, NamedSource, SourceStore
from agent.builder.store import BuilderStore
from agent.builder.summary import briefing, summary_of
from agent.core.audit import UNRECORDED, Act, AuditLog
from agent.core.errors import AgentError, BadRequestError, ConflictError, NotFoundError, StoreError
from agent.core.models import JsonObject
from agent.core.subagents import SubAgentResult, Uncertainty
from agent.knowledge.collection_store import Collection, CollectionStore
from agent.knowledge.job_runner import IngestJobs
from agent.knowledge.jobs import JobRequest
from agent.knowledge.library import Library
from agent.knowledge.models import ConnectorInput
from agent.knowledge.pipeline import PipelineDAG
from agent.knowledge.pipeline_check import read_pipeline
from agent.subagents.base import Caller, FindSource
from agent.subagents.spawn import Keep
from agent.tools import ToolContext

log = logging.getLogger(__name__)


class PipelineBuilder:
    """The conversations' state, by owner. Methods raise `StoreError` besides what they name."""

    def __init__(
        self,
        store: BuilderStore,
        sources: SourceStore,
        messages: MessageLog,
        library: Library,
        collections: CollectionStore,
        jobs: IngestJobs,
        words: FindSource,
        clock: Callable[[], float],
        audit: AuditLog = UNRECORDED,
    ) -> None:
        self._audit = audit
        self.store = store
        self.sources = sources
        self.messages = messages
        self._library = library
        self._collections = collections
        self._jobs = jobs
        self._words = words
        self._findings = Findings(store, sources, words)
        self._clock = clock

    async def get(self, conversation_id: str, owner: str) -> Conversation:
        """A conversation by its id or its chat's. `NotFoundError`, for another owner's too."""
        found = await self.store.get(conversation_id, owner)
        if found is None:
            raise NotFoundError(f"there is no conversation {conversation_id[:100]!r}", agent_id="builder")
        return found

    async def of_call(self, context: ToolContext) -> Conversation:
        """The conversation a tool is called in; a chat, or a run without one, gets one of its own with the first."""
        name = context.conversation_id or context.run_id
        return await self.store.get(name, context.owner) or await self.store.add(context.owner, chat_id=name)

    async def source(self, conversation: Conversation) -> NamedSource | None:
        """The source it is about; None where that is not known, or it was removed."""
        if conversation.source_id is None:
            return None
        try:
            return await self.sources.get(conversation.source_id, conversation.owner)
        except NotFoundError:
            return None

    async def find_source(self, source_id: str, caller: Caller) -> ConnectorInput:
        """A source by its id; no name at all means the conversation's own, every other name a path, a URL, or
        `gdrive:<id>`. Implements `FindSource`."""
        name = source_id.strip()
        if name.startswith(PREFIX):
            return (await self.sources.get(name, caller.owner)).request
        if not name and caller.conversation_id is not None:
            conversation = await self.store.get(caller.conversation_id, caller.owner)
            source = await self.source(conversation) if conversation is not None else None
            if source is not None:
                return source.request
        return await self._words(source_id, caller)

    async def briefing(self, conversation: Conversation) -> tuple[str, bool]:
        """What is known as a turn begins, and whether the messages before it have expired."""
        expired = conversation.turns > 0 and not await self._earlier(conversation)
        source, doubts = await self.source(conversation), await self.store.doubts(conversation)
        return briefing(conversation, source, doubts, expired=expired), expired

    async def last_answer(self, conversation: Conversation) -> str:
        """What was answered last; empty where nothing was, or it has expired."""
        try:
            known = await self.messages.read(conversation.id)
        except StoreError:  # their server is away, and the message can be read without them
            return ""
        return next((one.content for one in reversed(known) if one.role == "assistant"), "")

    async def build(self, conversation: Conversation, pipeline: PipelineDAG) -> None:
        """Keep a checked pipeline as the proposed one. `ConversationNotActiveError`."""
        self.must_be_active(conversation)
        kept = has_report(conversation, pipeline)
        if not await self.store.set_pipeline(conversation, pipeline.model_dump(mode="json"), validated=kept):
            raise self._ended(conversation)
        await self._findings.proposed(conversation, pipeline)
        await self.summarise(conversation)

    async def inherit(self, conversation: Conversation, known: Conversation) -> None:
        """Take over into a new conversation what another one about the same source found doubtful."""
        await self._findings.inherit(conversation, known)

    async def name_source(self, conversation: Conversation, words: str) -> Conversation:
        """The conversation, about the source that these words mean, where it had none; see `Findings.name_source`."""
        await self._findings.name_source(conversation, words)
        return await self.get(conversation.id, conversation.owner)

    def keeper(self, agent_id: str) -> Keep:
        """What is told of each result of this sub-agent, see `Keep`. Runs outside of conversations keep nothing."""

        async def keep(task: JsonObject, result: SubAgentResult, context: ToolContext) -> str | None:
            name = context.conversation_id or context.run_id
            conversation = await self.store.get(name, context.owner)
            if conversation is None or conversation.status != "active":
                return None
            other = await self._findings.keep(agent_id, conversation, task, result)
            await self.summarise(conversation)
            return other

        return keep

    async def resolve(self, conversation: Conversation, doubt_id: str, *, how: str, by: str, note: str = "") -> Doubt:
        """Settle a doubt, by a person. `NotFoundError`, `ConflictError` when it is settled already,
        `ConversationNotActiveError`."""
        self.must_be_active(conversation)
        doubt = next((one for one in await self.store.doubts(conversation) if one.id == doubt_id), None)
        if doubt is None:
            raise NotFoundError(f"there is no uncertainty {doubt_id[:100]!r} in this conversation", agent_id="builder")
        taken = ConflictError(f"{doubt_id} is resolved already ({doubt.resolved_by})", agent_id="builder")
        if doubt.resolved:
            raise taken
        about: JsonObject = {"uncertainty": doubt.id, "severity": doubt.severity}
        act = Act("conversation.resolve", conversation.id, owner=conversation.owner, by=by, detail=about)
        async with self._audit.recorded(act):
            resolved = await self.store.resolve(doubt, how=how, resolver=by, note=note)
            if resolved is None:
                raise taken
        await self.summarise(conversation)
        return resolved

    async def apply(self, conversation: Conversation, collection: str, *, force: bool, by: str) -> Conversation:
        """Make the collection and start reading the source into it. Doing it again with the same collection changes
        nothing, unless that was deleted.

        Raises what `may_apply` does."""
        if conversation.status == "applied" and _into(conversation) == collection:
            if conversation.job_id is not None and await self._collections.get(conversation.owner, collection) is None:
                raise ConversationNotActiveError(
                    f"Conversation is not active: {conversation.id} was applied to {collection!r}, which has been "
                    "deleted since; begin another one to make it anew: POST /api/v2/agent/conversations "
                    f'{{"from_conversation": "{conversation.id}"}}',
                    agent_id="builder",
                )
            return await self._finish(conversation)
        blocking = await self.may_apply(conversation, collection, force=force)
        overridden = [one.id for one in blocking]
        applied: JsonObject = {
            "collection": collection,
            "by": by,
            "at": self._clock(),
            "force": force,
            "overridden": [*overridden],
            "validated": is_validated(conversation, self._pipeline(conversation)),
        }
        about: JsonObject = {"collection": collection, "force": force, "overridden": [*overridden]}
        act = Act("conversation.apply", conversation.id, owner=conversation.owner, by=by, detail=about)
        async with self._audit.recorded(act):
            if not await self.store.apply(conversation, collection, applied):
                raise self._ended(conversation)
        if overridden:
            log.warning("%s applied %s by force over %s", by, conversation.id, ", ".join(overridden))
        return await self._finish(await self.get(conversation.id, conversation.owner))

    async def may_apply(self, conversation: Conversation, collection: str, *, force: bool) -> list[Doubt]:
        """The blocking doubts that applying would override; to be asked before a person is.

        Raises `ConversationNotActiveError`, `PipelineMissingError`, `BlockingUncertaintyError` unless `force`,
        `ConflictError` for a collection that is there already, `BadRequestError` for a name or source that will not
        do."""
        self.must_be_active(conversation)
        pipeline = self._pipeline(conversation)
        blocking = await self.store.blocking(conversation)
        if blocking and not force:
            raise BlockingUncertaintyError(
                [Uncertainty(severity=one.severity, message=one.message, context=one.context) for one in blocking]
            )
        source = await self.source(conversation)
        if source is None:
            raise BadRequestError("the conversation's source is not there any more", agent_id="builder")
        await self._library.check(conversation.owner, collection, source.request, pipeline)
        if collection in await self._library.collections(conversation.owner):
            raise ConflictError(
                f"there is a collection {collection!r} already; choose another name", agent_id="builder"
            )
        return blocking

    async def abandon(self, conversation: Conversation, *, by: str | None = None) -> Conversation:
        """End it without applying anything, `by` whom is recorded; again is no error. `ConversationNotActiveError` for
        an applied one."""
        if conversation.status != "abandoned":
            self.must_be_active(conversation)
            act = Act("conversation.abandon", conversation.id, owner=conversation.owner, by=by)
            async with self._audit.recorded(act):
                if not await self.store.abandon(conversation):
                    raise self._ended(conversation)
            await self.summarise(conversation)
        return await self.get(conversation.id, conversation.owner)

    async def resume(self) -> None:
        """Finish what was applied when the gateway stopped in between."""
        for conversation in await self.store.half_applied():
            try:
                await self._finish(conversation)
            except AgentError as error:  # one that cannot be finished must not keep the gateway from starting
                log.warning("%s is applied and not indexed: %s", conversation.id, error.message)

    async def summarise(self, conversation: Conversation) -> None:
        """Bring the summary up to what is known now."""
        fresh = await self.get(conversation.id, conversation.owner)
        text = summary_of(fresh, await self.source(fresh), await self.store.doubts(fresh))
        if text != fresh.summary:
            await self.store.set_summary(fresh, text)

    def must_be_active(self, conversation: Conversation) -> None:
        """Raise `ConversationNotActiveError` unless it is active."""
        if conversation.status != "active":
            raise self._ended(conversation)

    def _ended(self, conversation: Conversation) -> ConversationNotActiveError:
        collection, ended, ask = _into(conversation), "has ended", ""
        if conversation.status == "applied":
            ended = f"was applied to the collection {collection!r}"
            ask = f"ask the collection {collection!r} (room `knowledge`), or "
        elif conversation.status == "abandoned":
            ended = "was abandoned"
        return ConversationNotActiveError(
            f"Conversation is not active: {conversation.id} {ended}. What you can do: {ask}begin another conversation, "
            "in a new chat, or from this one's pipeline: POST /api/v2/agent/conversations "
            f'{{"from_conversation": "{conversation.id}"}}',
            agent_id="builder",
            status=conversation.status,
            collection=collection or None,
        )

    async def _finish(self, conversation: Conversation) -> Conversation:
        """The row of the collection and its job, as far as they are not there."""
        collection, source = _into(conversation), await self.source(conversation)
        if conversation.job_id is None and source is not None:
            pipeline = self._pipeline(conversation)
            if await self._collections.get(conversation.owner, collection) is None:
                # `incomplete` until the job has read it: the job says how far it is.
                row = Collection(collection, pipeline, (source.request,), status="incomplete")
                await self._collections.put(conversation.owner, row)
            request = JobRequest(source=source.request, pipeline=pipeline)
            job = await self._jobs.submit(conversation.owner, collection, request)
            await self.store.note_job(conversation, job.id)
        await self.summarise(conversation)
        return await self.get(conversation.id, conversation.owner)

    async def _earlier(self, conversation: Conversation) -> bool:
        """Whether any message is left but the one that is being answered."""
        return len(history(await self.messages.read(conversation.id))) > 1

    def _pipeline(self, conversation: Conversation) -> PipelineDAG:
        if conversation.pipeline is None:
            raise PipelineMissingError("No pipeline configured: let one be proposed first", agent_id="builder")
        return read_pipeline(conversation.pipeline)


def _into(conversation: Conversation) -> str:
    """The collection it was applied to, whether that is still there or not."""
    return str(conversation.applied.get("collection") or "") if conversation.applied is not None else ""
