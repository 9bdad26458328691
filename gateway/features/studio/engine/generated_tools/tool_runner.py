"""`ToolRunner`: runs generated tools and their tests in the sandbox, never in this process."""

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue, ValidationError

from agent.core.errors import AgentError, ToolError, ToolInputError, ToolOutputError, ToolTimeoutError
from agent.core.models import JsonObject
from agent.core.value_faults import describe_faults
from agent.sandbox.client import Sandbox
from agent.sandbox.interpreter import MAX_HOST_CALLS, InterpreterPool
from agent.sandbox.limits import ProgramResult, SandboxLimits
from gateway.features.studio.engine.generated_tools.errors import SandboxMissingError
from gateway.features.studio.engine.generated_tools.models import Manifest, SandboxTier
from gateway.features.studio.engine.generated_tools.program import build_call, build_test
from gateway.features.studio.engine.generated_tools.validation import CheckedTool

HostCall = Callable[[str, list[Any]], Awaitable[JsonValue]]
"""Carries out a call of a host function by its name and arguments. Raises `AgentError`s."""


@dataclass(frozen=True, slots=True)
class TestFailure:
    """A test that failed: its number from 1, its text, the reason, and what the tool returned before."""

    __test__ = False  # no test class of pytest

    number: int
    case: str
    reason: str
    outputs: Sequence[JsonValue] = ()

    def describe(self) -> str:
        """The failure as a model reads it."""
        got = f"\nThe tool returned: {json.dumps([*self.outputs])[:1_000]}" if self.outputs else ""
        return f"Test {self.number} failed: {self.reason}{got}\nTest {self.number} is:\n{self.case.strip()}"


class ToolRunner:
    """The sandboxes of generated tools; either may be missing."""

    def __init__(self, interpreter: InterpreterPool | None, process: Sandbox | None) -> None:
        self._interpreter = interpreter
        self._process = process

    @property
    def tiers(self) -> tuple[SandboxTier, ...]:
        """The tiers of this machine, in the order in which they are tried."""
        interpreter: tuple[SandboxTier, ...] = ("interpreter",) if self._interpreter is not None else ()
        return (*interpreter, "process") if self._process is not None else interpreter

    async def aclose(self) -> None:
        """Ends the sandboxes' processes."""
        if self._interpreter is not None:
            await self._interpreter.aclose()
        if self._process is not None:
            await self._process.aclose()

    async def call(
        self, tool: CheckedTool, tier: SandboxTier, manifest: Manifest, args: JsonObject, call_host: HostCall
    ) -> JsonObject:
        """Calls the tool and returns its result, checked against its output model.

        Raises `ToolInputError` for arguments that do not fit, `ToolTimeoutError`, `ToolOutputError`, `ToolError` with
        the tool's own error, and what `call_host` raises if the tool does not handle it.
        """
        try:
            data = tool.Input.model_validate(args).model_dump(mode="json")
        except ValidationError as error:
            raise ToolInputError(f"{tool.name}: {describe_problems(error)}", agent_id=tool.name) from error
        if tier == "interpreter":
            reply = await self._call_in_interpreter(tool, manifest, data, call_host)
        else:
            reply = await self._call_in_process(tool, manifest, data, call_host)
        try:
            return tool.Output.model_validate(reply.get("value")).model_dump(mode="json")
        except ValidationError as error:
            raise ToolOutputError(f"{tool.name} returned {describe_problems(error)}", agent_id=tool.name) from error

    async def run_tests(
        self, tool: CheckedTool, tier: SandboxTier, manifest: Manifest, cases: Sequence[str]
    ) -> list[TestFailure]:
        """Runs each test in a sandbox of its own and returns those that failed. Raises `ToolError` if it is broken."""
        failures = []
        for number, case in enumerate(cases, start=1):
            result = await self._run(tier, build_test(tool, case, tier), {"data": None}, manifest, None)
            failure = _judge_test(tool, number, case, result)
            if failure is not None:
                failures.append(failure)
        return failures

    async def _call_in_interpreter(
        self, tool: CheckedTool, manifest: Manifest, data: JsonObject, call_host: HostCall
    ) -> JsonObject:
        async def answer(name: str, arguments: list[Any]) -> JsonValue:
            try:
                return await call_host(name, arguments)
            except AgentError as error:
                raise RuntimeError(error.message) from error

        result = await self._run("interpreter", build_call(tool, "interpreter"), {"data": data}, manifest, answer)
        return _read_reply(tool, result)

    async def _call_in_process(
        self, tool: CheckedTool, manifest: Manifest, data: JsonObject, call_host: HostCall
    ) -> JsonObject:
        """Starts the program again with each answer that it needs. An answer is asked for once, so that a call of the
        host is never repeated.
        """
        program = build_call(tool, "process")
        answers: list[JsonValue] = []
        while True:
            result = await self._run("process", program, {"data": data, "answers": answers}, manifest, None)
            reply = _read_reply(tool, result)
            call = reply.get("pending")
            if call is None:
                return reply
            if len(answers) >= MAX_HOST_CALLS:
                raise ToolError(f"{tool.name} asks the gateway more than {MAX_HOST_CALLS} times", agent_id=tool.name)
            answers.append(await _answer(call, call_host))

    async def _run(
        self, tier: SandboxTier, program: str, inputs: JsonObject, manifest: Manifest, call_host: HostCall | None
    ) -> ProgramResult:
        limits = SandboxLimits(
            seconds=manifest.seconds, memory_bytes=manifest.memory_mb * 2**20, result_bytes=4 * 2**20, artifacts=0
        )
        if tier == "interpreter" and self._interpreter is not None:
            return await self._interpreter.run(program, inputs, limits, call_host)
        if tier == "process" and self._process is not None:
            return await self._process.run(program, inputs, {}, limits=limits)
        needed = "the interpreter (pydantic-monty)" if tier == "interpreter" else "the locked process (Linux)"
        raise SandboxMissingError(f"this tool runs in {needed}, which this machine does not have")


