"""`spawn_<sub-agent>`: the tools that start sub-agents, one for each that is registered."""

import json
from collections.abc import Awaitable, Callable, Iterable

from pydantic import BaseModel

from agent.core.errors import SubAgentFailedError, ToolError
from agent.core.models import JsonObject
from agent.core.subagents import SubAgentResult
from agent.subagents.registry import SUBAGENTS, Kind
from agent.tools import READ_ONLY_WEB, ToolContext, ToolResult, ToolSpec, flat_schema

GRACE_S = 30.0
"""What a sub-agent may take longer than its own limit to put its partial result together."""

Keep = Callable[[JsonObject, SubAgentResult, ToolContext], Awaitable[str | None]]
"""Told of each result with the task it is of: a conversation keeps them. What it returns is told with the result: why
it was not kept, or that it settles nothing."""

SPAWN_TOOLS = frozenset(f"spawn_{kind.AGENT_ID}" for kind in SUBAGENTS)
"""Their names, in full: `spawn__x` may be the tool of anybody's server `spawn`."""


class SpawnTool:
    """A `Tool` that starts one kind of sub-agent and returns its result, the partial one where it did not get to its
    end. It reads only, so that an interrupted call goes on with the sub-agent it had begun."""

    def __init__(self, kind: Kind, keep: Keep | None = None) -> None:
        self._kind = kind
        self._keep = keep
        task: type[BaseModel] = kind.Task
        self._spec = ToolSpec(
            name=f"spawn_{kind.AGENT_ID}",
            description=kind.DESCRIPTION,
            input_schema=flat_schema(task),
            output_schema=flat_schema(SubAgentResult),
            annotations=READ_ONLY_WEB,
            tainted=False,
            timeout_s=kind.TIMEOUT_SECONDS + GRACE_S,
            keywords=kind.KEYWORDS,
            by_name=True,
            spawns=True,
        )

    @property
    def spec(self) -> ToolSpec:
        """What is known of this tool."""
        return self._spec

    async def call(self, args: JsonObject, context: ToolContext) -> ToolResult:
        """Start it, wait for it. `ToolError` outside of a run, and what `Spawner.spawn` raises but for its failure."""
        if context.subagents is None:
            raise ToolError(f"{self._spec.name} works within a run only", agent_id=self._spec.name)
        try:
            result = await context.subagents.spawn(self._kind.AGENT_ID, args)
        except SubAgentFailedError as error:
            # What it had read by then is not known here: it counts as from outside.
            result = SubAgentResult(success=False, data=error.partial_result, summary=error.message, tainted=True)
        note = await self._keep(args, result, context) if self._keep is not None else None
        text = f"{note}\n{shown(result)}" if note else shown(result)
        return ToolResult(result.model_dump(mode="json"), text, tainted=result.tainted)

    async def reconcile(self, key: str, context: ToolContext) -> ToolResult | None:
        """Never asked: a call that only reads is repeated."""
        return None


def spawn_tools(kinds: Iterable[Kind] = SUBAGENTS, keeper: Callable[[str], Keep] | None = None) -> list[SpawnTool]:
    """A tool for each sub-agent; `keeper` makes the one who keeps its results, of its id."""
    return [SpawnTool(kind, keeper(kind.AGENT_ID) if keeper is not None else None) for kind in kinds]


def shown(result: SubAgentResult) -> str:
    """A result as the one who asked reads it: what came of it, what is doubtful, then the data."""
    lines = [result.summary if result.success else f"Not finished: {result.summary} What it found by then:"]
    lines += [f"- {one.severity}: {one.message}" for one in result.uncertainties]
    return "\n".join([*lines, json.dumps(result.data, ensure_ascii=False)])
