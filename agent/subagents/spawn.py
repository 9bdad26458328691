"""`spawn_<sub-agent>`: the tools that start sub-agents."""

import json
from collections.abc import Awaitable, Callable, Iterable

from pydantic import BaseModel

from agent.core.errors import SubAgentFailedError, ToolError
from agent.core.models import JsonObject
from agent.core.subagent_result import SubAgentResult
from agent.subagents.registry import SubAgentClass
from agent.tools import READ_ONLY_WEB, ToolContext, ToolResult, ToolSpec, build_flat_schema

GRACE_S = 30.0
"""Seconds that a sub-agent may exceed its limit to build its partial result."""

KeepResult = Callable[[JsonObject, SubAgentResult, ToolContext], Awaitable[str | None]]
"""Stores a result with its task; conversations do. Returns a note for the caller: why it was not stored, or that it
resolves nothing."""

PREFIX = "spawn_"


class SpawnTool:
    """Starts one kind of sub-agent and returns its result, partial if it was cut short; a failure if it `IS_ANSWER`.

    It is read-only, so an interrupted call continues with the sub-agent it started.
    """

    def __init__(self, kind: SubAgentClass, keep: KeepResult | None = None) -> None:
        self._kind = kind
        self._keep = keep
        task: type[BaseModel] = kind.Task
        self._spec = ToolSpec(
            name=f"{PREFIX}{kind.AGENT_ID}",
            description=kind.DESCRIPTION,
            input_schema=build_flat_schema(task),
            output=SubAgentResult,
            annotations=READ_ONLY_WEB,
            tainted=False,
            timeout_s=kind.TIMEOUT_SECONDS + GRACE_S,
            keywords=kind.KEYWORDS,
            is_opt_in=True,
            uses_subagents=True,
            conversation="starts" if kind.KEEPS_RESULTS else "none",
            always_raises_errors=kind.IS_ANSWER,
        )

    @property
    def spec(self) -> ToolSpec:
        """The tool's description."""
        return self._spec

    async def call(self, args: JsonObject, context: ToolContext) -> ToolResult:
        """Starts the sub-agent and waits for it. Raises `ToolError` outside of a run, and what `Spawner.spawn` raises
        except its failure."""
        if context.subagents is None:
            raise ToolError(f"{self._spec.name} works within a run only", agent_id=self._spec.name)
        try:
            result = await context.subagents.spawn(self._kind.AGENT_ID, args)
        except SubAgentFailedError as error:
            if self._kind.IS_ANSWER:
                raise
            # What it had read by then is not known here: it counts as from outside.
            result = SubAgentResult(success=False, data=error.partial_result, summary=error.message, tainted=True)
        note = await self._keep(args, result, context) if self._keep is not None else None
        if self._kind.IS_ANSWER:
            if not result.success:
                raise SubAgentFailedError(self._kind.AGENT_ID, result.summary, result.data)
            # Without its list of uncertainties: an empty list would look like a search without hits.
            value = result.model_dump(mode="json", exclude={"uncertainties"})
            return ToolResult(value, result.summary, tainted=result.tainted)
        text = f"{note}\n{format_result(result)}" if note else format_result(result)
        return ToolResult(result.model_dump(mode="json"), text, tainted=result.tainted)

    async def reconcile(self, key: str, context: ToolContext) -> ToolResult | None:
        """Never called: a read-only call is repeated."""
        return None


def is_spawn_tool(name: str) -> bool:
    """Whether the tool starts a sub-agent. `spawn__x` is a tool of a foreign server called `spawn`."""
    return name.startswith(PREFIX) and "__" not in name


def make_spawn_tools(
    kinds: Iterable[SubAgentClass], keeper: Callable[[str], KeepResult] | None = None
) -> list[SpawnTool]:
    """A tool for each sub-agent; `keeper` returns the callback that stores a sub-agent's results."""
    return [SpawnTool(kind, keeper(kind.AGENT_ID) if keeper is not None else None) for kind in kinds]


def format_result(result: SubAgentResult) -> str:
    """Formats a result for the caller: summary, uncertainties, data."""
    lines = [result.summary if result.success else f"Not finished: {result.summary} What it found by then:"]
    lines += [f"- {one.severity}: {one.message}" for one in result.uncertainties]
    return "\n".join([*lines, json.dumps(result.data, ensure_ascii=False)])