def describe_problems(error: ValidationError) -> str:
    """Describes what does not fit a model, at most three fields."""
    return "; ".join(describe_faults(error)[:3])[:1_000]


async def _answer(call: JsonValue, call_host: HostCall) -> JsonValue:
    """A call with its answer or its error, as the program reads it."""
    if not (isinstance(call, list) and len(call) == 2 and isinstance(call[0], str) and isinstance(call[1], list)):
        raise ToolOutputError("the tool asked the gateway for something that cannot be read")
    try:
        return [call, await call_host(call[0], call[1]), None]
    except AgentError as error:
        return [call, None, error.message]


def _read_reply(tool: CheckedTool, result: ProgramResult) -> JsonObject:
    if result.problem == "time":
        raise ToolTimeoutError(f"{tool.name}: {result.error}", agent_id=tool.name)
    if result.error is not None:
        raise ToolError(f"{tool.name} failed: {result.error[:1_000]}", agent_id=tool.name)
    reply = _parse(result.value)
    if reply is None:
        raise ToolOutputError(f"{tool.name} returned nothing that can be read", agent_id=tool.name)
    return reply


def _judge_test(tool: CheckedTool, number: int, case: str, result: ProgramResult) -> TestFailure | None:
    if result.error is not None:
        return TestFailure(number, case, result.error[:1_000])
    reply = _parse(result.value)
    if reply is None:
        return TestFailure(number, case, "it ended without a result")
    listed = reply.get("outputs")
    outputs = listed if isinstance(listed, list) else []
    if reply.get("failed") is not None:
        return TestFailure(number, case, str(reply["failed"])[:1_000], outputs)
    if not outputs:
        return TestFailure(number, case, f"it did not call {tool.name}")
    for output in outputs:
        try:
            tool.Output.model_validate(output)
        except ValidationError as error:
            return TestFailure(number, case, f"the result does not fit its model: {describe_problems(error)}", outputs)
    return None


def _parse(value: JsonValue) -> JsonObject | None:
    try:
        reply = json.loads(value) if isinstance(value, str) else None
    except (ValueError, RecursionError):
        return None
    return reply if isinstance(reply, dict) else None
