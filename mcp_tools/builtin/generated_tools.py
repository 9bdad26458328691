"""`tools_list`, `tool_show`, `tool_generate`, `tool_refine`, `tool_apply`, `tool_discard`, `tool_restore` and
`tool_remove`: generated tools for plans and MCP clients.

`tool_generate` and `tool_refine` only stage a version; nothing uses it before a person allows `tool_apply`.
"""

import difflib
import re
from collections.abc import Awaitable, Callable
from typing import ClassVar

from pydantic import BaseModel, ConfigDict, Field

from agent.core.errors import AgentError, ConflictError, NotFoundError, ScopeError, ToolDeniedError, ToolInputError
from agent.core.models import JsonObject
from agent.core.principal import Principal
from agent.studio.errors import ValidationError
from agent.studio.generated_tools.errors import ReflectionFailed, SandboxMissingError
from agent.studio.generated_tools.models import Manifest, ToolVersion
from agent.studio.generated_tools.service import GeneratedTools
from agent.tools import READ_ONLY, Tool, ToolAnnotations, ToolContext, ToolModel, ToolResult, TypedTool
from agent.tools.registry import In, Out

AuthorizeToolMaker = Callable[[ToolContext], Awaitable[Principal]]
"""Returns on whose behalf a call makes tools. Raises `ToolDeniedError` for callers who may not."""

_EFFECT = ToolAnnotations(read_only=False, destructive=False, idempotent=False, open_world=False)
_DESTRUCTIVE = ToolAnnotations(read_only=False, destructive=True, idempotent=False, open_world=False)
MAKING_SECONDS = 600.0
"""Three rounds of tests, code and review take a slow model minutes."""


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid")


class GeneratedToolTool(TypedTool[In, Out]):
    """The base class: a refusal is an error that the same call cannot avoid, with the stage that refused it."""

    keywords: ClassVar[tuple[str, ...]] = ("tool", "tools", "generate", "studio")
    is_opt_in = True

    def __init__(self, tools: GeneratedTools, authorize: AuthorizeToolMaker) -> None:
        super().__init__()
        self._tools, self._authorize = tools, authorize

    async def preflight(self, args: JsonObject, context: ToolContext) -> None:
        """Raises `ToolDeniedError` for callers who may not make tools: nobody is asked about their calls."""
        await self._authorize(context)

    async def call(self, args: JsonObject, context: ToolContext) -> ToolResult:
        """Calls the tool. Raises `ToolInputError` if the change is refused."""
        try:
            return await super().call(args, context)
        except (ValidationError, ReflectionFailed, SandboxMissingError, ConflictError, NotFoundError) as error:
            raise to_input_error(error) from error
        except ScopeError as error:
            raise ToolDeniedError(error.message, agent_id=self.name) from error


class ToolsListInput(_Arguments):
    """Arguments of `tools_list`: none."""


class ToolLine(BaseModel):
    """A generated tool with its newest version."""

    name: str
    version: int
    state: str
    is_active: bool
    description: str


class ToolsListOutput(BaseModel):
    """The generated tools."""

    tools: list[ToolLine]


class ToolsListTool(GeneratedToolTool[ToolsListInput, ToolsListOutput]):
    """Lists the generated tools."""

    name = "tools_list"
    description = "List the generated tools: name, newest version, whether it is staged, applied or discarded."
    annotations = READ_ONLY
    Input = ToolsListInput
    Output = ToolsListOutput

    async def run(self, args: ToolsListInput, context: ToolContext) -> ToolsListOutput:
        """Lists what the caller has."""
        found = await self._tools.list_tools(await self._authorize(context))
        return ToolsListOutput(tools=[_to_line(one) for one in found])

    def format_text(self, output: ToolsListOutput) -> str:
        """Returns one line for each tool."""
        lines = [
            f"- {one.name} version {one.version} ({one.state}{', in use' if one.is_active else ''}): {one.description}"
            for one in output.tools
        ]
        return "\n".join(lines) or "There are no generated tools."


