"""`GeneratedTool`: an applied version as a tool like any other."""

import json
from collections.abc import Iterable
from dataclasses import replace
from functools import partial

from agent.core.errors import ToolUnknownError
from agent.core.models import JsonObject
from agent.tools import ToolAnnotations, ToolContext, ToolResult, ToolSpec, build_flat_schema
from gateway.features.studio.engine.generated_tools.host_functions import HostFunctions
from gateway.features.studio.engine.generated_tools.models import ToolVersion
from gateway.features.studio.engine.generated_tools.tool_runner import ToolRunner
from gateway.features.studio.engine.generated_tools.validation import CheckedTool, ToolValidationPipeline

GENERATED_ORIGIN = "generated"
_START_SECONDS = 20.0
"""Beside its computing time: the sandbox's start, and waiting for a free place."""
_HOST_SECONDS = 60.0
"""Beside that: what it asks the gateway for."""


class GeneratedTool:
    """Implements `Tool`. Its code runs in the sandbox; its owner alone may call it."""

    def __init__(
        self, version: ToolVersion, called: Iterable[ToolSpec], runner: ToolRunner, functions: HostFunctions
    ) -> None:
        """Prepares a version. `called` are the tools that its manifest names. Raises `ValidationError` if this release
        refuses the code.
        """
        self.version = version
        self._tool = ToolValidationPipeline().check(version.name, version.code, version.manifest)
        self._tool.require_valid()
        self._runner = runner
        self._functions = functions
        self._spec = _build_spec(version, self._tool, tuple(called))

    @property
    def spec(self) -> ToolSpec:
        """The description of this tool."""
        return self._spec

    async def call(self, args: JsonObject, context: ToolContext) -> ToolResult:
        """Calls the tool in the sandbox."""
        if not self._spec.is_visible_to(context.owner):
            raise ToolUnknownError(f"there is no tool named {self._spec.name!r}", agent_id=self._spec.name)
        version = self.version
        calls = _NumberedCalls(context)
        answer = partial(self._functions.call, version.manifest, calls.context)
        value = await self._runner.call(self._tool, version.tier, version.manifest, args, answer)
        return ToolResult(value, json.dumps(value, ensure_ascii=False))

    async def reconcile(self, key: str, context: ToolContext) -> ToolResult | None:
        """Always None: what it had done is unknown."""
        return None


class _NumberedCalls:
    """Gives each tool call within one call an idempotency key of its own."""

    def __init__(self, context: ToolContext) -> None:
        self._made = 0
        self._call = context.call_tool
        self.context = context if self._call is None else replace(context, call_tool=self._call_next)

    async def _call_next(self, name: str, args: JsonObject, suffix: str = "") -> ToolResult:
        assert self._call is not None
        self._made += 1
        return await self._call(name, args, f"{suffix}/{self._made}")


def _build_spec(version: ToolVersion, tool: CheckedTool, called: tuple[ToolSpec, ...]) -> ToolSpec:
    """The spec. Effect class, taint and approval are those of the worst tool that it may call."""
    manifest = version.manifest
    uses_host = bool(manifest.hosts or manifest.folders or manifest.tools)
    effects = {spec.effect for spec in called}
    return ToolSpec(
        name=version.name,
        description=tool.description,
        input_schema=tool.input_schema,
        output=build_flat_schema(tool.Output),  # at once: what a model wrote may have no schema
        annotations=ToolAnnotations(
            read_only=effects <= {"read"},
            destructive=any(spec.annotations.destructive for spec in called if spec.effect != "read"),
            idempotent="effect" not in effects,
            open_world=bool(manifest.hosts) or any(spec.annotations.open_world for spec in called),
        ),
        tainted=bool(manifest.hosts or manifest.folders) or any(spec.tainted for spec in called),
        timeout_s=manifest.seconds + _START_SECONDS + (_HOST_SECONDS if uses_host else 0.0),
        origin=GENERATED_ORIGIN,
        is_open_world=bool(manifest.hosts),
        is_opt_in=True,
        requires_approval=any(spec.requires_approval for spec in called),
        owner=version.owner,
        meta={"version": version.version, "sha256": version.sha256},
    )
