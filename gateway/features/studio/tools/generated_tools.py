"""`tools_list`, `tool_show`, `tool_generate`, `tool_refine`, `tool_apply`, `tool_discard`, `tool_restore` and
`tool_remove`: generated tools for plans and MCP clients.

`tool_generate` and `tool_refine` only stage a version; nothing uses it before a person allows `tool_apply`.
"""

from abc import abstractmethod
from collections.abc import Awaitable, Callable
from typing import ClassVar

from pydantic import Field

from agent.core.errors import AgentError, ToolInputError
from agent.core.models import DeferredModel, JsonObject
from agent.core.principal import Principal
from agent.tools import READ_ONLY, PlanHints, Tool, ToolContext, ToolModel, ToolResult, declare_roles
from agent.tools.stored_things import (
    CHANGES,
    DESTROYS,
    Arguments,
    ReviewedVersions,
    StoredThingList,
    StoredThingTool,
    omit_outside_text,
)
from agent.tools.tool import In, Out
from gateway.features.studio.engine.generated_tools.models import ToolVersion
from gateway.features.studio.engine.generated_tools.service import GeneratedTools
from gateway.features.studio.tool_forms import (
    GENERATE_ROLES,
    REFINE_ROLES,
    ToolGenerateInput,
    ToolLine,
    ToolRefineInput,
    ToolVersionOutput,
    format_difference,
    format_version,
    to_output,
)

AuthorizeToolMaker = Callable[[ToolContext], Awaitable[Principal]]
"""On whose behalf a call makes tools. Raises `ToolDeniedError` for callers who may not."""

MAKING_SECONDS = 600.0
"""Three rounds of tests, code and review take a slow model minutes."""


class GeneratedToolTool(StoredThingTool[In, Out]):
    """The base class. Only callers who administer may call these tools."""

    keywords: ClassVar[tuple[str, ...]] = ("tool", "tools", "generate", "studio")

    def __init__(self, tools: GeneratedTools, authorize: AuthorizeToolMaker) -> None:
        super().__init__()
        self._tools, self._authorize = tools, authorize

    async def check(self, args: In, context: ToolContext) -> None:
        """Raises `ToolDeniedError` for callers who may not make tools."""
        await self._authorize(context)


class ToolsListInput(Arguments):
    """Arguments of `tools_list`: none."""


class ToolsListOutput(DeferredModel):
    """The generated tools."""

    tools: list[ToolLine]


class ToolsListTool(StoredThingList, GeneratedToolTool[ToolsListInput, ToolsListOutput]):
    name = "tools_list"
    description = "List the generated tools: name, newest version, whether it is staged, applied or discarded."
    annotations = READ_ONLY

    async def run(self, args: ToolsListInput, context: ToolContext) -> ToolsListOutput:
        tools = await self._tools.list_tools(await self._authorize(context))
        return ToolsListOutput(tools=[omit_outside_text(line) for line in ToolLine.from_records(tools)])

    def format_text(self, output: ToolsListOutput) -> str:
        lines = [
            f"- {one.name} version {one.version} ({one.state}{', in use' if one.is_active else ''}): {one.description}"
            for one in output.tools
        ]
        return "\n".join(lines) or "There are no generated tools."


class ToolShowInput(Arguments):
    """Arguments of `tool_show`."""

    name: str = Field(max_length=200, description="the tool's name")
    version: int | None = Field(default=None, ge=1, description="unset: the newest one that is not discarded")


class _VersionText:
    """Shows a version to people and models: code, tests, permissions, review."""

    def format_text(self, output: ToolVersionOutput) -> str:
        return format_version(output)


class ToolShowTool(_VersionText, GeneratedToolTool[ToolShowInput, ToolVersionOutput]):
    name = "tool_show"
    description = "Show a generated tool: its code, tests, permissions, review and versions."
    annotations = READ_ONLY

    async def run(self, args: ToolShowInput, context: ToolContext) -> ToolVersionOutput:
        principal = await self._authorize(context)
        return await to_output(self._tools, principal, await self._tools.get(principal, args.name, args.version))


