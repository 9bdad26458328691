"""Calls of the host that a program in the interpreter makes."""

import asyncio
from typing import Any

import pytest

from agent.sandbox.interpreter import InterpreterPool, find_missing_interpreter
from agent.sandbox.limits import SandboxLimits

pytestmark = pytest.mark.skipif(find_missing_interpreter() is not None, reason=str(find_missing_interpreter()))

CALLS_TWICE = """
try:
    stepgate_host('slow', [])
except RuntimeError:
    stepgate_host('again', [])
"""


async def test_a_call_of_the_host_ends_with_its_program() -> None:
    begun, ended = asyncio.Event(), asyncio.Event()
    names: list[str] = []

    async def answer(name: str, arguments: list[Any]) -> None:
        names.append(name)
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    pool = InterpreterPool(parallel=1)
    try:
        program = asyncio.ensure_future(pool.run(CALLS_TWICE, {}, SandboxLimits(seconds=5), answer))
        async with asyncio.timeout(20):
            await begun.wait()
            program.cancel()
            await ended.wait()
            # The only worker is free again: the program was told that nobody answers, also at its second call.
            assert (await pool.run("1 + 1", {}, SandboxLimits(seconds=5))).value == 2
    finally:
        await pool.aclose()
    assert program.cancelled()
    assert names == ["slow"]
