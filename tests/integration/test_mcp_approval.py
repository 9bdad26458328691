"""A person in control over MCP: asked by elicitation in both eras, else the run is reported to wait."""

import asyncio
import json
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.context import ClientRequestContext
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ElicitRequestFormParams, ElicitRequestParams, ElicitResult

from mcp_tools.server import approval as server_approval
from mcp_tools.server import client_call as server_call
from tests.integration.conftest import Serve
from tests.support import warm
from tests.support.approvals import ids_of
from tests.support.keys import bearer, created_key
from tests.support.processes import ROOT
from tests.support.script import Script, plans, says, script
from tests.support.scripted_server import ScriptedServer

TASK = {"task": "note it down and report", "room": "careful"}


def noting(*texts: str) -> Script:
    """A model that plans a note of the first text, after a change of the next, and so on."""
    rules = [plans({"tool": "srv__note", "inputs": {"text": text}}, {"tool": "completion"}, times=1) for text in texts]
    return script(*rules, says("It is noted.", to="completion"))


Answer = Callable[[ElicitRequestFormParams], Awaitable[ElicitResult] | ElicitResult]


@dataclass
class Desk:
    """A person at a client: what they were asked, and what the tool wrote down."""

    file: Path
    answers: list[Answer] = field(default_factory=list)
    asked: list[ElicitRequestFormParams] = field(default_factory=list)
    written: list[list[str]] = field(default_factory=list)
    """What had been written when each question came."""

    def notes(self) -> list[str]:
        return self.file.read_text().splitlines() if self.file.exists() else []

    async def __call__(self, context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        assert isinstance(params, ElicitRequestFormParams)
        self.asked.append(params)
        self.written.append(self.notes())
        said = self.answers.pop(0)(params)
        return said if isinstance(said, ElicitResult) else await said


def says_so(decision: str, text: str = "") -> Answer:
    content: dict[str, Any] = {"decision": decision, "text": text} if text else {"decision": decision}
    return lambda _: ElicitResult(action="accept", content=content)


@dataclass
class House:
    """How to reach a gateway with the room and the tool."""

    desk: Desk
    connect: Callable[..., AbstractAsyncContextManager[Client]]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path / "notes.txt")


@pytest.fixture(params=["2026-07-28", "legacy", "stdio", "stdio legacy"])
def any_house(
    request: pytest.FixtureRequest, serve: Serve, tmp_path: Path, model_server: ScriptedServer, desk: Desk
) -> House:
    """The gateway over each of the transports, in each era."""
    return furnished(str(request.param), serve, tmp_path, model_server, desk)


@pytest.fixture(params=["2026-07-28", "legacy"])
def house(
    request: pytest.FixtureRequest, serve: Serve, tmp_path: Path, model_server: ScriptedServer, desk: Desk
) -> House:
    """The gateway over HTTP, in each era."""
    return furnished(str(request.param), serve, tmp_path, model_server, desk)


@pytest.fixture
def open_house(serve: Serve, tmp_path: Path, model_server: ScriptedServer, desk: Desk) -> House:
    """The gateway in the 2025 era, in which a call waits for the person."""
    return furnished("legacy", serve, tmp_path, model_server, desk)


