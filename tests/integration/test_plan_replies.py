"""Replies to a plan in words: a question leaves it open, a refusal in any words ends it, and nothing else approves."""

from pathlib import Path
from typing import Any

import pytest

from agent.core.events import PlanProposed
from tests.integration.test_approval import CAREFUL, STRICT, ask, decide, log_of, mail, sending, waiting
from tests.support.engine import engine_bench
from tests.support.script import MEANING_QUESTION, Rule, answers, decides, plans, says, script, wants
from tests.support.tools import returning

DONE = says("All done.", to="completion")


def means(what: str) -> Rule:
    """The model's word for what a reply means."""
    return says(f'{{"means": "{what}"}}', to="planner", about=MEANING_QUESTION)


def items_of(asked: Any) -> list[Any]:
    (approval,) = waiting(asked)
    items: list[Any] = approval["items"]  # type: ignore[assignment]
    return [item["args"] for item in items]


@pytest.mark.parametrize("meaning", ["other", "yes", "maybe"])
async def test_a_question_about_a_plan_is_answered_and_the_plan_is_asked_about_again(
    tmp_path: Path, meaning: str
) -> None:
    tool = mail()
    said = "Because you asked me to.\n\n1. `send_mail`: nothing else"
    model = script(means(meaning), plans(*sending(), times=1), answers(said), DONE)
    async with engine_bench(tmp_path, model, tools=[tool], room=CAREFUL, model_profile="capable") as bench:
        asked = await ask(bench)
        again = await decide(bench, asked, "answer", reason="why?")
        assert 'Nothing in it was changed. You said "why?"' in again.response, "whatever the answer says"
        assert '"Because you asked me to. 1. `send_mail`: nothing else"' in again.response, (
            "it forms no line of its own"
        )
        assert items_of(again) == [{"x": "hello"}]
        assert tool.calls == [], "whatever the model reads into the reply"
        plan_events = [one.body for one in await log_of(bench, again) if isinstance(one.body, PlanProposed)]
        assert [one.plan.version for one in plan_events] == [0, 1]
        done = await decide(bench, again, "approve")
    assert done.metadata["status"] == "complete"
    assert tool.calls == [{"x": "hello"}]


async def test_a_later_does_not_close_the_question_of_a_small_model(tmp_path: Path) -> None:
    tool = mail()
    call = {"tool": "send_mail", "inputs": {"x": "hello"}}
    model = script(wants("send_mail"), decides(call, times=1), decides(), DONE)
    async with engine_bench(tmp_path, model, tools=[tool], room=CAREFUL, model_profile="small") as bench:
        asked = await ask(bench, "send hello")
        again = await decide(bench, asked, "answer", reason="later")
        assert items_of(again) == [{"x": "hello"}]
        assert tool.calls == []
        done = await decide(bench, again, "approve")
    assert tool.calls == [{"x": "hello"}]
    assert done.metadata["status"] == "complete"


@pytest.mark.parametrize("following", [plans(*sending()), answers("All right.")], ids=["the same plan", "no plan"])
async def test_a_refusal_in_other_words_ends_the_run(tmp_path: Path, following: Rule) -> None:
    tool = mail()
    model = script(means("no"), plans(*sending(), times=1), following, DONE)
    async with engine_bench(tmp_path, model, tools=[tool], room=CAREFUL, model_profile="capable") as bench:
        asked = await ask(bench)
        ended = await decide(bench, asked, "answer", reason="cancel that")
        last = bench.client.requests[-1]["body"]["messages"]
    assert ended.metadata["status"] == "cancelled"
    assert "the plan was rejected: cancel that" in ended.response
    assert [one["content"] for one in last if one["role"] == "user"][-1] == "cancel that", "the reply alone"
    assert "hello" not in str(last)
    assert tool.calls == []


async def test_a_changed_plan_is_shown_whatever_the_reply_may_mean(tmp_path: Path) -> None:
    tool = mail()
    model = script(means("no"), plans(*sending("first"), times=1), plans(*sending("second")), DONE)
    async with engine_bench(tmp_path, model, tools=[tool], room=CAREFUL, model_profile="capable") as bench:
        asked = await ask(bench)
        again = await decide(bench, asked, "answer", reason="not first, second")
        assert items_of(again) == [{"x": "second"}]
        assert "You said" not in again.response


async def test_a_reply_that_changed_nothing_is_named_with_the_words_that_decide(tmp_path: Path) -> None:
    tool = mail()
    async with engine_bench(
        tmp_path, script(means("yes"), plans(*sending()), DONE), tools=[tool], room=CAREFUL, model_profile="capable"
    ) as bench:
        asked = await ask(bench)
        again = await decide(bench, asked, "answer", reason="go for it")
        assert 'Nothing in it was changed by what you said ("go for it"); approve it as it is' in again.response
        assert tool.calls == []


async def test_a_plan_that_only_reads_stays_open_too(tmp_path: Path) -> None:
    look = returning("look", "a fact")
    model = script(plans({"tool": "look", "inputs": {"x": "a"}}, {"tool": "completion"}, times=1), answers("So."), DONE)
    async with engine_bench(tmp_path, model, tools=[look], room=STRICT, model_profile="capable") as bench:
        asked = await ask(bench, "look at a")
        again = await decide(bench, asked, "answer", reason="what is that?")
        assert items_of(again) == [{"x": "a"}]
        assert look.calls == []


@pytest.mark.parametrize("follows", ["a look", "a look and the change"])
async def test_a_change_that_a_reply_left_out_is_said_to_be_not_made(tmp_path: Path, follows: str) -> None:
    tool, look = mail(), returning("look", "a fact")
    looking: dict[str, Any] = {"tool": "look", "inputs": {"x": "a"}}
    steps: list[dict[str, Any]] = [looking, {"tool": "completion"}] if follows == "a look" else [looking, *sending()]
    model = script(plans(*sending(), times=1), plans(*steps), DONE)
    async with engine_bench(tmp_path, model, tools=[tool, look], room=CAREFUL, model_profile="capable") as bench:
        asked = await ask(bench)
        done = await decide(bench, asked, "answer", reason="look at a first")
        if follows != "a look":
            done = await decide(bench, done, "approve")
    is_made = follows != "a look"
    assert len(tool.calls) == int(is_made)
    assert done.metadata["status"] == ("complete" if is_made else "partial")
    assert ("Nothing was changed, sent or saved." in done.response) is not is_made
