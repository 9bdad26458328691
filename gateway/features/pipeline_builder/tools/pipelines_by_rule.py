"""`suggest_pipeline`: carries a pipeline conversation without a model, by exact commands.

The first message starts the analysis, whatever its words; a template is chosen by the files. After that only commands
(`gateway/features/pipeline_builder/engine/commands.py`) change anything.
"""

import re
from collections.abc import Sequence

from pydantic import Field

from agent.core.errors import AgentError, SubAgentFailedError, ToolError, ToolInputError
from agent.core.models import DeferredModel, JsonObject
from agent.core.subagent_result import SubAgentResult
from agent.tools import READ_ONLY_WEB, PlanHints, ToolContext, declare_roles
from gateway.features.documents.engine.ingest.dry_run_report import PipelineFix
from gateway.features.documents.engine.ingest.pipeline import NodeKind, PipelineDAG
from gateway.features.documents.engine.ingest.pipeline_check import PipelineInvalidError, check_pipeline, parse_pipeline
from gateway.features.documents.engine.ingest.pipeline_diff import apply_diff
from gateway.features.pipeline_builder.engine.commands import (
    EDITS,
    Command,
    describe_commands,
    edit_pipeline,
    parse_commands,
)
from gateway.features.pipeline_builder.engine.proposals import (
    describe_failures,
    describe_plugins,
    describe_proposal,
    describe_resolved,
    describe_templates,
    propose_pipeline,
)
from gateway.features.pipeline_builder.engine.records import Conversation, ConversationUncertainty, number_open
from gateway.features.pipeline_builder.engine.request_commands import PIPELINE_CONTINUATION
from gateway.features.pipeline_builder.engine.subagent_findings import ANALYZER, VALIDATOR, is_validated
from gateway.features.pipeline_builder.engine.summary import build_summary
from gateway.features.pipeline_builder.tools.pipelines import ConversationTool

TIMEOUT_S = 900.0
"""Three sub-agents one after the other, which have limits of their own."""
NOT_A_COMMAND = "No model is configured, so only these commands are understood, one per line."
WHAT_TO_DO = "What do you want to do?"
NO_SOURCE = (
    "Which documents is this about? Type `index SOURCE` with a folder or file below {roots}, a web address, or the id "
    "of a registered source (`src_...`). No model is configured, so only exact commands are understood: `help` lists "
    "them."
)
OTHER_SOURCE = "This conversation is about {source}. Start another conversation for another source."
NOTHING_THERE = (
    "**Found**: {summary}\n\nThere is nothing to propose a pipeline for. Add documents, then type `analyse`."
)
NOTE_CHARS = 2_000
RESUMED_NOTE = "it was decided before an interruption"
_SOURCE = re.compile(
    r"\bsrc_\w+|\bgdrive:[\w-]+|https?://[^\s\"'`<>]+|[\"'`\u201c\u2018]([^\"'`\u201c\u201d\u2018\u2019]{1,200})"
    r"[\"'`\u201d\u2019]|(?<![^\s(])[^\s\"'`<>/]{0,255}+/[^\s\"'`<>]*"
)
"""Registered ids, addresses, quoted names and paths: what names a source in any language."""
_MAX_SOURCES_TRIED = 8
_QUESTION_MARKS = ("?", "\uff1f", "\u061f")


class SuggestInput(DeferredModel):
    """Arguments of `suggest_pipeline`."""

    request: str = Field(max_length=4_000, description="the user's message")


class SuggestOutput(DeferredModel):
    """The answer, and the proposed pipeline."""

    answer: str
    pipeline: JsonObject | None = None
    tainted: bool = False


