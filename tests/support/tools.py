"""Tools for tests: what they do is told by their arguments or counted in a file that outlives a process."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from pydantic import JsonValue

from agent.core.models import LOCAL_OWNER, JsonObject
from agent.tools import READ_ONLY, PlanHints, ToolAnnotations, ToolContext, ToolResult, ToolSpec

Work = Callable[[JsonObject], Awaitable[JsonValue]]

EFFECT = ToolAnnotations(read_only=False, idempotent=False)
NO_HINTS = PlanHints()
IDEMPOTENT = ToolAnnotations(read_only=False, idempotent=True)


class FunctionTool:
    """A tool around a function; takes any arguments of its schema and says what it returned."""

    def __init__(
        self,
        name: str,
        work: Work,
        *,
        annotations: ToolAnnotations = READ_ONLY,
        tainted: bool = False,
        timeout_s: float | None = None,
        properties: dict[str, Any] | None = None,
        required: Sequence[str] = (),
        output_schema: JsonObject | None = None,
        requires_approval: bool = False,
        origin: str = "builtin",
        hints: PlanHints = NO_HINTS,
        read_claim: str = "",
        owner: str = LOCAL_OWNER,
    ) -> None:
        self.calls: list[JsonObject] = []
        self.keys: list[str] = []
        self._work = work
        self._spec = ToolSpec(
            name=name,
            description=f"The test tool {name}.",
            input_schema={
                "type": "object",
                "properties": properties or {"x": {"type": "string"}},
                **({"required": [*required]} if required else {}),
            },
            output=output_schema,
            annotations=annotations,
            tainted=tainted,
            timeout_s=timeout_s,
            requires_approval=requires_approval,
            origin=origin,
            hints=hints,
            read_claim=read_claim,
            owner=owner,
        )

    @property
    def spec(self) -> ToolSpec:
        """What is known of it."""
        return self._spec

    async def call(self, args: JsonObject, context: ToolContext) -> ToolResult:
        """Do it."""
        self.calls.append(args)
        self.keys.append(context.idempotency_key)
        value = await self._work(args)
        return ToolResult(value, value if isinstance(value, str) else str(value))

    async def reconcile(self, key: str, context: ToolContext) -> ToolResult | None:
        """Nobody knows."""
        return None


def returning(name: str, *values: JsonValue | Exception | Mapping[str, JsonValue], **options: Any) -> FunctionTool:
    """A tool that returns the values one after the other, the last one for ever; exceptions among them are raised."""
    left = list(values)

    async def work(_: JsonObject) -> JsonValue:
        value = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(value, Exception):
            raise value
        return dict(value) if isinstance(value, Mapping) else value

    return FunctionTool(name, work, **options)


class Latch:
    """Tools that wait for one another: `arrive` blocks until `expected` have arrived."""

    def __init__(self, expected: int) -> None:
        self._expected = expected
        self._arrived = 0
        self._all = asyncio.Event()

    async def arrive(self, _: JsonObject) -> JsonValue:
        """Wait for the others; time out when they never come."""
        self._arrived += 1
        if self._arrived >= self._expected:
            self._all.set()
        async with asyncio.timeout(10):
            await self._all.wait()
        return "all are here"
