"""Every way a tool can fail, in the middle of a run: the run ends, says so, and does nothing twice."""

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

from agent.core.events import Event, ToolReturned
from agent.core.models import JsonObject
from agent.tools import READ_ONLY, ToolAnnotations
from tests.faults.gateway import FaultyGateway, faulty_gateway
from tests.support import warm
from tests.support.tools import EFFECT, IDEMPOTENT, FunctionTool, Work, returning

FIFTY_MB = 50_000_000
NUMBER: JsonObject = {"type": "object", "required": ["n"], "properties": {"n": {"type": "number"}}}


async def hangs(_: object) -> JsonValue:
    await asyncio.Event().wait()
    return "never"


async def raises(_: object) -> JsonValue:
    raise RuntimeError("boom")


async def loses_its_connection(_: object) -> JsonValue:
    raise ConnectionResetError("the peer is gone")


async def floods(_: object) -> JsonValue:
    return "x" * FIFTY_MB


async def nests(_: object) -> JsonValue:
    value: JsonValue = "deep"
    for _level in range(2000):
        value = [value]
    return value


async def returns_no_json(_: object) -> JsonValue:
    return {"when": object()}  # type: ignore[dict-item]


async def breaks_its_promise(_: object) -> JsonValue:
    return {"n": "no number"}


async def returns_half_characters(_: object) -> JsonValue:
    return "half \ud83d of one"


@dataclass(frozen=True)
class Fault:
    """A tool, what its call comes to (None: a result), and how often it is called: harmless ones once more."""

    work: Work
    code: str | None
    calls: int
    annotations: ToolAnnotations = READ_ONLY


FAULTS = {
    "hangs": Fault(hangs, "ERR_TOOL_TIMEOUT", 2),
    "hangs_with_effect": Fault(hangs, "ERR_TOOL_UNKNOWN_OUTCOME", 1, EFFECT),
    "raises": Fault(raises, "ERR_TOOL_FAILED", 2),
    "raises_with_effect": Fault(raises, "ERR_TOOL_FAILED", 1, EFFECT),
    "loses_its_connection": Fault(loses_its_connection, "ERR_TOOL_FAILED", 4, IDEMPOTENT),
    "loses_it_with_effect": Fault(loses_its_connection, "ERR_TOOL_FAILED", 1, EFFECT),
    "floods": Fault(floods, None, 1),
    "nests": Fault(nests, "ERR_TOOL_FAILED", 2),
    "returns_no_json": Fault(returns_no_json, "ERR_TOOL_OUTPUT", 2),
    "breaks_its_promise": Fault(breaks_its_promise, "ERR_TOOL_OUTPUT", 2),
    "breaks_it_with_effect": Fault(breaks_its_promise, "ERR_TOOL_OUTPUT", 1, EFFECT),
    "returns_half_characters": Fault(returns_half_characters, None, 1),
}


def tool_of(name: str, fault: Fault) -> FunctionTool:
    schema = NUMBER if "breaks" in name else None
    return FunctionTool(name, fault.work, annotations=fault.annotations, timeout_s=0.2, output_schema=schema)


async def test_whatever_a_tool_does_the_run_ends_and_says_so(tmp_path: Path) -> None:
    tools = {name: tool_of(name, fault) for name, fault in FAULTS.items()}
    good = returning("good", "the known fact")
    async with faulty_gateway(tmp_path, None, good, *tools.values(), tool_retry_backoff_s=0.01) as gateway:
        found = {}
        ends = await asyncio.gather(*(gateway.call("good", name) for name in FAULTS))
        for (name, fault), (response, log) in zip(FAULTS.items(), ends, strict=True):
            faults = gateway.faults_of_log(log[0].run_id)
            codes = {body.error_code for body in returns(log, name)}
            if codes != {fault.code} or len(tools[name].calls) != fault.calls:
                faults.append(f"{codes} after {len(tools[name].calls)} calls")
            status = "complete" if fault.code is None else "partial"
            if response.metadata["status"] != status or "the known fact" not in response.response:
                faults.append(f"{response.metadata['status']}: {response.response[:200]}")
            if faults:
                found[name] = faults
    assert found == {}


def returns(log: list[Event], tool: str) -> list[ToolReturned]:
    return [event.body for event in log if isinstance(event.body, ToolReturned) and event.body.tool == tool]


async def test_fifty_megabytes_are_cut_and_leave_no_such_log(tmp_path: Path) -> None:
    async with faulty_gateway(tmp_path, None, tool_of("floods", FAULTS["floods"])) as gateway:
        response, log = await gateway.call("floods")
        (returned,) = returns(log, "floods")
        stored = json.loads(await gateway.stepgate.journal.get_blob(str(returned.blob)))["value"]
        size = sum(file.stat().st_size for file in (tmp_path / "data").glob("stepgate.db*"))
    assert returned.truncated
    assert len(response.response) < 500_000
    assert stored.endswith(
        "[cut: the result had 50,000,000 characters, the limit is 200,000 (AGENT_TOOL_OUTPUT_CHARS)]"
    )
    assert size < 10_000_000


async def test_an_mcp_server_that_dies_in_mid_call_is_told_and_its_effect_not_repeated(tmp_path: Path) -> None:
    count, servers = tmp_path / "count", tmp_path / "servers.json"
    server = {**warm.server("tests.support.mcp_server_basic", "stdio"), "env": {"MCP_FIXTURE_COUNT": str(count)}}
    servers.write_text(json.dumps({"mcpServers": {"srv": server}}))
    async with faulty_gateway(tmp_path, None, mcp_servers=servers) as gateway:
        await ready(gateway)
        response, log = await gateway.call("srv__die")
        faults = gateway.faults_of_log(log[0].run_id)
    (returned,) = returns(log, "srv__die")
    assert faults == []
    assert returned.error_code == "ERR_TOOL_UNKNOWN_OUTCOME"
    assert response.metadata["status"] in ("partial", "aborted")
    assert "srv" in response.response
    assert count.read_text() == "died\n"


async def ready(gateway: FaultyGateway) -> None:
    async with asyncio.timeout(20):
        while gateway.stepgate.servers["srv"].status != "ready":  # noqa: ASYNC110 - a status without an event
            await asyncio.sleep(0.02)


async def test_a_tool_that_fails_is_told_at_the_openai_door(tmp_path: Path) -> None:
    async with faulty_gateway(tmp_path, None) as gateway:
        whole = await gateway.ask("what is 1/0?", stream=False)
        streamed = await gateway.ask("what is 1/0?", stream=True)
        faults = [gateway.faults_of_log(told.run_id) for told in (whole, streamed)]
    assert faults == [[], []]
    for told in (whole, streamed):
        assert (told.status, told.failure, told.done) == (200, None, True)
        assert told.outcome in ("partial", "aborted")
        assert "zero" in told.text
