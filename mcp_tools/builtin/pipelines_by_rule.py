"""`suggest_pipeline`: what a model does in a conversation, by rule: analyse, propose, validate, correct."""

from pydantic import BaseModel, Field

from agent.builder.advice import asks_state, fitting, knobs, plain_answer, proposal, wants_again
from agent.builder.builder import PipelineBuilder, mark
from agent.builder.records import Conversation
from agent.core.errors import AgentError, SubAgentFailedError, ToolError, ToolInputError
from agent.core.models import JsonObject
from agent.core.subagents import SubAgentResult
from agent.knowledge.dry_run_report import PipelineFix
from agent.knowledge.pipeline import PipelineDAG
from agent.knowledge.pipeline_check import checked, read_pipeline
from agent.knowledge.pipeline_diff import applied
from agent.knowledge.templates import from_template, template
from agent.tools import READ_ONLY_WEB, ToolContext, TypedTool

ANALYZER, VALIDATOR = "source_analyzer", "pipeline_validator"
TIMEOUT_S = 900.0
"""Three sub-agents one after the other, which have limits of their own."""
NO_SOURCE = "Which documents is this about? Register the source (POST /v1/sources), and begin the conversation with it."


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
            briefing, _ = await self._builder.briefing(conversation)
            return SuggestOutput(answer=briefing, pipeline=conversation.pipeline, tainted=conversation.tainted)
        source = await self._builder.source(conversation)
        if source is None:
            return SuggestOutput(answer=NO_SOURCE)
        self._builder.must_be_active(conversation)
        if conversation.analysis is None or wants_again(request):
            task: JsonObject = {"source_id": source.id, "user_intent": request}
            conversation = await self._delegated(ANALYZER, task, conversation, context)
        if conversation.analysis is None:
            raise ToolError("the source could not be analysed", agent_id=self.name)
        goal = conversation.asked[0] if conversation.asked else ""
        name, why = fitting(conversation.analysis, f"{request} {goal}", source.request.source_type)
        pipeline = from_template(name, knobs(template(name), request))
        conversation = await self._proposed(conversation, pipeline, context)
        conversation = await self._corrected(conversation, context)
        doubts = await self._builder.store.doubts(conversation)
        analysis, proposed = conversation.analysis or {}, conversation.pipeline or {}
        told = proposal(analysis, proposed, why, conversation.validation, doubts)
        return SuggestOutput(answer=told, pipeline=conversation.pipeline, tainted=conversation.tainted)

    async def _proposed(self, conversation: Conversation, pipeline: PipelineDAG, context: ToolContext) -> Conversation:
        """The conversation with this pipeline proposed and validated."""
        await self._builder.build(conversation, pipeline)
        conversation = await self._builder.of_call(context)
        if conversation.validation is not None and conversation.validation.get("of") == mark(pipeline):
            return conversation
        task: JsonObject = {"pipeline": pipeline.model_dump(mode="json"), "source_id": conversation.source_id or ""}
        return await self._delegated(VALIDATOR, task, conversation, context)

    async def _corrected(self, conversation: Conversation, context: ToolContext) -> Conversation:
        """The first change that was seen to help is made, and validated; once, for it is the user's pipeline."""
        fixes = (conversation.validation or {}).get("recommended_fixes")
        if not isinstance(fixes, list) or not fixes or conversation.pipeline is None:
            return conversation
        fix = PipelineFix.model_validate(fixes[0])
        try:
            better = checked(applied(read_pipeline(conversation.pipeline), fix.pipeline_diff))
        except AgentError:  # it is recommended all the same, and the user decides
            return conversation
        return await self._proposed(conversation, better, context)

    async def _delegated(
        self, agent_id: str, task: JsonObject, conversation: Conversation, context: ToolContext
    ) -> Conversation:
        """The conversation with what the sub-agent found. `SubAgentFailedError`."""
        if context.subagents is None:
            raise ToolError(f"{self.name} works within a run only", agent_id=self.name)
        result: SubAgentResult = await context.subagents.spawn(agent_id, task)
        await self._builder.keeper(agent_id)(task, result, context)
        return await self._builder.get(conversation.id, conversation.owner)
