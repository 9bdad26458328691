"""`SubAgentFindings`: stores the results of sub-agents in a conversation. `PipelineBuilder` calls it.

A conversation is about one source. A result about another source is reported to the caller and not stored.
"""

from collections.abc import Iterable
from typing import Final

from pydantic import ValidationError

from agent.core.errors import AgentError
from agent.core.models import JsonObject
from agent.core.subagent_result import SubAgentResult, Uncertainty
from agent.subagents import Caller
from gateway.features.documents.engine.ingest.connectors.content_types import get_suffix
from gateway.features.documents.engine.ingest.file_types import TYPES
from gateway.features.documents.engine.ingest.pipeline import PipelineDAG, compute_fingerprint
from gateway.features.documents.engine.ingest.pipeline_check import (
    PipelineInvalidError,
    get_source_options,
    parse_pipeline,
)
from gateway.features.documents.engine.ingest.plugins import SourceOptions
from gateway.features.documents.engine.ingest.source_store import PREFIX, SourceStore
from gateway.features.pipeline_builder.engine.conversation_store import BuilderConversationStore
from gateway.features.pipeline_builder.engine.pipeline_edits import has_forced_ocr
from gateway.features.pipeline_builder.engine.records import Conversation, Origin
from gateway.features.pipeline_builder.engine.subagents import SCANNED, FindSource, ValidationTask

ANALYZER: Final = "source_analyzer"
VALIDATOR: Final = "pipeline_validator"
RESOLVED_BY: Final[dict[Origin, str]] = {
    ANALYZER: "analysed_again",
    VALIDATOR: "pipeline_adjusted",
    "conversation": "withdrawn",
}
"""How an uncertainty is resolved when its origin no longer reports it."""
SMALL_SAMPLE: Final = (
    "This sample was smaller than {wanted} files and not all there are: it resolves no uncertainty of a larger "
    "one. Validate with sample_count {wanted} after the pipeline or the files were repaired."
)
"""Without this rule a caller could shrink the sample until nothing fails."""
_FULL_SAMPLE: Final[int] = ValidationTask.model_fields["sample_count"].default
OTHER_SOURCE: Final = "Not kept: this is of another source than the conversation's, which is {source_id}."


