"""The pipeline builder's tools: list plugins and templates, show, propose and apply the conversation's pipeline."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import ClassVar

from pydantic import ConfigDict, Field, StrictBool

from agent.core.errors import AgentError, ToolDeniedError, ToolError, ToolInputError
from agent.core.models import DeferredModel, JsonObject
from agent.core.record_item import RecordItem
from agent.tools import ConversationUse, PlanHints, Tool, ToolAnnotations, ToolContext, TypedTool, declare_roles
from agent.tools.tool import In, Out
from gateway.features.documents.engine.ingest.pipeline import NodeKind
from gateway.features.documents.engine.ingest.plugins import PluginInfo, get_plugin, list_plugins
from gateway.features.documents.engine.ingest.templates import (
    PipelineTemplate,
    build_requested_pipeline,
    list_templates,
)
from gateway.features.pipeline_builder.engine.builder import PipelineBuilder
from gateway.features.pipeline_builder.engine.errors import BlockingUncertaintyError
from gateway.features.pipeline_builder.engine.request_commands import PIPELINE_APPLICATION

REPLY_HINT = (
    "Type `status` for the open uncertainties and their numbers, then `resolve NUMBER`, or change the pipeline "
    "(`help`), or `apply NAME anyway`"
)
APPLY_ANNOTATIONS = ToolAnnotations(read_only=False, destructive=False, idempotent=True, open_world=False)


class NoInput(DeferredModel):
    """No arguments."""

    model_config = ConfigDict(extra="forbid")


class PluginsInput(DeferredModel):
    """Arguments of `list_plugins`."""

    kind: NodeKind | None = Field(default=None, description="only those of this kind; empty: all")


class PluginLine(RecordItem):
    """A plugin in a list."""

    name: str
    kind: NodeKind
    description: str
    good_for: str
    file_types: list[str]


class PluginsOutput(DeferredModel):
    """The plugins."""

    plugins: list[PluginLine]


class ListPluginsTool(TypedTool[PluginsInput, PluginsOutput]):
    name = "list_plugins"
    description = "List what document pipelines are made of: sources, parsers, chunkers, embedders, indexes."
    keywords = ("plugins", "parsers", "chunkers", "embedders")
    is_opt_in = True

    async def run(self, args: PluginsInput, context: ToolContext) -> PluginsOutput:
        return PluginsOutput(plugins=PluginLine.from_records(list_plugins(args.kind)))

    def format_text(self, output: PluginsOutput) -> str:
        return "\n".join(
            f"- {one.name} ({one.kind}): {one.description}. Good for: {one.good_for}." for one in output.plugins
        )


class PluginInput(DeferredModel):
    """Arguments of `get_plugin_details`."""

    name: str = Field(min_length=1, max_length=100, description="a name that list_plugins returns")


class PluginDetailsTool(TypedTool[PluginInput, PluginInfo]):
    name = "get_plugin_details"
    description = "Describe one plugin of document pipelines, with the JSON schema of its options."
    keywords = ("plugin", "options")
    is_opt_in = True

    async def run(self, args: PluginInput, context: ToolContext) -> PluginInfo:
        """Reads the registry. Raises `ToolInputError` with the known names."""
        try:
            return get_plugin(args.name)
        except AgentError as error:
            raise ToolInputError(error.message, agent_id=self.name) from error


class TemplatesOutput(DeferredModel):
    """The templates, the default one first."""

    templates: list[PipelineTemplate]


class ListTemplatesTool(TypedTool[NoInput, TemplatesOutput]):
    name = "list_templates"
    description = "List the pipeline templates: what each is good for, and the parameters it takes."
    keywords = ("templates", "pipeline")
    is_opt_in = True

    async def run(self, args: NoInput, context: ToolContext) -> TemplatesOutput:
        return TemplatesOutput(templates=list_templates())

    def format_text(self, output: TemplatesOutput) -> str:
        """One line for each template. `build_pipeline` creates the pipelines themselves."""
        return "\n".join(_format_template(one) for one in output.templates)


class ConversationTool(TypedTool[In, Out]):
    """The base of the tools that work on the pipeline of the call's conversation."""

    is_opt_in = True
    conversation: ClassVar[ConversationUse] = "starts"

    def __init__(self, builder: PipelineBuilder) -> None:
        super().__init__()
        self._builder = builder