def furnished(over: str, serve: Serve, tmp_path: Path, model_server: ScriptedServer, desk: Desk) -> House:
    """`async with house.connect(script) as client`; `asks=False` for a client without elicitation."""
    (tmp_path / "rooms").mkdir()
    (tmp_path / "rooms" / "careful.yaml").write_text("approval: side_effects\nsupervision: checks\n")
    notes = {**warm.server("tests.support.mcp_server_notes", str(desk.file)), "trusted": True}
    servers = tmp_path / "servers.json"
    servers.write_text(json.dumps({"mcpServers": {"srv": notes}}))

    @asynccontextmanager
    async def connected(rules: Script, *, asks: bool = True, scopes: str = "") -> AsyncIterator[Client]:
        options: dict[str, Any] = {"elicitation_callback": desk} if asks else {}
        if not over.startswith("stdio"):
            key = bearer(await created_key(tmp_path / "data", "ide", scopes=scopes)) if scopes else {}
            async with (
                serve(rules, rooms_dir=tmp_path / "rooms", mcp_servers=servers) as url,
                httpx2.AsyncClient(headers=key, timeout=60) as http,
                Client(streamable_http_client(f"{url}/mcp", http_client=http), mode=over, **options) as client,
            ):
                await there(client)
                yield client
            return
        model_server.load(rules)
        (tmp_path / "data").mkdir(exist_ok=True)
        shutil.copy(servers, tmp_path / "data" / "mcp_servers.json")
        environment = {
            "AGENT_DATA_DIR": str(tmp_path / "data"),
            "AGENT_SKILLS_DIRS": "none",
            "AGENT_ROOMS_DIR": str(tmp_path / "rooms"),
            "AGENT_LLM_BASE_URL": model_server.url,
            "AGENT_MODEL_FAST": "m",
            "AGENT_MODEL_PROFILE": "capable",
        }
        program, *words = warm.command("gateway.cli", "mcp")
        command = StdioServerParameters(command=program, args=words, env=environment, cwd=ROOT)
        async with Client(command, mode="legacy" if "legacy" in over else "auto", **options) as client:
            await there(client)
            yield client

    return House(desk, connected)


async def there(client: Client) -> None:
    """Return once the tool is: a foreign server takes its time."""
    async with asyncio.timeout(30):
        while not (await call(client, "tools_find", query="note"))["tools"]:  # noqa: ASYNC110 - it tells nobody
            await asyncio.sleep(0.05)


async def call(client: Client, name: str, **arguments: Any) -> Any:
    result = await client.call_tool(name, arguments)
    assert not result.is_error, result.content
    return result.structured_content


@pytest.mark.row("S002-26", "S002-27")
async def test_a_person_is_asked_and_nothing_is_done_before_they_approve(any_house: House) -> None:
    told: list[tuple[float, str]] = []

    async def progress(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, message or ""))

    any_house.desk.answers = [says_so("approve")]
    async with any_house.connect(noting("hello")) as client:
        result = await client.call_tool("agent_run", TASK, progress_callback=progress)
    report: Any = result.structured_content
    assert (report["status"], report["response"]) == ("complete", "It is noted.")
    assert report["approvals"] == []
    assert [step["tool"] for step in report["plan"]["steps"]] == ["srv__note", "completion"]
    (question,) = any_house.desk.asked
    assert "`srv__note`" in question.message
    assert "hello" in question.message
    assert question.requested_schema["properties"]["decision"]["enum"] == ["approve", "reject", "answer"]
    assert "default" not in question.requested_schema["properties"]["decision"], "one key must not approve"
    assert any_house.desk.written == [[]], "nothing was done before the answer"
    assert any_house.desk.notes() == ["hello"]
    lines = [message for _, message in told]
    assert "step 1/2: srv__note" in lines
    assert lines.count("plan: 2 steps") == 1


async def test_progress_only_grows_although_the_call_stops_to_ask(house: House) -> None:
    told: list[float] = []

    async def progress(progress: float, total: float | None, message: str | None) -> None:
        told.append(progress)

    house.desk.answers = [says_so("answer", "say more"), says_so("approve")]
    async with house.connect(noting("a", "b")) as client:
        result: Any = await client.session.call_tool(
            "agent_run", TASK, progress_callback=progress, allow_input_required=True
        )
        while result.result_type == "input_required":
            assert told == sorted(set(told))
            told.clear()  # a further round is a request of its own
            key, request = next(iter(result.input_requests.items()))
            answers: dict[str, Any] = {key: await house.desk(None, request.params)}  # type: ignore[arg-type]
            result = await client.session.call_tool(
                "agent_run",
                TASK,
                progress_callback=progress,
                input_responses=answers,
                request_state=result.request_state,
                allow_input_required=True,
            )
        report = result.structured_content
    assert told == sorted(set(told))
    assert report["status"] == "complete"
    assert house.desk.notes() == ["b"]
    assert len(house.desk.asked) == 2


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (ElicitResult(action="decline"), "cancelled"),
        (ElicitResult(action="accept", content={"decision": "reject", "text": "too early"}), "cancelled"),
        (ElicitResult(action="cancel"), "awaiting_approval"),
    ],
    ids=["decline", "reject", "cancel"],
)
async def test_what_is_not_approved_is_not_done(house: House, answer: ElicitResult, status: str) -> None:
    house.desk.answers = [lambda _: answer]
    async with house.connect(noting("hello")) as client:
        report = await call(client, "agent_run", **TASK)
        again = await call(client, "run_get", run_id=report["run_id"])
    assert report["status"] == again["status"] == status
    assert len(house.desk.asked) == 1
    assert house.desk.notes() == []
    if answer.content:
        assert "too early" in report["response"]