class ToolShowInput(_Arguments):
    """Arguments of `tool_show`."""

    name: str = Field(max_length=200, description="the tool's name")
    version: int | None = Field(default=None, ge=1, description="unset: the newest one that is not discarded")


class ToolVersionOutput(ToolLine):
    """A version with everything that a person reviews. `versions` are those there are, the newest first."""

    sha256: str
    code: str
    tests: list[str]
    permissions: JsonObject
    review: JsonObject
    warnings: list[str]
    wider: list[str] = Field(description="what it may do and the version in use may not")
    versions: list[str]


class _VersionText:
    """Shows a version to people and models: code, tests, permissions, review."""

    def format_text(self, output: ToolVersionOutput) -> str:
        """Returns Markdown."""
        return format_version(output)


class ToolShowTool(_VersionText, GeneratedToolTool[ToolShowInput, ToolVersionOutput]):
    """Shows one version of a generated tool."""

    name = "tool_show"
    description = "Show a generated tool: its code, tests, permissions, review and versions."
    annotations = READ_ONLY
    Input = ToolShowInput
    Output = ToolVersionOutput

    async def run(self, args: ToolShowInput, context: ToolContext) -> ToolVersionOutput:
        """Shows the version."""
        principal = await self._authorize(context)
        return await _to_output(self._tools, principal, await self._tools.get(principal, args.name, args.version))


class _StagingTool(_VersionText, GeneratedToolTool[In, ToolVersionOutput]):
    """The base class of the tools that stage a version."""

    annotations = _EFFECT
    timeout_s = MAKING_SECONDS

    async def reconcile(self, key: str, context: ToolContext) -> ToolResult | None:
        """Returns the version that this run has staged before an interruption; None if there is none."""
        principal = await self._authorize(context)
        for one in await self._tools.list_tools(principal):
            if one.run_id == context.run_id:
                return self.make_result(await _to_output(self._tools, principal, one))
        return None


class ToolGenerateInput(_Arguments):
    """Arguments of `tool_generate`."""

    description: str = Field(min_length=1, max_length=8_000, description="completely what the tool takes and returns")
    name: str = Field(default="", max_length=300, description="its name; empty: chosen by the model")
    permissions: Manifest | None = Field(default=None, description="the most it may ask for; unset: what it needs")


class ToolGenerateTool(_StagingTool[ToolGenerateInput]):
    """Generates a tool and stages it."""

    name = "tool_generate"
    description = (
        "Generate a tool from a description: tests, code, checks and review. It is staged, not in use: tool_apply puts "
        "it into use."
    )
    Input = ToolGenerateInput
    Output = ToolVersionOutput

    async def run(self, args: ToolGenerateInput, context: ToolContext) -> ToolVersionOutput:
        """Makes it in at most three rounds."""
        principal = await self._authorize(context)
        made = await self._tools.generate(
            principal,
            args.description,
            model=_require_model(context),
            name=args.name or None,
            permissions=args.permissions,
            run_id=context.run_id,
            report=context.report_progress,
        )
        return await _to_output(self._tools, principal, made)


class ToolRefineInput(_Arguments):
    """Arguments of `tool_refine`."""

    name: str = Field(max_length=200, description="the tool's name")
    change: str = Field(min_length=1, max_length=8_000, description="what should change")
    permissions: Manifest | None = Field(default=None, description="the most it may ask for; unset: what it needs")


class ToolRefineTool(_StagingTool[ToolRefineInput]):
    """Makes a changed version of a generated tool and stages it."""

    name = "tool_refine"
    description = "Make a changed version of a generated tool. It is staged; the version in use stays until tool_apply."
    Input = ToolRefineInput
    Output = ToolVersionOutput

    async def run(self, args: ToolRefineInput, context: ToolContext) -> ToolVersionOutput:
        """Makes it in at most three rounds."""
        principal = await self._authorize(context)
        made = await self._tools.refine(
            principal,
            args.name,
            args.change,
            model=_require_model(context),
            permissions=args.permissions,
            run_id=context.run_id,
            report=context.report_progress,
        )
        return await _to_output(self._tools, principal, made)