class StateOutput(DeferredModel):
    """The conversation's state in words. `expired`: its earlier messages are no longer stored."""

    conversation_id: str
    status: str
    briefing: str
    expired: bool
    tainted: bool = False
    pipeline: JsonObject | None = None


class PipelineStateTool(ConversationTool[NoInput, StateOutput]):
    """The conversation's state. Each of its turns starts with this call."""

    name = "get_pipeline_state"
    description = (
        "Return this conversation's state: its source, what was found there, the proposed pipeline, the result of its "
        "validation, and open uncertainties."
    )
    keywords = ("pipeline", "state")
    conversation = "continues"

    async def run(self, args: NoInput, context: ToolContext) -> StateOutput:
        """Reads the stored conversation."""
        conversation = await self._builder.find_conversation_for_call(context)
        briefing, expired = await self._builder.build_briefing(conversation)
        return StateOutput(
            conversation_id=conversation.id,
            status=conversation.status,
            briefing=briefing,
            expired=expired,
            tainted=conversation.tainted,
            pipeline=conversation.pipeline,
        )

    def format_text(self, output: StateOutput) -> str:
        return output.briefing

    def is_tainted(self, output: StateOutput) -> bool:
        """Whether the state holds text from outside, such as file names or words of documents."""
        return output.tainted


class BuildInput(DeferredModel):
    """A template with its parameters, or a whole pipeline."""

    template: str | None = Field(default=None, max_length=100, description="name of a template; see list_templates")
    parameters: JsonObject | None = Field(default=None, description="the template's parameters by name")
    pipeline: JsonObject | None = Field(
        default=None, description='instead of a template: {"nodes": [{"id", "kind", "plugin", "options"}], "edges": '
        '[{"from_node", "to_node"}]}, from a source over parsers, chunker and embedder to an index',
    )  # fmt: skip
    source_id: str = Field(
        default="",
        max_length=4_000,
        description="what it reads, if this conversation has no source yet: a source's id, a path, a URL, gdrive:<id>",
    )


class BuildOutput(DeferredModel):
    """The proposed pipeline."""

    conversation_id: str
    pipeline: JsonObject


class BuildPipelineTool(ConversationTool[BuildInput, BuildOutput]):
    """Proposes a pipeline.

    The effect class is `read`, because only the conversation's draft changes, which nothing uses before it is applied.
    """

    name = "build_pipeline"
    description = (
        "Propose a pipeline for this conversation, from a template with parameters or complete. An invalid pipeline is "
        "rejected with all reasons."
    )
    keywords = ("build", "pipeline", "propose")

    async def run(self, args: BuildInput, context: ToolContext) -> BuildOutput:
        """Validates and stores the pipeline. Raises `ToolInputError` with what is wrong."""
        with _convert_errors(self.name):
            pipeline = build_requested_pipeline(args.template, args.parameters, args.pipeline)
            if pipeline is None:
                raise ToolInputError("give a template or a pipeline", agent_id=self.name)
            conversation = await self._builder.find_conversation_for_call(context)
            if args.source_id.strip():
                conversation = await self._builder.require_source(conversation, args.source_id)
            await self._builder.propose_pipeline(conversation, pipeline)
        return BuildOutput(conversation_id=conversation.id, pipeline=pipeline.model_dump(mode="json"))

    def format_text(self, output: BuildOutput) -> str:
        """The complete pipeline, so that it can be validated unchanged."""
        return "The pipeline is valid and is proposed now:\n" + json.dumps(output.pipeline)


class ApplyInput(DeferredModel):
    """Arguments of `apply_pipeline`."""

    collection_name: str = Field(min_length=1, max_length=200, description="name of the new collection")
    force: StrictBool = Field(
        default=False, description="override unresolved blocking issues; only when the user says so"
    )


