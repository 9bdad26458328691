"""Makespan of eight parallel supervised steps, against the critical path of the same plan."""

import asyncio
import tempfile
from pathlib import Path
from time import perf_counter

from pydantic import JsonValue

from tests.bench.report import table
from tests.support.engine import engine_bench
from tests.support.script import plans, says, script
from tests.support.tools import FunctionTool

STEP_S = 0.2
RUNS = 5


async def main() -> None:
    """Print the table."""

    async def work(_: object) -> JsonValue:
        await asyncio.sleep(STEP_S)
        return "a result"

    tools = [FunctionTool(f"tool_{number}", work) for number in range(8)]
    model = script(
        plans(*({"tool": tool.spec.name} for tool in tools), {"tool": "completion"}), says("done", to="completion")
    )
    best = float("inf")
    with tempfile.TemporaryDirectory() as folder:
        async with engine_bench(Path(folder), model, tools=tools) as bench:
            for _ in range(RUNS):
                started = perf_counter()
                await bench.run("search with all eight tools")
                best = min(best, perf_counter() - started)
    table(
        "Eight parallel supervised steps of 200 ms, then the answer",
        [
            ("critical path", STEP_S * 1000, "ms", None),
            ("makespan, best of five", best * 1000, "ms", STEP_S * 1100),
        ],
    )