class SuggestPipelineTool(ConversationTool[SuggestInput, SuggestOutput]):
    """Answers a message of a conversation without a model. Changes only the conversation's draft, like
    `BuildPipelineTool`."""

    name = "suggest_pipeline"
    hints = PlanHints(commands=PIPELINE_CONTINUATION)
    description = (
        "Analyse this conversation's source, propose the template that fits, validate it on samples, and report "
        "uncertainties; all by rule."
    )
    annotations = READ_ONLY_WEB
    argument_roles = declare_roles(request="where")
    timeout_s = TIMEOUT_S
    uses_subagents = True

    async def run(self, args: SuggestInput, context: ToolContext) -> SuggestOutput:
        """Answers one message. What is known already is not found out again."""
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

    def format_text(self, output: SuggestOutput) -> str:
        return output.answer

    def is_tainted(self, output: SuggestOutput) -> bool:
        """Whether the answer contains file names or text of documents."""
        return output.tainted

    async def _suggest(self, request: str, context: ToolContext) -> SuggestOutput:
        conversation = await self._builder.find_conversation_for_call(context)
        source = await self._builder.get_source(conversation)
        is_analysed = source is not None and _is_analysed(conversation)
        commands = parse_commands(request)
        if commands is None:
            if (answer := _answer_question(request)) is not None:
                return _answer(conversation, answer)
            if is_analysed and not _is_resumed(context):
                return _answer(conversation, f"{NOT_A_COMMAND} Nothing was changed.\n{describe_commands()}")
            commands = [Command("analyse")]
        answers = [await self._describe(one, conversation) for one in commands]
        if all(answers):
            return _answer(conversation, "\n\n".join(answers))
        self._builder.require_active(conversation)
        named = [one.argument for one in commands if one.name == "index"]
        if source is None:
            conversation, question = await self._set_source([*_find_sources(request), *named], conversation)
            if question:
                return _answer(conversation, question)
        elif is_analysed and any(
            one not in (source.id, source.name, source.request.source_identifier) for one in named
        ):
            return _answer(conversation, OTHER_SOURCE.format(source=source.request.source_identifier))
        return await self._carry_out(request, commands, conversation, context)

    async def _carry_out(
        self, request: str, commands: Sequence[Command], conversation: Conversation, context: ToolContext
    ) -> SuggestOutput:
        """Resolves uncertainties, analyses the source and edits the pipeline, as the commands say."""
        names = {one.name for one in commands}
        edits = [one for one in commands if one.name in EDITS]
        current = parse_pipeline(conversation.pipeline) if conversation.pipeline and "reset" not in names else None
        resumed = _get_interrupted_pipeline(context)
        try:
            edited = resumed or (edit_pipeline(current, edits) if current is not None else None)
        except PipelineInvalidError as error:
            return _answer(conversation, _format_invalid(error))
        if "resolve" in names:
            numbers = [one.argument for one in commands if one.name == "resolve"]
            answer = await self._resolve(numbers, request, conversation, context)
            if names == {"resolve"}:
                return _answer(conversation, answer)
        if names & {"analyse", "index"} or not _is_analysed(conversation):
            task: JsonObject = {"source_id": conversation.source_id or "", "user_intent": request}
            conversation = await self._run_subagent(ANALYZER, task, conversation, context)
        analysis = conversation.analysis
        if analysis is None or not analysis.get("total_files"):
            if analysis is None or analysis.get("success") is False:
                raise ToolError("the source could not be analysed; type `analyse` to try again", agent_id=self.name)
            return _answer(conversation, NOTHING_THERE.format(summary=analysis.get("summary")))
        why = RESUMED_NOTE if resumed is not None else "as you changed it" if edits else ""
        if edited is None:
            source = await self._builder.get_source(conversation)
            edited, why = propose_pipeline(analysis, source.request.source_type if source else "local")
            try:
                edited = edit_pipeline(edited, edits)
            except PipelineInvalidError as error:
                return _answer(conversation, _format_invalid(error))
        conversation = await self._propose(conversation, edited, context)
        conversation = await self._apply_first_fix(conversation, context)
        pipeline = parse_pipeline(conversation.pipeline) if conversation.pipeline is not None else edited
        uncertainties = await self._builder.store.list_uncertainties(conversation)
        proposal_text = describe_proposal(analysis, pipeline, why, conversation.validation, uncertainties)
        return _answer(conversation, proposal_text)

    async def _describe(self, command: Command, conversation: Conversation) -> str:
        """The answer to a command that changes nothing; empty for the others."""
        match command.name:
            case "help":
                return describe_commands()
            case "templates":
                return describe_templates()
            case "plugins":
                return describe_plugins()
            case "failures":
                return describe_failures(
                    conversation.validation, await self._builder.store.list_uncertainties(conversation)
                )
            case "status":
                source = await self._builder.get_source(conversation)
                uncertainties = await self._builder.store.list_uncertainties(conversation)
                summary = build_summary(conversation, source, uncertainties)
                return f"The conversation is {conversation.status}.\n{summary}"
        return ""

    async def _resolve(
        self, numbers: Sequence[str], request: str, conversation: Conversation, context: ToolContext
    ) -> str:
        """Resolves open uncertainties by number; `all` are those that do not block. Returns what was resolved."""
        before = await self._builder.store.list_uncertainties(conversation)
        chosen: list[ConversationUncertainty] = []
        for number, one in number_open(before):
            if str(number) in numbers or f"#{number}" in numbers or ("all" in numbers and not one.is_blocking):
                chosen += [other for other in before if not other.resolved and _is_same(one, other)]
        for one in chosen:
            await self._builder.resolve_uncertainty(
                conversation, one.id, how="user_confirmed", by=context.owner, note=request[:NOTE_CHARS]
            )
        if not chosen:
            return f"There is no open uncertainty {', '.join(numbers)}. Type `status` for the list."
        return describe_resolved(chosen, before, await self._builder.store.list_uncertainties(conversation))

    async def _set_source(self, names: Sequence[str], conversation: Conversation) -> tuple[Conversation, str]:
        """The conversation with the first of these sources that exists, or the question which source."""
        problem = ""
        for name in names[:_MAX_SOURCES_TRIED]:
            try:
                return await self._builder.name_source(conversation, name), ""
            except AgentError as error:
                if error.kind.http_status >= 500:
                    raise
                problem = problem or f"{error.message[:1].upper()}{error.message[1:]}. "
        roots = " or ".join(str(root) for root in self._builder.sources.roots)
        return conversation, problem + NO_SOURCE.format(roots=roots)

    async def _propose(self, conversation: Conversation, pipeline: PipelineDAG, context: ToolContext) -> Conversation:
        """Proposes and validates a pipeline; returns the conversation with both."""
        await self._builder.propose_pipeline(conversation, pipeline)
        conversation = await self._builder.find_conversation_for_call(context)
        if is_validated(conversation, pipeline):
            return conversation
        task: JsonObject = {"pipeline": pipeline.model_dump(mode="json"), "source_id": conversation.source_id or ""}
        return await self._run_subagent(VALIDATOR, task, conversation, context)

    async def _apply_first_fix(self, conversation: Conversation, context: ToolContext) -> Conversation:
        """Applies the first change that was seen to help, once, and validates it.

        Recommendations of a validation that was cut short were not seen to help.
        """
        fixes = (conversation.validation or {}).get("recommended_fixes")
        if not isinstance(fixes, list) or not fixes or conversation.pipeline is None:
            return conversation
        pipeline = parse_pipeline(conversation.pipeline)
        if not is_validated(conversation, pipeline):
            return conversation
        fix = PipelineFix.model_validate(fixes[0])
        try:
            better = check_pipeline(apply_diff(pipeline, fix.pipeline_diff))
        except AgentError:  # it stays a recommendation, and the user decides
            return conversation
        return await self._propose(conversation, better, context)

    async def _run_subagent(
        self, agent_id: str, task: JsonObject, conversation: Conversation, context: ToolContext
    ) -> Conversation:
        """Runs a sub-agent; returns the conversation with its results. Raises `SubAgentFailedError`."""
        if context.subagents is None:
            raise ToolError(f"{self.name} works only within a run", agent_id=self.name)
        keep = self._builder.make_result_keeper(agent_id)
        try:
            result = await context.subagents.spawn(agent_id, task)
        except SubAgentFailedError as error:
            # What it had read is not known here: the partial result counts as external text.
            failed = SubAgentResult(success=False, data=error.partial_result, summary=error.message, tainted=True)
            await keep(task, failed, context)
            raise
        await keep(task, result, context)
        return await self._builder.get(conversation.id, conversation.owner)