class _StagingTool(_VersionText, GeneratedToolTool[In, ToolVersionOutput]):
    """The base class of the tools that stage a version."""

    annotations = CHANGES
    timeout_s = MAKING_SECONDS
    hints = PlanHints(is_always_shown=True)

    async def reconcile(self, key: str, context: ToolContext) -> ToolResult | None:
        """The version that this run has staged before an interruption; None if there is none."""
        principal = await self._authorize(context)
        for one in await self._tools.list_tools(principal):
            if one.run_id == context.run_id:
                return self.make_result(await to_output(self._tools, principal, one))
        return None


class ToolGenerateTool(_StagingTool[ToolGenerateInput]):
    name = "tool_generate"
    hints = PlanHints(stages_draft=True, is_always_shown=True)
    argument_roles = GENERATE_ROLES
    description = (
        "Generate a tool from a description: tests, code, checks and review. It is staged, not in use: tool_apply puts "
        "it into use."
    )

    async def check(self, args: ToolGenerateInput, context: ToolContext) -> None:
        """Raises what is known before the model is asked: no model, a bad name, a name that is taken."""
        await self._tools.check_request(await self._authorize(context), args.description, args.name or None)
        _require_model(context)

    async def run(self, args: ToolGenerateInput, context: ToolContext) -> ToolVersionOutput:
        """Makes it in at most three rounds."""
        principal = await self._authorize(context)
        made = await self._tools.generate(
            principal,
            args.to_request(),
            model=_require_model(context),
            run_id=context.run_id,
            from_outside=context.tainted,
            report=context.report_progress,
        )
        return await to_output(self._tools, principal, made)


class ToolRefineTool(_StagingTool[ToolRefineInput]):
    name = "tool_refine"
    hints = PlanHints(stages_draft=True, is_always_shown=True)
    argument_roles = REFINE_ROLES
    description = "Make a changed version of a generated tool. It is staged; the version in use stays until tool_apply."

    async def check(self, args: ToolRefineInput, context: ToolContext) -> None:
        """Raises what is known before the model is asked: no model, no such tool."""
        await self._tools.get(await self._authorize(context), args.name)
        _require_model(context)

    async def run(self, args: ToolRefineInput, context: ToolContext) -> ToolVersionOutput:
        """Makes it in at most three rounds."""
        principal = await self._authorize(context)
        made = await self._tools.refine(
            principal,
            args.name,
            args.to_request(),
            model=_require_model(context),
            run_id=context.run_id,
            from_outside=context.tainted,
            report=context.report_progress,
        )
        return await to_output(self._tools, principal, made)


class ToolDecisionInput(Arguments):
    """Which version is decided about."""

    name: str = Field(max_length=200, description="the tool's name")
    version: int | None = Field(default=None, ge=1, description="unset: the staged one")


class ToolDecisionTool(_VersionText, GeneratedToolTool[In, ToolVersionOutput]):
    """The base class of the tools that a person must allow, in every room: the question shows what the version is."""

    requires_approval = True

    def __init__(self, tools: GeneratedTools, authorize: AuthorizeToolMaker) -> None:
        super().__init__(tools, authorize)
        self.reviewed = ReviewedVersions[ToolVersion]()

    async def explain(self, args: JsonObject, context: ToolContext) -> str:
        """The code, its difference from the version in use, the tests and the permissions."""
        principal = await self._authorize(context)
        self.reviewed.note(context, None)
        try:
            version = await self.find_version(self.Input.model_validate(args), principal)
            self.reviewed.note(context, version)
            active = await self._tools.get_active(principal, version.name)
            output = await to_output(self._tools, principal, version)
        except AgentError as error:  # it was changed since the question
            return error.message
        return format_version(output) + format_difference(active, version)

    async def check(self, args: In, context: ToolContext) -> None:
        await self.find_version(args, await self._authorize(context))

    @abstractmethod
    async def find_version(self, args: In, principal: Principal) -> ToolVersion:
        """The version that the call is about. Raises what the call would raise."""


class ToolApplyInput(ToolDecisionInput):
    """Arguments of `tool_apply`."""

    sha256: str = Field(default="", max_length=100, description="what was reviewed; refused if the version has another")


