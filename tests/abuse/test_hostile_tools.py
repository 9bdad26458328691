"""Code of tools that attacks the sandbox, run without the rules that would have refused it: `make check-sandbox`.

Each program runs in both tiers, below another user, in namespaces, with 2 seconds and 64 MB. A breach is anything of
the host: its files, its environment, its processes, its network; or a sandbox that does not work afterwards.
"""

import os
import socket
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from agent.core.errors import AgentError, ToolError
from agent.core.models import JsonObject
from agent.sandbox.interpreter import InterpreterPool, find_missing_interpreter
from gateway.features.studio.engine.generated_tools.models import Manifest, SandboxTier
from gateway.features.studio.engine.generated_tools.tool_runner import ToolRunner
from gateway.features.studio.engine.generated_tools.validation import CheckedTool, ToolValidationPipeline
from tests.support.hostile_tools import ENDED, REFUSED
from tests.support.sandboxes import open_sandbox, requires_sandbox
from tests.support.tool_scripts import CODE

pytestmark = [
    requires_sandbox,
    pytest.mark.skipif(find_missing_interpreter() is not None, reason="the interpreter is not installed"),
    pytest.mark.asyncio(loop_scope="module"),
]
TIERS: tuple[SandboxTier, ...] = ("interpreter", "process")
TIGHT = Manifest(seconds=2, memory_mb=64)
CANARY = "canary-of-the-host"
LEFT_BEHIND = "/tmp/stepgate-attack"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def runner() -> AsyncIterator[ToolRunner]:
    os.environ["STEPGATE_TEST_CANARY"] = CANARY
    try:
        async with open_sandbox() as sandbox:
            runner = ToolRunner(InterpreterPool(parallel=2), sandbox)
            yield runner
            await runner.aclose()
    finally:
        del os.environ["STEPGATE_TEST_CANARY"]


@pytest.fixture(scope="module")
def listener() -> Iterator[socket.socket]:
    """A server of this machine that no program may reach."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        yield server


def read_tool(code: str) -> CheckedTool:
    """The tool with whatever the rules refuse."""
    return ToolValidationPipeline().check("attack", code, Manifest())


RUNNABLE = {
    name: code
    for name, code in {**REFUSED, **ENDED}.items()
    if (tool := read_tool(code)).input_name in tool.models.types and tool.output_name in tool.models.types
}


async def call(runner: ToolRunner, code: str, tier: SandboxTier, asked: list[str]) -> JsonObject | str:
    async def refuse(name: str, arguments: list[object]) -> str:
        asked.append(name)
        raise ToolError("refused")

    try:
        return await runner.call(read_tool(code), tier, TIGHT, {}, refuse)
    except AgentError as error:
        return error.message


async def test_most_programs_are_run() -> None:
    assert len(RUNNABLE) >= 100


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("attack", list(RUNNABLE))
async def test_nothing_of_the_host_is_reached(
    runner: ToolRunner, listener: socket.socket, attack: str, tier: SandboxTier
) -> None:
    code = RUNNABLE[attack].replace("127.0.0.1', 80", f"127.0.0.1', {listener.getsockname()[1]}")
    asked: list[str] = []
    got = str(await call(runner, code, tier, asked))
    for secret in (CANARY, "root:x:", "uid="):
        assert secret not in got
    assert set(asked) <= {"http_get", "read_file", "call_tool"}, "only what a manifest decides about"
    assert len(asked) <= 50
    assert not os.path.exists(LEFT_BEHIND)  # noqa: ASYNC240, PTH110 - it never blocks
    with pytest.raises(BlockingIOError):
        listener.accept()
    tool = ToolValidationPipeline().check("convert_part_number", CODE, Manifest())
    after = await runner.call(tool, tier, Manifest(), {"number": "A-1"}, lambda *_: pytest.fail("asked"))
    assert after["converted"] == "1A", "the next program works"


@pytest.mark.parametrize("tier", TIERS)
async def test_a_breach_would_be_noticed(runner: ToolRunner, tier: SandboxTier) -> None:
    """The control: what a program returns is looked at."""
    code = ENDED["nothing"].replace("return None", f"return Out(found='{CANARY}')")
    assert CANARY in str(await call(runner, code, tier, []))