def _answer(conversation: Conversation, text: str) -> SuggestOutput:
    return SuggestOutput(answer=text, pipeline=conversation.pipeline, tainted=conversation.tainted)


def _answer_question(request: str) -> str | None:
    """The answer to a question, or None if the message is none; no question starts anything.

    Lists templates or plugins if it names them, in any language that uses these words, else the commands.
    """
    if not request.rstrip().endswith(_QUESTION_MARKS):
        return None
    text = request.lower()
    if "template" in text:
        return describe_templates()
    kinds: tuple[NodeKind, ...] = ("chunker", "parser", "embedder")
    named = next((kind for kind in kinds if kind in text), None)
    return describe_plugins(named) if named is not None else f"{WHAT_TO_DO} {NOT_A_COMMAND}\n{describe_commands()}"


def _is_analysed(conversation: Conversation) -> bool:
    """Whether the source's files are known. An empty source is worth another look."""
    analysis = conversation.analysis
    return analysis is not None and bool(analysis.get("total_files")) and analysis.get("success") is not False


def _is_same(one: ConversationUncertainty, other: ConversationUncertainty) -> bool:
    return (one.severity, one.message) == (other.severity, other.message)


def _find_sources(request: str) -> list[str]:
    """The parts of a message that may name a source: ids, addresses, paths, quoted names."""
    sources = [match[1] or match[0].rstrip(".,;:!?)") for match in _SOURCE.finditer(request)]
    return list(dict.fromkeys(one.strip() for one in sources if one.strip(" /")))


def _is_resumed(context: ToolContext) -> bool:
    """Whether this call had started the analysis before a crash: its message was the first one."""
    return context.subagents is not None and bool(context.subagents.list_started_tasks(ANALYZER))


def _get_interrupted_pipeline(context: ToolContext) -> PipelineDAG | None:
    """The pipeline that this call had started to validate before a crash, for the resumed call."""
    tasks = context.subagents.list_started_tasks(VALIDATOR) if context.subagents is not None else []
    pipeline = tasks[0].get("pipeline") if tasks else None
    return parse_pipeline(pipeline) if isinstance(pipeline, dict) else None


def _format_invalid(error: PipelineInvalidError) -> str:
    return f"That cannot be done: {'; '.join(error.problems)}. Nothing was changed."
