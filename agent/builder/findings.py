"""`Findings`: what sub-agents found out, as it becomes part of a conversation; `PipelineBuilder` hands it on.

A conversation is about one source. What was found out about another one is told to whoever asked, and not kept."""

from collections.abc import Iterable
from typing import Final

from pydantic import ValidationError

from agent.builder.records import Conversation, Origin
from agent.builder.sources import PREFIX, SourceStore
from agent.builder.store import BuilderStore
from agent.core.errors import AgentError
from agent.core.models import JsonObject
from agent.core.subagents import SubAgentResult, Uncertainty
from agent.knowledge.pipeline import PipelineDAG, fingerprint
from agent.knowledge.pipeline_check import PipelineInvalidError, read_pipeline
from agent.subagents.base import Caller, FindSource
from agent.subagents.pipeline_validator import ValidationTask

ANALYZER: Final = "source_analyzer"
VALIDATOR: Final = "pipeline_validator"
ADJUSTED: Final[dict[Origin, str]] = {
    ANALYZER: "analysed_again",
    VALIDATOR: "pipeline_adjusted",
    "conversation": "withdrawn",
}
"""How a doubt is settled that its origin no longer has."""
NARROW: Final = (
    "This sample was smaller than {wanted} files and not all there are: it settles no doubt of a larger one. Validate "
    "with sample_count {wanted} where the pipeline or the files were mended."
)
"""Else whoever may choose the sample could choose it until nothing fails."""
_WANTED: Final[int] = ValidationTask.model_fields["sample_count"].default
OTHER_SOURCE: Final = "Not kept: this is of another source than the conversation's, which is {source_id}."


class Findings:
    """Keeps results of sub-agents. `by_words` finds a source that has no id. Methods raise `StoreError`."""

    def __init__(self, store: BuilderStore, sources: SourceStore, by_words: FindSource) -> None:
        self._store = store
        self._sources = sources
        self._by_words = by_words

    async def keep(
        self, agent_id: str, conversation: Conversation, task: JsonObject, result: SubAgentResult
    ) -> str | None:
        """Keep a result of this sub-agent; what is to be told of that: why it is not kept, where it is of another
        source than the conversation's, and that it settles nothing, where its sample is too small."""
        if agent_id not in (ANALYZER, VALIDATOR):
            return None
        if result.tainted:
            await self._store.taint(conversation)
        words = str(task.get("source_id") or "").strip()
        source_id = conversation.source_id or await self.name_source(conversation, words)
        if not await self._means(words, source_id, conversation):
            return OTHER_SOURCE.format(source_id=source_id)
        if agent_id == ANALYZER:
            await self._keep_analysis(conversation, result)
            return None
        await self._keep_report(conversation, task, source_id, result)
        return None if _is_wide(task, result) else NARROW.format(wanted=_WANTED)

    async def name_source(self, conversation: Conversation, words: str) -> str:
        """Make what a user or model calls by an id, a path or an address the source of a conversation that has none
        yet; the id of the source it has then. Raises what finding and registering it does."""
        if words.startswith(PREFIX):
            source = await self._sources.get(words, conversation.owner)
        else:
            request = await self._by_words(words, Caller(conversation.owner, conversation.id))
            source = await self._sources.add(conversation.owner, request)
        await self._store.set_source(conversation, source.id)
        named = await self._store.get(conversation.id, conversation.owner)
        return named.source_id or source.id if named is not None else source.id

    async def proposed(self, conversation: Conversation, pipeline: PipelineDAG) -> None:
        """Take up again what the validation says of this pipeline, which is proposed once more."""
        if is_validated(conversation, pipeline) and conversation.validation is not None:
            await self._doubt(conversation, VALIDATOR, said_in(conversation.validation))

    async def inherit(self, conversation: Conversation, known: Conversation) -> None:
        """Make what is doubtful in another conversation about the same source doubtful in this new one: whoever goes
        on from there is past nothing that blocked it. What a person has settled stays settled, by them."""
        for doubt in await self._store.doubts(known):
            if doubt.resolved and doubt.resolver == doubt.origin:
                continue
            said = Uncertainty(severity=doubt.severity, message=doubt.message, context=doubt.context)
            for made in await self._store.record_doubts(conversation, doubt.origin, [said], settled_by=None):
                if doubt.resolved:
                    how, by = doubt.resolved_by or "user_confirmed", doubt.resolver or doubt.origin
                    await self._store.resolve(made, how=how, resolver=by, note=doubt.note or "")

    async def _means(self, words: str, source_id: str, conversation: Conversation) -> bool:
        """Whether these words mean the conversation's source; none at all do."""
        if not words or words == source_id:
            return True
        owner = conversation.owner
        try:
            own = (await self._sources.get(source_id, owner)).request
            if words.startswith(PREFIX):
                return (await self._sources.get(words, owner)).request == own
            return await self._by_words(words, Caller(owner, conversation.id)) == own
        except AgentError as error:
            if error.kind.http_status >= 500:  # the store, say: nobody knows
                raise
            return False

    async def _keep_analysis(self, conversation: Conversation, result: SubAgentResult) -> None:
        """A new analysis makes the validation one of a source as it was, so that is dropped."""
        if result.data:
            await self._store.set_analysis(conversation, {**result.data, "success": result.success})
        await self._take_up(conversation, ANALYZER, result)

    async def _keep_report(
        self, conversation: Conversation, task: JsonObject, source_id: str, result: SubAgentResult
    ) -> None:
        given = task.get("pipeline")
        try:
            pipeline = read_pipeline(given) if isinstance(given, dict) else None
        except PipelineInvalidError:  # it was refused, and nothing was validated
            pipeline = None
        if pipeline is None:
            return
        if result.data:
            said: JsonObject = {"uncertainties": [one.model_dump(mode="json") for one in _told(result)]}
            of: JsonObject = {"pipeline": mark(pipeline), "source_id": source_id, "sample_count": _sampled(task)}
            report: JsonObject = {**result.data, **said, "success": result.success, "of": of}
            await self._store.set_validation(conversation, report)
        # The doubts of another pipeline than the proposed one settle none of its own.
        if conversation.pipeline is None or mark(read_pipeline(conversation.pipeline)) == mark(pipeline):
            await self._take_up(conversation, VALIDATOR, result, settles=_is_wide(task, result))

    async def _take_up(
        self, conversation: Conversation, origin: Origin, result: SubAgentResult, *, settles: bool = True
    ) -> None:
        """The doubts of a result. One that did not come to its end has not seen that anything is settled."""
        await self._doubt(conversation, origin, _told(result), settles=result.success and settles)

    async def _doubt(
        self, conversation: Conversation, origin: Origin, found: Iterable[Uncertainty], *, settles: bool = True
    ) -> None:
        await self._store.record_doubts(conversation, origin, found, settled_by=ADJUSTED[origin] if settles else None)


