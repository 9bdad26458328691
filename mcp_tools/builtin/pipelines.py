"""The tools of the pipeline builder: what pipelines are made of, the conversation's proposal, and its application."""

import json
from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict, Field, StrictBool

from agent.builder.builder import PipelineBuilder
from agent.builder.errors import BlockingUncertaintyError
from agent.core.errors import AgentError, ToolError, ToolInputError
from agent.core.models import JsonObject
from agent.knowledge.pipeline import NodeKind
from agent.knowledge.plugins import PluginInfo, plugin, plugins
from agent.knowledge.templates import PipelineTemplate, chosen_pipeline, list_templates
from agent.tools import Tool, ToolAnnotations, ToolContext, TypedTool

SAY_THEN = (
    "Say `status` for what is open and its numbers, then `doubt NUMBER is fine`, or what to change; or `apply NAME "
    "anyway`"
)
APPLIES = ToolAnnotations(read_only=False, destructive=False, idempotent=True, open_world=False)


class NoInput(BaseModel):
    """Nothing to say."""

    model_config = ConfigDict(extra="forbid")


class PluginsInput(BaseModel):
    """Which plugins."""

    kind: NodeKind | None = Field(default=None, description="only those of this kind; empty: all")


class PluginLine(BaseModel):
    """A plugin in a list."""

    name: str
    kind: NodeKind
    description: str
    good_for: str
    file_types: list[str]


class PluginsOutput(BaseModel):
    """The plugins there are."""

    plugins: list[PluginLine]


class ListPluginsTool(TypedTool[PluginsInput, PluginsOutput]):
    """What pipelines are made of."""

    name = "list_plugins"
    description = "List what document pipelines are made of: sources, parsers, chunkers, embedders, indexes."
    keywords = ("plugins", "parsers", "chunkers", "embedders")
    by_name = True
    Input = PluginsInput
    Output = PluginsOutput

    async def run(self, args: PluginsInput, context: ToolContext) -> PluginsOutput:
        """The registry as it is."""
        return PluginsOutput(plugins=[_line(one) for one in plugins(args.kind)])

    def text(self, output: PluginsOutput) -> str:
        """A line each."""
        return "\n".join(
            f"- {one.name} ({one.kind}): {one.description}. Good for: {one.good_for}." for one in output.plugins
        )


class PluginInput(BaseModel):
    """Which plugin."""

    name: str = Field(min_length=1, max_length=100, description="its name, as list_plugins tells it")


class PluginDetailsTool(TypedTool[PluginInput, PluginInfo]):
    """One plugin with its options."""

    name = "get_plugin_details"
    description = "Describe one plugin of document pipelines, with the JSON schema of its options."
    keywords = ("plugin", "options")
    by_name = True
    Input = PluginInput
    Output = PluginInfo

    async def run(self, args: PluginInput, context: ToolContext) -> PluginInfo:
        """From the registry. `ToolInputError` naming those there are."""
        try:
            return plugin(args.name)
        except AgentError as error:
            raise ToolInputError(error.message, agent_id=self.name) from error


class TemplatesOutput(BaseModel):
    """The templates there are, the default one first."""

    templates: list[PipelineTemplate]


class ListTemplatesTool(TypedTool[NoInput, TemplatesOutput]):
    """Pipelines to begin with."""

    name = "list_templates"
    description = "List the pipeline templates: what each is good for, and the parameters it takes."
    keywords = ("templates", "pipeline")
    by_name = True
    Input = NoInput
    Output = TemplatesOutput

    async def run(self, args: NoInput, context: ToolContext) -> TemplatesOutput:
        """All of them."""
        return TemplatesOutput(templates=list_templates())

    def text(self, output: TemplatesOutput) -> str:
        """A line each; the pipelines themselves are made by `build_pipeline`."""
        return "\n".join(_template_line(one) for one in output.templates)


class StateOutput(BaseModel):
    """What is known by now, in words; `expired` where the earlier messages are gone."""

    conversation_id: str
    status: str
    briefing: str
    expired: bool
    tainted: bool = False
    pipeline: JsonObject | None = None


class PipelineStateTool(TypedTool[NoInput, StateOutput]):
    """The conversation's state; each of its turns begins with it."""

    name = "get_pipeline_state"
    description = (
        "Tell what this conversation has come to: its source, what was found there, the proposed pipeline, what its "
        "validation said, and what is doubtful."
    )
    keywords = ("pipeline", "state")
    by_name = True
    Input = NoInput
    Output = StateOutput

    def __init__(self, builder: PipelineBuilder) -> None:
        super().__init__()
        self._builder = builder

    async def run(self, args: NoInput, context: ToolContext) -> StateOutput:
        """As it is kept."""
        conversation = await self._builder.of_call(context)
        briefing, expired = await self._builder.briefing(conversation)
        return StateOutput(
            conversation_id=conversation.id,
            status=conversation.status,
            briefing=briefing,
            expired=expired,
            tainted=conversation.tainted,
            pipeline=conversation.pipeline,
        )

    def text(self, output: StateOutput) -> str:
        """The briefing."""
        return output.briefing

    def is_tainted(self, output: StateOutput) -> bool:
        """Whether what is known comes from outside: names of files, words of documents."""
        return output.tainted


