"""`make eval-bfcl` and `make eval-chat` ask a gateway and the endpoint behind it, here with a scripted model."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.core.errors import ConfigError
from agent.core.settings import Settings
from gateway.features.evaluation.progress import ProgressFile
from tests.bench import endpoint
from tests.bench.endpoint import Endpoint, FunctionCall, describe_subject, format_heading, read_endpoint
from tests.bench.everyday_chat.__main__ import BARE, GATEWAY, ask
from tests.bench.everyday_chat.chats import ChatAnswer, load_chats
from tests.bench.function_calls.cases import Case, CaseReply
from tests.bench.function_calls.columns import ask_columns
from tests.support.processes import GatewayProcess
from tests.support.script import Call, answers, plans, says, script
from tests.support.scripted_server import ScriptedServer

PARAMETERS = {"type": "object", "properties": {"base": {"type": "integer"}}, "required": ["base"]}
CASE = Case(
    id="simple_python_0",
    family="simple_python",
    messages=[{"role": "user", "content": "How large is a square with the base 3?"}],
    tools=[{"type": "function", "function": {"name": "area", "description": "Its area.", "parameters": PARAMETERS}}],
    prompted=[
        {"role": "system", "content": "Write calls of area(base)."},
        {"role": "user", "content": "How large is a square with the base 3?"},
    ],
)


@pytest.fixture(autouse=True)
def warm_gateway(monkeypatch: pytest.MonkeyPatch) -> None:
    """The gateway begins with its imports done; that of a measurement does not."""
    monkeypatch.setattr(endpoint, "ColdGatewayProcess", GatewayProcess)


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedServer]:
    with ScriptedServer(script()) as server:
        yield server


@pytest.fixture
def settings(model: ScriptedServer, tmp_path: Path) -> Settings:
    options: dict[str, Any] = {"llm_base_url": model.url, "model_fast": "small", "model_profile": "capable"}
    return Settings(_env_file=None, data_dir=tmp_path / "unused", **options)


def test_each_column_is_asked_in_its_own_form_and_kept(
    model: ScriptedServer, settings: Settings, tmp_path: Path
) -> None:
    call = Call("area", {"base": 3})
    model.load(
        script(
            plans({"id": "s", "tool": "area", "inputs": {"base": 3}}, {"tool": "completion", "depends_on": ["s"]}),
            says("[area(base=3)]", to="", about="Write calls of"),
            says(calls=(call,), to=""),
            says(calls=(call,), to="completion"),
        )
    )
    subject = describe_subject(read_endpoint(settings))
    names: list[Any] = ["gateway", "chat", "native", "prompting"]
    file = tmp_path / "replies.jsonl"
    for _ in range(2):
        progress = ProgressFile(file, subject, CaseReply)
        replies = ask_columns(names, [CASE], settings, read_endpoint(settings), parallel=1, progress=progress)
        kept = {name: replies[name][CASE.id] for name in names}
        assert [kept[name].status for name in names] == ["answered"] * 4, kept
        wanted = FunctionCall(name="area", arguments='{"base": 3}')
        for name in ("gateway", "chat", "native"):
            [made] = kept[name].calls
            assert (made.name, made.arguments.replace(" ", "")) == (wanted.name, wanted.arguments.replace(" ", ""))
        assert (kept["prompting"].text, kept["prompting"].calls) == ("[area(base=3)]", ())
        requests = model.requests()
    assert len(requests) == 4, "what is in the file is not asked again"
    bare = [request["body"] for request in requests if not request["purpose"]]
    assert [("tools" in body, body["temperature"]) for body in bare] == [(True, 0), (False, 0)]


async def test_everyday_chats_are_streamed_from_both_and_timed(model: ScriptedServer, settings: Settings) -> None:
    through = "Hello, through the gateway."
    model.load(script(answers(through), says(through, to="completion"), says("Hello, from the model.", to="")))
    chats = [chat for chat in load_chats() if chat.id in ("greeting-hello", "follow-lower-case")]
    written = await ask((GATEWAY, BARE), chats, settings, read_endpoint(settings), None)
    for name, text in ((GATEWAY, through), (BARE, "Hello, from the model.")):
        one: ChatAnswer = written[name]["greeting-hello"]
        assert (one.status, one.text) == ("answered", text)
        assert one.first_token_seconds is not None
        assert 0 < one.first_token_seconds <= one.seconds
    bare = [request["body"] for request in model.requests() if not request["purpose"]]
    assert [message["role"] for message in bare[1]["messages"]] in (["user"], ["user", "assistant", "user"])
    assert len(bare) == 3, "the first warms the model up"


def test_a_measurement_names_its_model_and_needs_one(settings: Settings, model: ScriptedServer) -> None:
    place = read_endpoint(settings)
    assert place == Endpoint(model.url, "small")
    heading = format_heading("make eval-chat", Endpoint("http://user:secret@127.0.0.1:9/v1", "small"))
    assert "model small at 127.0.0.1:9" in heading
    assert "secret" not in heading
    listed = settings.model_copy(update={"model_fast": None})
    assert read_endpoint(listed).model == "scripted", "the endpoint's first model"
    for update, reason in (
        ({"llm_base_url": None}, "set AGENT_LLM_BASE_URL"),
        ({"model_fast": "a,b"}, "name one model"),
    ):
        with pytest.raises(ConfigError, match=reason):
            read_endpoint(settings.model_copy(update=update))