class ToolDecisionInput(_Arguments):
    """Which version is decided about."""

    name: str = Field(max_length=200, description="the tool's name")
    version: int | None = Field(default=None, ge=1, description="unset: the staged one")


class ToolDecisionTool(_VersionText, GeneratedToolTool[In, ToolVersionOutput]):
    """The base class of the tools that a person must allow, in every room: the question shows what the version is."""

    requires_approval = True

    async def explain(self, args: JsonObject, context: ToolContext) -> str:
        """Returns the code, its difference from the version in use, the tests and the permissions."""
        principal = await self._authorize(context)
        version = args.get("version")
        try:
            found = await self._find(principal, str(args.get("name")), version if isinstance(version, int) else None)
            active = await self._tools.get_active(principal, found.name)
            shown = await _to_output(self._tools, principal, found)
        except AgentError as error:
            return error.message
        return format_version(shown) + _format_difference(active, found)

    async def _find(self, principal: Principal, name: str, version: int | None) -> ToolVersion:
        """Returns the version that the call is about."""
        return await self._tools.get(principal, name, version)


class ToolApplyInput(ToolDecisionInput):
    """Arguments of `tool_apply`."""

    sha256: str = Field(default="", max_length=100, description="what was reviewed; refused if the version has another")


class ToolApplyTool(ToolDecisionTool[ToolApplyInput]):
    """Puts a staged version into use."""

    name = "tool_apply"
    description = "Put a staged version of a generated tool into use. A person is shown its code first."
    annotations = _EFFECT
    Input = ToolApplyInput
    Output = ToolVersionOutput

    async def run(self, args: ToolApplyInput, context: ToolContext) -> ToolVersionOutput:
        """Applies it: from now on it is a tool like any other."""
        principal = await self._authorize(context)
        applied = await self._tools.apply(principal, args.name, version=args.version, sha256=args.sha256 or None)
        return await _to_output(self._tools, principal, applied)

    async def _find(self, principal: Principal, name: str, version: int | None) -> ToolVersion:
        return await self._tools.get_staged(principal, name, version)


class ToolRestoreInput(_Arguments):
    """Arguments of `tool_restore`."""

    name: str = Field(max_length=200, description="the tool's name")
    version: int = Field(ge=1, description="a version that was in use before")


class ToolRestoreTool(ToolDecisionTool[ToolRestoreInput]):
    """Puts an earlier version into use again."""

    name = "tool_restore"
    description = "Put an earlier version of a generated tool into use again."
    annotations = _EFFECT
    Input = ToolRestoreInput
    Output = ToolVersionOutput

    async def run(self, args: ToolRestoreInput, context: ToolContext) -> ToolVersionOutput:
        """Restores it."""
        principal = await self._authorize(context)
        return await _to_output(self._tools, principal, await self._tools.restore(principal, args.name, args.version))


class ToolDiscardTool(_VersionText, GeneratedToolTool[ToolDecisionInput, ToolVersionOutput]):
    """Discards a staged version."""

    name = "tool_discard"
    description = "Discard a staged version of a generated tool."
    annotations = _DESTRUCTIVE
    Input = ToolDecisionInput
    Output = ToolVersionOutput

    async def run(self, args: ToolDecisionInput, context: ToolContext) -> ToolVersionOutput:
        """Discards it."""
        principal = await self._authorize(context)
        gone = await self._tools.discard(principal, args.name, version=args.version)
        return await _to_output(self._tools, principal, gone)


class ToolRemoveInput(_Arguments):
    """Arguments of `tool_remove`."""

    name: str = Field(max_length=200, description="the tool's name")