class SubAgentFindings:
    """Stores sub-agent results. `by_words` finds a source that has no id. Methods raise `StoreError`."""

    def __init__(self, store: BuilderConversationStore, sources: SourceStore, by_words: FindSource) -> None:
        self._store = store
        self._sources = sources
        self._find_source = by_words

    async def keep(
        self, agent_id: str, conversation: Conversation, task: JsonObject, result: SubAgentResult
    ) -> str | None:
        """Stores a result of this sub-agent. Returns a note for the caller, or None.

        The note says why the result is not stored (another source), or that it resolves nothing (sample too small).
        """
        if agent_id not in (ANALYZER, VALIDATOR):
            return None
        if result.tainted:
            await self._store.mark_tainted(conversation)
        words = str(task.get("source_id") or "").strip()
        source_id = conversation.source_id or await self.name_source(conversation, words)
        if not await self._is_same_source(words, source_id, conversation):
            return OTHER_SOURCE.format(source_id=source_id)
        if agent_id == ANALYZER:
            await self._keep_analysis(conversation, result)
            return None
        await self._keep_validation(conversation, task, source_id, result)
        return None if _is_full_sample(task, result) else SMALL_SAMPLE.format(wanted=_FULL_SAMPLE)

    async def name_source(self, conversation: Conversation, words: str) -> str:
        """Sets the source of a conversation that has none, by id, path or address; returns the source's id.

        Raises what finding and registering the source raises.
        """
        if words.startswith(PREFIX):
            source = await self._sources.get(words, conversation.owner)
        else:
            request = await self._find_source(words, Caller(conversation.owner, conversation.id))
            source = await self._sources.add(conversation.owner, request)
        await self._store.set_source(conversation, source.id)
        named = await self._store.get(conversation.id, conversation.owner)
        return named.source_id or source.id if named is not None else source.id

    async def restore_validation(self, conversation: Conversation, pipeline: PipelineDAG) -> None:
        """Restores the uncertainties of the stored validation when its pipeline is proposed again."""
        if is_validated(conversation, pipeline) and conversation.validation is not None:
            await self._record(conversation, VALIDATOR, find_uncertainties_in(conversation.validation))

    async def resolve_handled(self, conversation: Conversation, pipeline: PipelineDAG) -> None:
        """Resolves what the analysis reported and this pipeline handles: files it excludes, scans it reads by OCR."""
        options, reads_scans = get_source_options(pipeline), has_forced_ocr(pipeline)
        for one in await self._store.list_uncertainties(conversation):
            if one.origin != ANALYZER or one.resolved:
                continue
            if _is_about_excluded(one.context, options) or (reads_scans and one.message.endswith(SCANNED)):
                await self._store.resolve(one, how="pipeline_adjusted", resolver=ANALYZER)

    async def inherit_uncertainties(self, conversation: Conversation, known: Conversation) -> None:
        """Copies another conversation's uncertainties about the same source, so a new conversation cannot bypass a
        blocking one.

        Uncertainties that a person resolved stay resolved by that person.
        """
        for uncertainty in await self._store.list_uncertainties(known):
            if uncertainty.resolved and uncertainty.resolver == uncertainty.origin:
                continue
            inherited = Uncertainty(
                severity=uncertainty.severity, message=uncertainty.message, context=uncertainty.context
            )
            for made in await self._store.record_uncertainties(
                conversation, uncertainty.origin, [inherited], settled_by=None
            ):
                if uncertainty.resolved:
                    how, by = uncertainty.resolved_by or "user_confirmed", uncertainty.resolver or uncertainty.origin
                    await self._store.resolve(made, how=how, resolver=by, note=uncertainty.note or "")

    async def is_about(self, conversation: Conversation, words: str) -> bool:
        """Whether these words name the source that the conversation has."""
        return conversation.source_id is not None and await self._is_same_source(
            words, conversation.source_id, conversation
        )

    async def _is_same_source(self, words: str, source_id: str, conversation: Conversation) -> bool:
        """Whether these words name the conversation's source; empty words do."""
        if not words or words == source_id:
            return True
        owner = conversation.owner
        try:
            own = (await self._sources.get(source_id, owner)).request
            if words.startswith(PREFIX):
                return (await self._sources.get(words, owner)).request == own
            return await self._find_source(words, Caller(owner, conversation.id)) == own
        except AgentError as error:
            if error.kind.http_status >= 500:  # the store, say: nobody knows
                raise
            return False

    async def _keep_analysis(self, conversation: Conversation, result: SubAgentResult) -> None:
        """Stores an analysis, but not one that was cut short in place of a complete one. A new analysis drops the
        validation, which tested the source as it was before.
        """
        is_known = conversation.analysis is not None and conversation.analysis.get("success") is not False
        if result.data and (result.success or not is_known):
            await self._store.set_analysis(conversation, _build_report(result))
        await self._record_result(conversation, ANALYZER, result)
        if conversation.pipeline is not None:
            await self.resolve_handled(conversation, parse_pipeline(conversation.pipeline))

    async def _keep_validation(
        self, conversation: Conversation, task: JsonObject, source_id: str, result: SubAgentResult
    ) -> None:
        given = task.get("pipeline")
        try:
            pipeline = parse_pipeline(given) if isinstance(given, dict) else None
        except PipelineInvalidError:  # it was refused, and nothing was validated
            pipeline = None
        if pipeline is None:
            return
        if result.data:
            of: JsonObject = {
                "pipeline": compute_pipeline_digest(pipeline),
                "source_id": source_id,
                "sample_count": _get_sample_count(task),
            }
            await self._store.set_validation(conversation, {**_build_report(result), "of": of})
        # A report on another pipeline resolves nothing of the proposed one.
        if conversation.pipeline is None or compute_pipeline_digest(
            parse_pipeline(conversation.pipeline)
        ) == compute_pipeline_digest(pipeline):
            await self._record_result(conversation, VALIDATOR, result, settles=_is_full_sample(task, result))

    async def _record_result(
        self, conversation: Conversation, origin: Origin, result: SubAgentResult, *, settles: bool = True
    ) -> None:
        """Records the uncertainties of a result. A result that was cut short resolves nothing."""
        await self._record(conversation, origin, _list_uncertainties(result), settles=result.success and settles)

    async def _record(
        self, conversation: Conversation, origin: Origin, found: Iterable[Uncertainty], *, settles: bool = True
    ) -> None:
        await self._store.record_uncertainties(
            conversation, origin, found, settled_by=RESOLVED_BY[origin] if settles else None
        )


