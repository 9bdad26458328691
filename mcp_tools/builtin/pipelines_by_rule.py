"""`suggest_pipeline`: what a model does in a conversation, by rule: analyse, propose, validate, correct."""

from collections.abc import Sequence

from pydantic import BaseModel, Field

from agent.builder.adjusting import deviations, forces_ocr
from agent.builder.advice import fitting, knobs, proposal, settled_told
from agent.builder.builder import PipelineBuilder
from agent.builder.changes import made, read_wishes
from agent.builder.findings import ANALYZER, VALIDATOR, is_validated
from agent.builder.hearing import Heard, at_once, heard_as, is_analysed, named_before
from agent.builder.questions import asks_state, clarifying, plain_answer, wants_again, wants_reset
from agent.builder.records import Conversation, Doubt
from agent.builder.summary import summary_of
from agent.builder.wishes import sources_named
from agent.core.errors import AgentError, SubAgentFailedError, ToolError, ToolInputError
from agent.core.models import JsonObject
from agent.core.subagents import SubAgentResult
from agent.knowledge.dry_run_report import PipelineFix
from agent.knowledge.pipeline import PipelineDAG
from agent.knowledge.pipeline_check import PipelineInvalidError, checked, read_pipeline
from agent.knowledge.pipeline_diff import applied
from agent.knowledge.templates import from_template, template
from agent.subagents.source_doubts import SCANNED
from agent.tools import READ_ONLY_WEB, ToolContext, TypedTool

TIMEOUT_S = 900.0
"""Three sub-agents one after the other, which have limits of their own."""
NO_SOURCE = (
    "Which documents is this about? Name a folder or file below {roots} (`index the folder papers`), a web address, or "
    "the id of a registered source (`src_...`)."
)
NOTE_CHARS = 2_000
TRIED = "that was decided when this was interrupted; it went on from there"
NOTHING_THERE = (
    "**Found**: {summary}\n\nThere is nothing to propose a pipeline for yet. Put documents there, then say "
    "`analyse again`."
)


class SuggestInput(BaseModel):
    """What the user says."""

    request: str = Field(max_length=4_000, description="the user's message")


class SuggestOutput(BaseModel):
    """The answer, and what is proposed now."""

    answer: str
    pipeline: JsonObject | None = None
    tainted: bool = False