class ToolRemoveOutput(BaseModel):
    """The removed tool and the number of its versions."""

    removed: str
    version_count: int


class ToolRemoveTool(GeneratedToolTool[ToolRemoveInput, ToolRemoveOutput]):
    """Removes a generated tool."""

    name = "tool_remove"
    description = "Remove a generated tool with all of its versions. Refused while rooms name it."
    annotations = _DESTRUCTIVE
    Input = ToolRemoveInput
    Output = ToolRemoveOutput

    async def run(self, args: ToolRemoveInput, context: ToolContext) -> ToolRemoveOutput:
        """Removes it."""
        count = await self._tools.remove(await self._authorize(context), args.name)
        return ToolRemoveOutput(removed=args.name, version_count=count)

    def format_text(self, output: ToolRemoveOutput) -> str:
        """Returns one sentence."""
        return f"Removed the tool {output.removed} with {output.version_count} versions."


def make_generated_tool_tools(tools: GeneratedTools, authorize: AuthorizeToolMaker) -> tuple[Tool, ...]:
    """Returns the tools over the generated tools of this gateway."""
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


def to_input_error(error: AgentError) -> ToolInputError:
    """Returns a refusal as an error of the call, with its stage."""
    stage = error.details.get("stage")
    return ToolInputError(f"{error.message}{f' (stage: {stage})' if stage else ''}")


def format_version(shown: ToolVersionOutput) -> str:
    """Returns a version as Markdown: what it is, its permissions, code, tests and review."""
    used = ", in use" if shown.is_active else ""
    lines = [f"Tool {shown.name}, version {shown.version} ({shown.state}{used}): {shown.description}"]
    if shown.state == "staged":
        lines.append("It is staged: it can be used once you apply it.")
    asked = Manifest.model_validate(shown.permissions).list_wider(Manifest())
    lines.append(f"Permissions: {'; '.join(asked) or 'none'}.")
    lines += [f"New permission: {wider}." for wider in shown.wider]
    tests = "\n".join(test.strip() for test in shown.tests)
    lines += ["", _fence(shown.code, "python"), "", "Tests, all passed in the sandbox:", "", _fence(tests, "python")]
    lines += [f"Warning: {warning}" for warning in shown.warnings]
    lines += ["", f"SHA-256 of code and permissions: {shown.sha256}. Versions: {', '.join(shown.versions)}."]
    return "\n".join(lines)


def _format_difference(active: ToolVersion | None, found: ToolVersion) -> str:
    if active is None or active.version == found.version:
        return ""
    old, new = f"version {active.version}", f"version {found.version}"
    lines = difflib.unified_diff(active.code.splitlines(), found.code.splitlines(), old, new, lineterm="")
    return "\n\nDifference from the version in use:\n\n" + _fence("\n".join(lines), "diff")


def _fence(text: str, language: str) -> str:
    """Returns a fenced block that the text cannot close: code is written by a model, and a person decides about it."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.strip()}\n{fence}"


def _require_model(context: ToolContext) -> ToolModel:
    if context.model is None:
        raise ToolInputError("a tool is generated by a model, and none is configured or allowed here")
    return context.model


def _to_line(version: ToolVersion) -> ToolLine:
    return ToolLine(
        name=version.name,
        version=version.version,
        state=version.state,
        is_active=version.is_active,
        description=version.description,
    )


async def _to_output(tools: GeneratedTools, principal: Principal, version: ToolVersion) -> ToolVersionOutput:
    versions = await tools.list_versions(principal, version.name)
    return ToolVersionOutput(
        **_to_line(version).model_dump(),
        sha256=version.sha256,
        code=version.code,
        tests=list(version.tests),
        permissions=version.manifest.model_dump(mode="json"),
        review=version.review.model_dump(mode="json"),
        warnings=list(version.warnings),
        wider=await tools.list_wider(principal, version),
        versions=[f"{one.version} ({one.state}{', in use' if one.is_active else ''})" for one in versions],
    )