async def test_the_user_of_a_key_that_may_not_approve_is_not_asked_and_cannot_decide(house: House) -> None:
    house.desk.answers = [says_so("approve")]
    async with house.connect(noting("hello"), scopes="mcp,agent") as client:
        result = await client.call_tool("agent_run", TASK)
        report: Any = result.structured_content
        word = {"run_id": report["run_id"], "approvals": ids_of(report), "decision": "approve"}
        refused = await client.call_tool("run_respond", word)
        again = await call(client, "run_get", run_id=report["run_id"])
    assert report["status"] == again["status"] == "awaiting_approval"
    assert "whose key has the scope 'approve'" in result.content[-1].text  # type: ignore[union-attr]
    assert refused.is_error
    assert "lacks the scope 'approve'" in refused.content[0].text  # type: ignore[union-attr]
    assert house.desk.asked == []
    assert house.desk.notes() == []


async def test_an_approval_with_a_remark_is_a_change_that_is_asked_about_again(house: House) -> None:
    house.desk.answers = [says_so("approve", "but write bye"), says_so("approve")]
    async with house.connect(noting("hello", "bye")) as client:
        report = await call(client, "agent_run", **TASK)
    assert report["status"] == "complete"
    assert ["bye" in asked.message for asked in house.desk.asked] == [False, True]
    assert house.desk.written == [[], []]
    assert house.desk.notes() == ["bye"]


async def test_without_elicitation_the_run_waits_and_run_respond_decides(any_house: House) -> None:
    async with any_house.connect(noting("hello"), asks=False) as client:
        result = await client.call_tool("agent_run", TASK)
        report: Any = result.structured_content
        fetched = await call(client, "run_get", run_id=report["run_id"], wait_s=5)
        before = any_house.desk.notes()
        plan = report["plan"]
        plan["steps"][0]["args"]["text"] = "edited"
        word = {"run_id": report["run_id"], "decision": "approve"}
        unnamed = await client.call_tool("run_respond", word)
        done = await call(client, "run_respond", **word, approvals=ids_of(report), plan=plan)
        twice = await client.call_tool("run_respond", {**word, "approvals": ids_of(report)})
    assert report["status"] == fetched["status"] == "awaiting_approval"
    assert "`srv__note`" in report["response"]
    (approval,) = report["approvals"]
    first = approval["items"][0]
    assert (first["tool"], first["args"], first["changes"]) == ("srv__note", {"text": "hello"}, True)
    assert f"call run_respond with run_id {report['run_id']}, approvals [" in result.content[-1].text  # type: ignore[union-attr]
    assert before == []
    assert (done["status"], done["response"]) == ("complete", "It is noted.")
    assert any_house.desk.notes() == ["edited"]
    assert twice.is_error
    assert "approvals: name the ids" in unnamed.content[0].text  # type: ignore[union-attr]
    assert "is not waiting for approval" in twice.content[0].text  # type: ignore[union-attr]


