"""Long conversations in a room that plans: the answer reads what fits, and says what does not."""

from pathlib import Path
from typing import Any

import pytest

from agent.core.models import ChatMessage
from agent.run_context import conversation
from tests.support.engine import Bench, engine_bench
from tests.support.script import answers, plans, says, script

PLANNED = (plans({"tool": "completion"}), says("Orion.", to="completion"))


QUESTION = "Which name did I give the project?"


def make_messages(count: int, length: int = 10) -> dict[str, Any]:
    roles: tuple[Any, ...] = ("user", "assistant")
    messages = [ChatMessage(role=roles[at % 2], content=f"message {at} " + "x" * length) for at in range(count)]
    return {"messages": (*messages,), "prompt_position": count}


def read_prompt(bench: Bench, purpose: str) -> str:
    return str(next(one for one in reversed(bench.client.requests) if one["purpose"] == purpose)["body"]["messages"])


async def test_all_messages_that_fit_are_read(tmp_path: Path) -> None:
    async with engine_bench(tmp_path, script(*PLANNED)) as bench:
        response = await bench.run(QUESTION, **make_messages(60))
        assert "message 0 " in read_prompt(bench, "planner")
        assert "message 0 " in read_prompt(bench, "completion")
    assert response.metadata["uncertainties"] == []


@pytest.mark.parametrize("model", [script(*PLANNED), script(answers("Orion."))], ids=["completion", "planner"])
async def test_messages_that_do_not_fit_are_an_uncertainty(tmp_path: Path, model: Any) -> None:
    async with engine_bench(tmp_path, model) as bench:
        response = await bench.run(QUESTION, **make_messages(200, 1_500))
        prompt = read_prompt(bench, "planner")
    assert response.response == "Orion."
    assert "earlier messages are left out here" in prompt
    (told,) = response.metadata["uncertainties"]
    assert told["level"] == "notable"
    assert "does not consider the first " in told["message"]


@pytest.mark.parametrize(("context", "count"), [(4_000, 3), (400_000, 60)])
async def test_a_known_context_is_filled_and_not_exceeded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, context: int, count: int
) -> None:
    async with engine_bench(tmp_path, script(*PLANNED)) as bench:
        monkeypatch.setattr(conversation, "find_context_tokens", lambda run, tier: context)
        await bench.run(QUESTION, **make_messages(60, 2_000))
        prompt = read_prompt(bench, "completion")
    assert prompt.count("'message ") == count