def mark(pipeline: PipelineDAG) -> str:
    """What tells one pipeline from another, whatever their templates are called."""
    return fingerprint(pipeline.model_dump(mode="json", exclude={"template"}))


def is_validated(conversation: Conversation, pipeline: PipelineDAG) -> bool:
    """Whether the validation came to its end, and is of this pipeline on the conversation's source."""
    return has_report(conversation, pipeline) and (conversation.validation or {}).get("success") is not False


def has_report(conversation: Conversation, pipeline: PipelineDAG) -> bool:
    """The same of a validation that may have ended before its time."""
    of = (conversation.validation or {}).get("of")
    if not isinstance(of, dict):
        return False
    return of.get("pipeline") == mark(pipeline) and of.get("source_id") == conversation.source_id


def said_in(report: JsonObject) -> list[Uncertainty]:
    """The doubts that a report holds, as far as they can be read."""
    found, listed = [], report.get("uncertainties")
    for one in listed if isinstance(listed, list) else []:
        try:
            found.append(Uncertainty.model_validate(one))
        except ValidationError:
            continue
    return found


def _told(result: SubAgentResult) -> list[Uncertainty]:
    """The doubts of a result; of an unfinished one also those that its data hold, and that it is one."""
    if result.success:
        return list(result.uncertainties)
    ended = result.uncertainties or (
        Uncertainty(severity="notable", message=f"it did not come to its end: {result.summary}"),
    )
    return list({(one.severity, one.message): one for one in (*said_in(result.data), *ended)}.values())


def _sampled(task: JsonObject) -> int:
    """How many files were to be tried."""
    count = task.get("sample_count")
    return count if isinstance(count, int) else _WANTED


def _is_wide(task: JsonObject, result: SubAgentResult) -> bool:
    """Whether a validation tried as many files as one is meant to, or all there are."""
    found = result.data.get("files_found")
    return _sampled(task) >= (min(_WANTED, found) if isinstance(found, int) else _WANTED)
