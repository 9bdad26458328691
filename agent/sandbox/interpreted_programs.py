"""`InterpretedPrograms`: programs of `run_python` where the machine cannot lock a process, in the Rust interpreter.

They get no files and few modules, and leave none: of 14 everyday programs of our tests the interpreter runs 6, a locked
process all. So the process is preferred where there is one.
"""

import ast
import asyncio
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

from agent.core.models import JsonObject
from agent.sandbox.interpreter import InterpreterPool
from agent.sandbox.limits import ProgramResult, SandboxLimits
from agent.sandbox.program import to_json

MAX_MEMORY_BYTES = 64 * 2**20
"""The result of a program comes into this process as it is, before its size is known."""
MODULES = (
    "base64, binascii, bisect, collections, copy, dataclasses, datetime, decimal, functools, hashlib, itertools, json, "
    "math, random, re, time, typing, unicodedata"
)
"""The modules of the interpreter that are of use in a program without files."""


class InterpretedPrograms:
    """Has the methods of `agent.sandbox.client.Sandbox` that `run_python` needs."""

    has_files = False

    def __init__(self, limits: SandboxLimits, *, parallel: int) -> None:
        self.limits = replace(limits, memory_bytes=min(limits.memory_bytes, MAX_MEMORY_BYTES))
        self._pool = InterpreterPool(parallel=parallel)

    async def run(self, code: str, inputs: JsonObject, files: Mapping[str, int]) -> ProgramResult:
        """Runs a program without files. Raises `SandboxError`. Errors of the program are in the result."""
        if files:
            raise ValueError("programs in the interpreter get no files")
        done = await self._pool.run(return_variable(code), inputs, self.limits)
        return done if done.error is not None else await asyncio.to_thread(self._convert, done)

    async def aclose(self) -> None:
        """Ends the workers."""
        await self._pool.aclose()

    def _convert(self, done: ProgramResult) -> ProgramResult:
        """The result with a value of JSON types within the limits, as a locked process returns it."""
        try:
            value = to_json(done.value)
            size = len(json.dumps(value, allow_nan=False))
        except (ValueError, RecursionError) as error:
            return replace(done, value=None, error=f"{type(error).__name__}: {error}", problem="program")
        if size > self.limits.result_bytes:
            message = f"the result has {size:,} characters, the limit is {self.limits.result_bytes:,}; return less"
            return replace(done, value=None, error=message, problem="output")
        return replace(done, value=value)


def return_variable(code: str) -> str:
    """A program whose value is that of its last expression, else of the variable `result` if it sets one."""
    with suppress(SyntaxError, ValueError, RecursionError, MemoryError):  # the interpreter tells what is wrong
        body = ast.parse(code).body
        names = {node.id for part in body for node in ast.walk(part) if isinstance(node, ast.Name)}
        if body and not isinstance(body[-1], ast.Expr) and "result" in names:
            return f"{code}\nresult"
    return code