class ApplyOutput(DeferredModel):
    """The indexing job that was started."""

    collection_id: str
    collection_name: str
    status: str
    job_id: str | None


class ApplyPipelineTool(ConversationTool[ApplyInput, ApplyOutput]):
    """Creates the collection and starts to read the source into it, like the HTTP endpoint `apply`."""

    name = "apply_pipeline"
    description = (
        "Apply the proposed pipeline: create the collection and start reading the source into it. Rejected while "
        "blocking issues are unresolved, unless forced."
    )
    annotations = APPLY_ANNOTATIONS
    argument_roles = declare_roles(collection_name="where", force="other")
    conversation = "continues"
    keywords = ("apply", "pipeline", "collection")
    hints = PlanHints(
        commands=PIPELINE_APPLICATION,
        accepted_wishes="`use the name NAME`, or `apply NAME anyway` over blocking issues",
    )

    async def preflight(self, args: JsonObject, context: ToolContext) -> None:
        """Raises `ToolInputError` if the pipeline, an open uncertainty or the name forbids it, and `ToolDeniedError`
        for a caller without the scope `ingest`.
        """
        context.require_scope("ingest")
        parsed = ApplyInput.model_validate(args)
        with _convert_errors(self.name, by_rules=context.model is None):
            conversation = await self._builder.find_conversation_for_call(context)
            await self._builder.check_can_apply(conversation, parsed.collection_name, force=parsed.force)

    async def run(self, args: ApplyInput, context: ToolContext) -> ApplyOutput:
        context.require_scope("ingest")
        with _convert_errors(self.name, by_rules=context.model is None):
            conversation = await self._builder.find_conversation_for_call(context)
            applied = await self._builder.apply(conversation, args.collection_name, force=args.force, by=context.owner)
        return ApplyOutput(
            collection_id=args.collection_name,
            collection_name=args.collection_name,
            status="indexing",
            job_id=applied.job_id,
        )

    def format_text(self, output: ApplyOutput) -> str:
        return (
            f"The collection {output.collection_name!r} is created, and its documents are being read now (job "
            f"{output.job_id}). Ask about them in the room `knowledge`: each document can be searched once it is read."
        )


def make_pipeline_tools(builder: PipelineBuilder) -> Sequence[Tool]:
    """The pipeline builder's tools, except those that start sub-agents."""
    return (
        ListPluginsTool(),
        PluginDetailsTool(),
        ListTemplatesTool(),
        PipelineStateTool(builder),
        BuildPipelineTool(builder),
        ApplyPipelineTool(builder),
    )


@contextmanager
def _convert_errors(tool: str, *, by_rules: bool = False) -> Iterator[None]:
    """Raises what the pipeline builder raises as an error of this tool; the tool's own errors stay as they are."""
    try:
        yield
    except ToolError:
        raise
    except AgentError as error:
        raise _build_tool_error(error, tool, by_rules=by_rules) from error


def _build_tool_error(error: AgentError, tool: str, *, by_rules: bool) -> ToolError:
    """An error for the model: what is wrong with its call, or that it cannot be done now.

    In a conversation without a model a person reads it, as a refusal with every reason and what to do.
    """
    if error.kind.http_status >= 500:
        return ToolError(error.message, agent_id=tool)
    if not by_rules:
        return ToolInputError(error.message, agent_id=tool)
    if isinstance(error, BlockingUncertaintyError):
        reasons = "; ".join(one.message for one in error.uncertainties)
        return ToolDeniedError(f"Blocking issues unresolved: {reasons}. {REPLY_HINT}", agent_id=tool)
    return ToolDeniedError(error.message, agent_id=tool)


def _format_template(one: PipelineTemplate) -> str:
    knobs = ", ".join(f"{knob.name} (default {knob.default!r})" for knob in one.parameters)
    return f"- {one.name}: {one.description} For {', '.join(one.suggested_for)}. Parameters: {knobs}."