def _is_about_excluded(context: JsonObject, options: SourceOptions) -> bool:
    """Whether an uncertainty names all files or extensions it is about, and all of them are excluded."""
    extensions, examples = context.get("extensions"), context.get("examples")
    if isinstance(extensions, dict) and extensions:
        names = [f"*{one}" for one in extensions]
    elif isinstance(examples, list) and context.get("total") == len(examples):
        names = [str(one) for one in examples]
    else:
        return False
    return all(options.excludes(name, TYPES.get(get_suffix(name))) for name in names)


def compute_pipeline_digest(pipeline: PipelineDAG) -> str:
    """A digest that identifies a pipeline, whatever its template is called."""
    return compute_fingerprint(pipeline.model_dump(mode="json", exclude={"template"}))


def is_validated(conversation: Conversation, pipeline: PipelineDAG) -> bool:
    """Whether the stored validation finished and tested this pipeline on the conversation's source."""
    return has_report(conversation, pipeline) and (conversation.validation or {}).get("success") is not False


def has_report(conversation: Conversation, pipeline: PipelineDAG) -> bool:
    """Like `is_validated`, but also accepts a validation that was cut short."""
    of = (conversation.validation or {}).get("of")
    if not isinstance(of, dict):
        return False
    return of.get("pipeline") == compute_pipeline_digest(pipeline) and of.get("source_id") == conversation.source_id


def find_uncertainties_in(report: JsonObject) -> list[Uncertainty]:
    """The uncertainties of a report; skips those that cannot be parsed."""
    uncertainties, listed = [], report.get("uncertainties")
    for one in listed if isinstance(listed, list) else []:
        try:
            uncertainties.append(Uncertainty.model_validate(one))
        except ValidationError:
            continue
    return uncertainties


def _build_report(result: SubAgentResult) -> JsonObject:
    """The data of a result as it is stored, with all uncertainties that are recorded with it."""
    uncertainties: JsonObject = {"uncertainties": [one.model_dump(mode="json") for one in _list_uncertainties(result)]}
    return {**result.data, **uncertainties, "success": result.success}


def _list_uncertainties(result: SubAgentResult) -> list[Uncertainty]:
    """The uncertainties of a result. For a result that was cut short, adds those in its data and one that says
    so."""
    if result.success:
        return list(result.uncertainties)
    ended = result.uncertainties or (Uncertainty(severity="notable", message=f"it did not finish: {result.summary}"),)
    return list({(one.severity, one.message): one for one in (*find_uncertainties_in(result.data), *ended)}.values())


def _get_sample_count(task: JsonObject) -> int:
    """The number of files that the task samples."""
    count = task.get("sample_count")
    return count if isinstance(count, int) else _FULL_SAMPLE


def _is_full_sample(task: JsonObject, result: SubAgentResult) -> bool:
    """Whether a validation tried the default number of files, or all files there are."""
    total = result.data.get("files_found")
    return _get_sample_count(task) >= (min(_FULL_SAMPLE, total) if isinstance(total, int) else _FULL_SAMPLE)