async def test_run_respond_rejects_or_has_the_plan_changed(house: House) -> None:
    async with house.connect(noting("first", "second", "third"), asks=False) as client:
        report = await call(client, "agent_run", **TASK)
        word = {"run_id": report["run_id"], "approvals": ids_of(report)}
        changed = await call(client, "run_respond", **word, decision="answer", text="say second")
        old = await client.call_tool("run_respond", {**word, "decision": "reject"})
        word["approvals"] = ids_of(changed)
        ended = await call(client, "run_respond", **word, decision="reject", text="never mind")
        other = await call(client, "agent_run", **TASK)
        stopped = await call(client, "run_cancel", run_id=other["run_id"])
    assert changed["status"] == "awaiting_approval"
    assert old.is_error, "an id is used once, and for what was asked with it"
    assert "second" in changed["response"]
    assert ended["status"] == "cancelled"
    assert "never mind" in ended["response"]
    assert (other["status"], stopped["status"]) == ("awaiting_approval", "cancelled")
    assert house.desk.notes() == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"decision": "approve"}, "run_id"),
        ({"run_id": "run_none", "decision": "approve"}, "no run"),
        ({"run_id": "run_none", "decision": "yes"}, "decision"),
        ({"run_id": "run_none", "decision": "answer"}, "needs text"),
        ({"run_id": "run_none", "decision": "approve", "text": "but"}, "takes no text"),
        ({"run_id": "run_none", "decision": "reject", "plan": {"steps": []}}, "only"),
        ({"run_id": "run_none", "decision": "answer", "text": "x" * 20_001}, "20000"),
    ],
)
async def test_a_word_that_decides_nothing_is_refused(serve: Serve, arguments: dict[str, Any], said: str) -> None:
    async with serve() as url, Client(f"{url}/mcp") as client:
        result = await client.call_tool("run_respond", arguments)
    assert result.is_error
    assert said in result.content[0].text  # type: ignore[union-attr]


async def test_a_plan_that_cannot_be_is_refused_and_the_run_waits_on(house: House) -> None:
    async with house.connect(noting("hello"), asks=False) as client:
        report = await call(client, "agent_run", **TASK)
        plan = {**report["plan"], "steps": [{"id": "s1", "tool": "no_tool", "args": {}}]}
        refused = await client.call_tool(
            "run_respond",
            {"run_id": report["run_id"], "approvals": ids_of(report), "decision": "approve", "plan": plan},
        )
        again = await call(client, "run_get", run_id=report["run_id"])
    assert refused.is_error
    assert "no_tool" in refused.content[0].text  # type: ignore[union-attr]
    assert again["status"] == "awaiting_approval"
    assert house.desk.notes() == []


async def test_a_single_call_asks_in_a_room_that_always_asks(serve: Serve, tmp_path: Path, desk: Desk) -> None:
    (tmp_path / "rooms").mkdir()
    (tmp_path / "rooms" / "strict.yaml").write_text("approval: always\nsupervision: checks\n")
    strict = {"rooms_dir": tmp_path / "rooms", "default_room": "strict"}
    arguments = {"expression": "6*7"}
    async with serve(**strict) as url:
        for mode in ("legacy", "2026-07-28"):
            desk.answers = [says_so("approve"), lambda _: ElicitResult(action="decline")]
            async with Client(f"{url}/mcp", mode=mode, elicitation_callback=desk) as client:
                assert (await call(client, "calculator", **arguments))["value"] == "42"
                declined = await client.call_tool("calculator", arguments)
            assert declined.is_error
            async with Client(f"{url}/mcp", mode=mode) as client:
                waits = await client.call_tool("calculator", arguments)
            assert waits.is_error
            assert "run_respond" in waits.content[0].text  # type: ignore[union-attr]
    assert len(desk.asked) == 4