class ToolApplyTool(ToolDecisionTool[ToolApplyInput]):
    name = "tool_apply"
    description = "Put a staged version of a generated tool into use. A person is shown its code first."
    annotations = CHANGES
    argument_roles = declare_roles(name="id", version="id", sha256="id")

    async def run(self, args: ToolApplyInput, context: ToolContext) -> ToolVersionOutput:
        """Applies it: from now on it is a tool like any other."""
        principal = await self._authorize(context)
        reviewed = self.reviewed.take(context)
        version, sha256 = (args.version, args.sha256) if reviewed is None else (reviewed.version, reviewed.sha256)
        applied = await self._tools.apply(principal, args.name, version=version, sha256=sha256 or None)
        return await to_output(self._tools, principal, applied)

    async def find_version(self, args: ToolApplyInput, principal: Principal) -> ToolVersion:
        """The staged version."""
        return await self._tools.get_staged(principal, args.name, args.version, sha256=args.sha256 or None)


class ToolRestoreInput(Arguments):
    """Arguments of `tool_restore`."""

    name: str = Field(max_length=200, description="the tool's name")
    version: int = Field(ge=1, description="a version that was in use before")


class ToolRestoreTool(ToolDecisionTool[ToolRestoreInput]):
    name = "tool_restore"
    description = "Put an earlier version of a generated tool into use again."
    annotations = CHANGES
    argument_roles = declare_roles(name="id", version="id")

    async def run(self, args: ToolRestoreInput, context: ToolContext) -> ToolVersionOutput:
        principal = await self._authorize(context)
        reviewed = self.reviewed.take(context)
        sha256 = None if reviewed is None else reviewed.sha256
        restored = await self._tools.restore(principal, args.name, args.version, sha256=sha256)
        return await to_output(self._tools, principal, restored)

    async def find_version(self, args: ToolRestoreInput, principal: Principal) -> ToolVersion:
        """The version that was in use before."""
        return await self._tools.get_restorable(principal, args.name, args.version)


class ToolDiscardTool(_VersionText, GeneratedToolTool[ToolDecisionInput, ToolVersionOutput]):
    name = "tool_discard"
    description = "Discard a staged version of a generated tool."
    annotations = DESTROYS
    argument_roles = declare_roles(name="id", version="id")

    async def check(self, args: ToolDecisionInput, context: ToolContext) -> None:
        """Raises `ConflictError` if the version is not staged."""
        await self._tools.get_staged(await self._authorize(context), args.name, args.version)

    async def run(self, args: ToolDecisionInput, context: ToolContext) -> ToolVersionOutput:
        principal = await self._authorize(context)
        gone = await self._tools.discard(principal, args.name, version=args.version)
        return await to_output(self._tools, principal, gone)


class ToolRemoveInput(Arguments):
    """Arguments of `tool_remove`."""

    name: str = Field(max_length=200, description="the tool's name")


class ToolRemoveOutput(DeferredModel):
    """The removed tool and the number of its versions."""

    removed: str
    version_count: int


class ToolRemoveTool(GeneratedToolTool[ToolRemoveInput, ToolRemoveOutput]):
    name = "tool_remove"
    description = "Remove a generated tool with all of its versions. Refused while rooms name it."
    annotations = DESTROYS
    argument_roles = declare_roles(name="id")

    async def check(self, args: ToolRemoveInput, context: ToolContext) -> None:
        """Raises `ConflictError` while rooms name the tool."""
        await self._tools.check_removal(await self._authorize(context), args.name)

    async def run(self, args: ToolRemoveInput, context: ToolContext) -> ToolRemoveOutput:
        count = await self._tools.remove(await self._authorize(context), args.name)
        return ToolRemoveOutput(removed=args.name, version_count=count)

    def format_text(self, output: ToolRemoveOutput) -> str:
        return f"Removed the tool {output.removed} with {output.version_count} versions."


def make_generated_tool_tools(tools: GeneratedTools, authorize: AuthorizeToolMaker) -> tuple[Tool, ...]:
    """The tools over the generated tools of this gateway."""
    return (
        ToolsListTool(tools, authorize),
        ToolShowTool(tools, authorize),
        ToolGenerateTool(tools, authorize),
        ToolRefineTool(tools, authorize),
        ToolApplyTool(tools, authorize),
        ToolDiscardTool(tools, authorize),
        ToolRestoreTool(tools, authorize),
        ToolRemoveTool(tools, authorize),
    )


def _require_model(context: ToolContext) -> ToolModel:
    if context.model is None:
        raise ToolInputError("a tool is generated by a model, and none is configured or allowed here")
    return context.model