class SuggestPipelineTool(TypedTool[SuggestInput, SuggestOutput]):
    """Carries a message of a conversation without a model. Only the conversation's own draft changes: see
    `BuildPipelineTool`."""

    name = "suggest_pipeline"
    description = (
        "Analyse this conversation's source, propose the template that fits, validate it on samples, and say what is "
        "doubtful; all by rule."
    )
    annotations = READ_ONLY_WEB
    timeout_s = TIMEOUT_S
    by_name = True
    spawns = True
    Input = SuggestInput
    Output = SuggestOutput

    def __init__(self, builder: PipelineBuilder) -> None:
        super().__init__()
        self._builder = builder

    async def run(self, args: SuggestInput, context: ToolContext) -> SuggestOutput:
        """One message. What was found out before is not found out again."""
        answer = plain_answer(args.request)
        if answer is not None:
            return SuggestOutput(answer=answer)
        try:
            return await self._suggest(args.request, context)
        except SubAgentFailedError as error:
            raise ToolError(error.message, agent_id=self.name) from error
        except ToolError:
            raise
        except AgentError as error:
            if error.kind.http_status < 500:
                raise ToolInputError(error.message, agent_id=self.name) from error
            raise ToolError(error.message, agent_id=self.name) from error

    def text(self, output: SuggestOutput) -> str:
        """The answer."""
        return output.answer

    def is_tainted(self, output: SuggestOutput) -> bool:
        """Whether the answer holds names of files or words of documents."""
        return output.tainted

    async def _suggest(self, request: str, context: ToolContext) -> SuggestOutput:
        conversation = await self._builder.of_call(context)
        if asks_state(request):
            return await self._told(conversation)
        last = await self._builder.last_answer(conversation) if conversation.source_id is not None else ""
        doubts, tried = await self._builder.store.doubts(conversation), _tried(context)
        heard = heard_as(request, last, conversation, doubts, is_anew=tried is not None)
        current = heard.current
        answer = at_once(heard, conversation, current) if current is not None and tried is None else ""
        if answer:
            return SuggestOutput(answer=answer, pipeline=conversation.pipeline, tainted=conversation.tainted)
        question = (
            None if wants_reset(heard.request) else clarifying(heard.request, proposed=bool(conversation.pipeline))
        )
        if question is not None:
            return SuggestOutput(answer=question, pipeline=conversation.pipeline)
        self._builder.must_be_active(conversation)
        if await self._builder.source(conversation) is None:
            conversation, question = await self._named(heard.request, conversation)
            if question:
                return SuggestOutput(answer=question)
        try:
            change = made(current, heard.reading.wishes) if current is not None and tried is None else tried
        except PipelineInvalidError as error:
            return SuggestOutput(answer=_impossible(error), pipeline=conversation.pipeline)
        return await self._done(heard, change, conversation, context)

    async def _done(
        self, heard: Heard, change: tuple[PipelineDAG, str] | None, conversation: Conversation, context: ToolContext
    ) -> SuggestOutput:
        """What the message asks for, once it is read: doubts settled, the source analysed, a pipeline proposed."""
        request, current, settled = heard.request, heard.current, heard.settlement.doubts
        anew = wants_again(request) or not is_analysed(conversation)
        if current is not None and change is not None and forces_ocr(change[0]) and not forces_ocr(current):
            scans = [one for one in heard.doubts if not one.resolved and one.message.endswith(SCANNED)]
            await self._settle(conversation, scans, "pipeline_adjusted", request, context)
        await self._settle(conversation, settled, "user_confirmed", request, context)
        if settled and change is None and not anew and not heard.settlement.unread:
            after, named = await self._builder.store.doubts(conversation), named_before(conversation, heard.reading)
            told = settled_told(settled, heard.doubts, after, named=named)
            return SuggestOutput(answer=told, pipeline=conversation.pipeline, tainted=conversation.tainted)
        if anew:
            task: JsonObject = {"source_id": conversation.source_id or "", "user_intent": request}
            conversation = await self._delegated(ANALYZER, task, conversation, context)
        wanted = change or ((current, "") if current is not None else None)
        return await self._answered(request, conversation, wanted, context)

    async def _answered(
        self,
        request: str,
        conversation: Conversation,
        wanted: tuple[PipelineDAG, str] | None,
        context: ToolContext,
    ) -> SuggestOutput:
        """What is found and proposed: the pipeline that is wanted, and why; else the template that fits, once there is
        something to read."""
        analysis = conversation.analysis
        if analysis is None or not analysis.get("total_files"):
            if analysis is None or analysis.get("success") is False:
                raise ToolError("the source could not be analysed; say `analyse again`", agent_id=self.name)
            return SuggestOutput(
                answer=NOTHING_THERE.format(summary=analysis.get("summary")), tainted=conversation.tainted
            )
        if wanted is None:
            source = await self._builder.source(conversation)
            goal = conversation.asked[0] if conversation.asked else ""
            name, why = fitting(analysis, f"{request} {goal}", source.request.source_type if source else "local")
            first = read_wishes(goal).wishes if goal != request else ()
            wishes = (*first, *read_wishes(request).wishes)
            try:
                proposed = from_template(name, knobs(template(name), request))
                change = made(proposed, wishes)
            except PipelineInvalidError as error:
                return SuggestOutput(answer=_impossible(error), tainted=conversation.tainted)
            wanted = (change[0], f"{why}, and {change[1]}") if change is not None else (proposed, why)
        pipeline, why = wanted
        conversation = await self._proposed(conversation, pipeline, context)
        conversation = await self._corrected(conversation, context)
        pipeline = read_pipeline(conversation.pipeline) if conversation.pipeline is not None else pipeline
        doubts = await self._builder.store.doubts(conversation)
        named = named_before(conversation, read_wishes(request))
        told = proposal(
            analysis,
            pipeline,
            why,
            conversation.validation,
            doubts,
            deviations=tuple(deviations(pipeline)),
            named=named,
        )
        return SuggestOutput(answer=told, pipeline=conversation.pipeline, tainted=conversation.tainted)

    async def _settle(
        self, conversation: Conversation, doubts: Sequence[Doubt], how: str, request: str, context: ToolContext
    ) -> None:
        """Settle open doubts by the user's word, which is kept with each."""
        for one in doubts:
            await self._builder.resolve(conversation, one.id, how=how, by=context.owner, note=request[:NOTE_CHARS])

    async def _told(self, conversation: Conversation) -> SuggestOutput:
        """What is known, in sentences."""
        source, doubts = await self._builder.source(conversation), await self._builder.store.doubts(conversation)
        answer = f"The conversation is {conversation.status}.\n{summary_of(conversation, source, doubts)}"
        return SuggestOutput(answer=answer, pipeline=conversation.pipeline, tainted=conversation.tainted)

    async def _named(self, request: str, conversation: Conversation) -> tuple[Conversation, str]:
        """The conversation with the source that the message names, or what to ask: which source, and why not the one
        that was named."""
        problem = ""
        for words, sure in sources_named(request):
            try:
                return await self._builder.name_source(conversation, words), ""
            except AgentError as error:
                if error.kind.http_status >= 500:
                    raise
                problem = problem or (f"{error.message[:1].upper()}{error.message[1:]}. " if sure else "")
        roots = " or ".join(str(root) for root in self._builder.sources.roots)
        return conversation, problem + NO_SOURCE.format(roots=roots)

    async def _proposed(self, conversation: Conversation, pipeline: PipelineDAG, context: ToolContext) -> Conversation:
        """The conversation with this pipeline proposed and validated."""
        await self._builder.build(conversation, pipeline)
        conversation = await self._builder.of_call(context)
        if is_validated(conversation, pipeline):
            return conversation
        task: JsonObject = {"pipeline": pipeline.model_dump(mode="json"), "source_id": conversation.source_id or ""}
        return await self._delegated(VALIDATOR, task, conversation, context)

    async def _corrected(self, conversation: Conversation, context: ToolContext) -> Conversation:
        """The first change that was seen to help is made, and validated; once, for it is the user's pipeline. What a
        validation that did not come to its end recommends was seen to help by nobody."""
        fixes = (conversation.validation or {}).get("recommended_fixes")
        if not isinstance(fixes, list) or not fixes or conversation.pipeline is None:
            return conversation
        pipeline = read_pipeline(conversation.pipeline)
        if not is_validated(conversation, pipeline):
            return conversation
        fix = PipelineFix.model_validate(fixes[0])
        try:
            better = checked(applied(pipeline, fix.pipeline_diff))
        except AgentError:  # it is recommended all the same, and the user decides
            return conversation
        return await self._proposed(conversation, better, context)

    async def _delegated(
        self, agent_id: str, task: JsonObject, conversation: Conversation, context: ToolContext
    ) -> Conversation:
        """The conversation with what the sub-agent found. `SubAgentFailedError`."""
        if context.subagents is None:
            raise ToolError(f"{self.name} works within a run only", agent_id=self.name)
        keep = self._builder.keeper(agent_id)
        try:
            result = await context.subagents.spawn(agent_id, task)
        except SubAgentFailedError as error:
            # What it had read by then is not known here: it counts as from outside.
            failed = SubAgentResult(success=False, data=error.partial_result, summary=error.message, tainted=True)
            await keep(task, failed, context)
            raise
        await keep(task, result, context)
        return await self._builder.get(conversation.id, conversation.owner)


def _tried(context: ToolContext) -> tuple[PipelineDAG, str] | None:
    """The pipeline that this call had proposed and begun to validate before a crash: to wish for "smaller" once more
    would make it smaller twice. None where there was no crash."""
    tasks = context.subagents.begun(VALIDATOR) if context.subagents is not None else []
    pipeline = tasks[0].get("pipeline") if tasks else None
    return (read_pipeline(pipeline), TRIED) if isinstance(pipeline, dict) else None


def _impossible(error: PipelineInvalidError) -> str:
    return f"That cannot be done: {'; '.join(error.problems)}. Nothing was changed."