async def test_a_person_who_does_not_answer_in_time_loses_nothing(
    open_house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_call, "ASK_SECONDS", 0.2)
    monkeypatch.setattr(server_call, "HEARTBEAT_SECONDS", 0.05)
    told: list[str] = []

    async def progress(progress: float, total: float | None, message: str | None) -> None:
        told.append(message or "")

    async def never(_: ElicitRequestFormParams) -> ElicitResult:
        await asyncio.Event().wait()
        raise AssertionError("nobody wakes it")

    open_house.desk.answers = [never]
    async with open_house.connect(noting("hello")) as client:
        result = await client.call_tool("agent_run", TASK, progress_callback=progress)
        report: Any = result.structured_content
        assert report["status"] == "awaiting_approval"
        assert open_house.desk.notes() == []
        assert told.count("waiting for your approval") > 1, "the call is not silent meanwhile"
        word = {"run_id": report["run_id"], "approvals": ids_of(report)}
        done = await call(client, "run_respond", **word, decision="approve")
    assert done["status"] == "complete"
    assert open_house.desk.notes() == ["hello"]


async def test_a_text_that_a_client_sends_as_null_is_no_remark(any_house: House) -> None:
    content: Any = {"decision": "approve", "text": None}  # as FastMCP fills a field that was left empty
    any_house.desk.answers = [lambda _: ElicitResult.model_construct(action="accept", content=content)]
    async with any_house.connect(noting("hello")) as client:
        report = await call(client, "agent_run", **TASK)
    assert report["status"] == "complete"
    assert any_house.desk.notes() == ["hello"]


@pytest.mark.parametrize(
    "content",
    [None, {}, {"decision": "maybe"}, {"decision": "answer"}, {"decision": True}, {"text": "approve"}],
    ids=["none", "empty", "unknown", "no text", "no word", "no decision"],
)
async def test_an_answer_that_decides_nothing_leaves_the_run_waiting(
    open_house: House, content: dict[str, Any] | None
) -> None:
    open_house.desk.answers = [lambda _: ElicitResult(action="accept", content=content)]
    async with open_house.connect(noting("hello")) as client:
        report = await call(client, "agent_run", **TASK)
    assert report["status"] == "awaiting_approval"
    assert open_house.desk.notes() == []


async def test_what_is_decided_elsewhere_meanwhile_is_not_asked_for_any_more(open_house: House) -> None:
    dropped = asyncio.Event()
    asked = asyncio.Event()

    async def slowly(_: ElicitRequestFormParams) -> ElicitResult:
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            dropped.set()
        raise AssertionError("nobody wakes it")

    open_house.desk.answers = [slowly]
    async with open_house.connect(noting("hello")) as client, asyncio.timeout(20):
        running = asyncio.create_task(call(client, "agent_run", **TASK))
        await asked.wait()
        run_id = open_house.desk.asked[0].message.rsplit("`", 2)[1]
        named = ids_of(await call(client, "run_get", run_id=run_id))
        other = await call(client, "run_respond", run_id=run_id, approvals=named, decision="approve")
        report = await running
        await dropped.wait()
    assert report["status"] == other["status"] == "complete"
    assert open_house.desk.notes() == ["hello"]


async def test_a_client_that_gives_up_on_the_question_leaves_the_run_waiting(open_house: House) -> None:
    asked = asyncio.Event()

    async def slowly(_: ElicitRequestFormParams) -> ElicitResult:
        asked.set()
        await asyncio.Event().wait()
        raise AssertionError("nobody wakes it")

    open_house.desk.answers = [slowly]
    async with open_house.connect(noting("hello")) as client, asyncio.timeout(20):
        running = asyncio.create_task(call(client, "agent_run", **TASK))
        await asked.wait()
        running.cancel()
        await asyncio.wait([running])
        run_id = open_house.desk.asked[0].message.rsplit("`", 2)[1]
        report = await call(client, "run_get", run_id=run_id)
        assert report["status"] == "awaiting_approval"
        done = await call(client, "run_respond", run_id=run_id, approvals=ids_of(report), decision="approve")
    assert done["status"] == "complete"
    assert open_house.desk.notes() == ["hello"]


async def test_a_question_that_no_form_can_show_whole_is_not_asked_in_one(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_approval, "MAX_FORM_CHARS", 50)
    async with house.connect(noting("hello")) as client:
        report = await call(client, "agent_run", **TASK)
    assert report["status"] == "awaiting_approval"
    assert house.desk.asked == []
    assert house.desk.notes() == []