class BuildInput(BaseModel):
    """A template with its parameters, or a whole pipeline."""

    template: str | None = Field(default=None, max_length=100, description="name of a template; see list_templates")
    parameters: JsonObject | None = Field(default=None, description="the template's parameters by name")
    pipeline: JsonObject | None = Field(
        default=None, description='instead of a template: {"nodes": [{"id", "kind", "plugin", "options"}], "edges": '
        '[{"from_node", "to_node"}]}, from a source over parsers, chunker and embedder to an index',
    )  # fmt: skip


class BuildOutput(BaseModel):
    """The pipeline that is proposed now."""

    conversation_id: str
    pipeline: JsonObject


class BuildPipelineTool(TypedTool[BuildInput, BuildOutput]):
    """Proposes a pipeline. Only the conversation's own draft changes, which nothing is read by before it is applied:
    so it counts as reading, and may be repeated."""

    name = "build_pipeline"
    description = (
        "Propose a pipeline for this conversation, from a template with parameters or whole. One that cannot be "
        "carried out is refused with every reason."
    )
    keywords = ("build", "pipeline", "propose")
    by_name = True
    Input = BuildInput
    Output = BuildOutput

    def __init__(self, builder: PipelineBuilder) -> None:
        super().__init__()
        self._builder = builder

    async def run(self, args: BuildInput, context: ToolContext) -> BuildOutput:
        """Check it, keep it. `ToolInputError` with what is wrong."""
        try:
            pipeline = chosen_pipeline(args.template, args.parameters, args.pipeline)
            if pipeline is None:
                raise ToolInputError("give a template or a pipeline", agent_id=self.name)
            conversation = await self._builder.of_call(context)
            await self._builder.build(conversation, pipeline)
        except AgentError as error:
            raise _told(error, self.name) from error
        return BuildOutput(conversation_id=conversation.id, pipeline=pipeline.model_dump(mode="json"))

    def text(self, output: BuildOutput) -> str:
        """The whole of it, to be validated as it stands."""
        return "The pipeline can be carried out, and is proposed now:\n" + json.dumps(output.pipeline)


class ApplyInput(BaseModel):
    """Where to."""

    collection_name: str = Field(min_length=1, max_length=200, description="name of the collection that is made")
    force: StrictBool = Field(
        default=False, description="override unresolved blocking issues; only when the user says so"
    )


class ApplyOutput(BaseModel):
    """What was begun."""

    collection_id: str
    collection_name: str
    status: str
    job_id: str | None


class ApplyPipelineTool(TypedTool[ApplyInput, ApplyOutput]):
    """Makes the collection and starts reading the source into it; the same as the door's `apply`."""

    name = "apply_pipeline"
    description = (
        "Apply the proposed pipeline: make the collection and start reading the source into it. Refused while blocking "
        "issues are unresolved, unless forced."
    )
    annotations = APPLIES
    keywords = ("apply", "pipeline", "collection")
    by_name = True
    Input = ApplyInput
    Output = ApplyOutput

    def __init__(self, builder: PipelineBuilder) -> None:
        super().__init__()
        self._builder = builder

    async def foresee(self, args: JsonObject, context: ToolContext) -> None:
        """`ToolInputError` where the pipeline, an open doubt or the name forbids it; see `Foreseeing`."""
        wanted = ApplyInput.model_validate(args)
        try:
            conversation = await self._builder.of_call(context)
            await self._builder.may_apply(conversation, wanted.collection_name, force=wanted.force)
        except AgentError as error:
            raise _told(error, self.name, by_rules=context.model is None) from error

    async def run(self, args: ApplyInput, context: ToolContext) -> ApplyOutput:
        """As the builder does it."""
        try:
            conversation = await self._builder.of_call(context)
            applied = await self._builder.apply(conversation, args.collection_name, force=args.force, by=context.owner)
        except AgentError as error:
            raise _told(error, self.name, by_rules=context.model is None) from error
        return ApplyOutput(
            collection_id=args.collection_name,
            collection_name=args.collection_name,
            status="indexing",
            job_id=applied.job_id,
        )

    def text(self, output: ApplyOutput) -> str:
        """As a sentence."""
        return (
            f"The collection {output.collection_name!r} is made, and its documents are being read now (job "
            f"{output.job_id}). Ask it in the room `knowledge`: what has been read is found there at once."
        )


def pipeline_tools(builder: PipelineBuilder) -> Sequence[Tool]:
    """The tools of the builder but for those that start sub-agents."""
    return (
        ListPluginsTool(),
        PluginDetailsTool(),
        ListTemplatesTool(),
        PipelineStateTool(builder),
        BuildPipelineTool(builder),
        ApplyPipelineTool(builder),
    )


def _told(error: AgentError, tool: str, *, by_rules: bool = False) -> ToolError:
    """A refusal as the model is told it: what is wrong with its call, or that it could not be done now. Where rules
    carry the conversation a person reads it, and is told what they can say."""
    if isinstance(error, ToolError):
        return error
    if by_rules and isinstance(error, BlockingUncertaintyError):
        return ToolInputError(f"{error.message}. {SAY_THEN}", agent_id=tool)
    if error.kind.http_status < 500:
        return ToolInputError(error.message, agent_id=tool)
    return ToolError(error.message, agent_id=tool)


def _line(info: PluginInfo) -> PluginLine:
    return PluginLine(
        name=info.name,
        kind=info.kind,
        description=info.description,
        good_for=info.good_for,
        file_types=list(info.file_types),
    )


def _template_line(one: PipelineTemplate) -> str:
    knobs = ", ".join(f"{knob.name} (default {knob.default!r})" for knob in one.parameters)
    return f"- {one.name}: {one.description} For {', '.join(one.suggested_for)}. Parameters: {knobs}."
