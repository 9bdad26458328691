"""Values that steps pass on stay whole where events and answers hold no personal data, in requested calls too."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from agent.core import events as ev
from agent.core.errors import BadRequestError
from agent.core.events import Event
from agent.core.models import JsonObject, OutputGuards, Room
from tests.integration.test_approval import ask, decide, log_of, waiting
from tests.integration.test_engine import write_skill
from tests.support.engine import engine_bench
from tests.support.script import plans, says, script
from tests.support.tools import EFFECT, returning

BOB = "bob.lind@example.org"
KEY = "ghp" + "_" + "a1B2" * 9
COMPLETION = {"tool": "completion"}


def room(pii: str = "off", **options: object) -> Room:
    guards = OutputGuards.model_validate({"pii": pii})
    return Room.model_validate({"id": "test", "supervision": "checks", "guard_output": guards, **options})


def join_results(events: Sequence[Event]) -> str:
    """The results in the log: of tools, of steps, of models, and the answer."""
    kinds = (ev.ToolReturned, ev.StepFinished, ev.ModelReturned, ev.AnswerFinished)
    return "\n".join(str(event.to_public_json()) for event in events if isinstance(event.body, kinds))


@pytest.mark.parametrize("pii", ["redact_answer", "redact"])
async def test_what_a_skill_extracted_reaches_the_next_step_whole(tmp_path: Path, pii: str) -> None:
    write_skill(tmp_path / "skills", "helper", "calculator")
    look = returning("look", f"ask Bob at {BOB}", tainted=True)
    mail = returning("send_mail", "sent", annotations=EFFECT)
    model = script(
        plans(
            {"tool": "look"},
            {"tool": "helper", "inputs": {"task": "Find the address in $s1"}},
            {"tool": "send_mail", "inputs": {"x": "$s2"}},
            COMPLETION,
        ),
        says(f"{BOB}", to="skill"),
        says(f"It was sent to {BOB}.", to="completion"),
    )
    skills = [tmp_path / "skills"]
    async with engine_bench(tmp_path / "data", model, tools=[look, mail], room=room(pii), skill_roots=skills) as bench:
        asked = await ask(bench, "write to the person in the notes")
        (approval,) = waiting(asked)
        assert approval["items"][0]["args"] == {"x": BOB}  # type: ignore[index]
        assert mail.calls == []
        done = await decide(bench, asked, "approve")
        log = await log_of(bench, done)
    assert mail.calls == [{"x": BOB}]
    assert done.response == "It was sent to [removed: EMAIL]."
    found = [event for event in log if isinstance(event.body, ev.StepFinished) and event.step_id == "s2"]
    assert BOB not in join_results(found)
    if pii == "redact":
        assert BOB not in join_results([event for event in log if event.step_id != "s3"])


async def test_a_secret_in_a_result_is_not_passed_on(tmp_path: Path) -> None:
    look = returning("look", f"{BOB} has the key {KEY}", tainted=True)
    note = returning("write_it", "written")
    model = script(
        plans({"tool": "look"}, {"tool": "write_it", "inputs": {"x": "$s1"}}), says("Done.", to="completion")
    )
    async with engine_bench(tmp_path, model, tools=[look, note], room=room("redact")) as bench:
        await ask(bench, "write the notes down")
    (call,) = note.calls
    assert BOB in str(call["x"])
    assert KEY not in str(call["x"])


async def test_a_result_without_personal_data_is_stored_once(tmp_path: Path) -> None:
    look = returning("look", "nothing personal", tainted=True)
    async with engine_bench(tmp_path, script(plans({"tool": "look"})), tools=[look], room=room("redact")) as bench:
        log = await log_of(bench, await ask(bench, "look it up"))
    assert [event.body.whole_blob for event in log if isinstance(event.body, ev.ToolReturned)] == [None]


@pytest.mark.parametrize("reference", ["$s1.output.found", {"$from": "s1", "path": "output.found"}])
async def test_a_requested_call_waits_for_the_call_it_refers_to(tmp_path: Path, reference: JsonObject | str) -> None:
    look = returning("look", {"found": "a-17"})
    read = returning("read_it", "the text of a-17")
    calls = [{"tool": "look"}, {"tool": "read_it", "args": {"x": reference}}]
    async with engine_bench(tmp_path, None, tools=[look, read], room=room()) as bench:
        done = await ask(bench, "", metadata={"tool_calls": calls})
    assert done.metadata["status"] == "complete"
    assert read.calls == [{"x": "a-17"}]


@pytest.mark.parametrize("reference", ["$s2", "$s3", "${s3.output}", {"$from": "look"}])
async def test_a_requested_call_refers_to_earlier_calls_only(tmp_path: Path, reference: JsonObject | str) -> None:
    calls = [{"tool": "look"}, {"tool": "look", "args": {"x": reference}}, {"tool": "look"}]
    async with engine_bench(tmp_path, None, tools=[returning("look", "a")], room=room()) as bench:
        with pytest.raises(BadRequestError, match=r"call 2 \(look\) refers to .* it may refer to the calls before it"):
            await ask(bench, "", metadata={"tool_calls": calls})


async def test_a_requested_call_takes_other_dollar_signs_as_text(tmp_path: Path) -> None:
    look = returning("look", "a")
    calls = [{"tool": "look", "args": {"x": "echo ${HOME} for $5"}}]
    async with engine_bench(tmp_path, None, tools=[look], room=room()) as bench:
        await ask(bench, "", metadata={"tool_calls": calls})
    assert look.calls == [{"x": "echo ${HOME} for $5"}]


async def test_a_room_may_have_plans_of_32_steps(tmp_path: Path) -> None:
    look = returning("look", "a")
    steps = [{"tool": "look", "inputs": {"x": str(number)}} for number in range(31)]
    model = script(plans(*steps, COMPLETION), says("Done.", to="completion"))
    async with engine_bench(tmp_path, model, tools=[look], room=room(budgets={"max_steps": 32})) as bench:
        done = await ask(bench, "look it all up")
    assert (done.response, len(look.calls)) == ("Done.", 31)


async def test_empty_lists_in_an_object_are_a_result(tmp_path: Path) -> None:
    look = returning("look", {"result": {"to": "bo"}, "files": [], "stderr": []})
    read = returning("read_it", "done")
    model = script(
        plans({"tool": "look"}, {"tool": "read_it", "inputs": {"x": "$s1.output.result.to"}}),
        says("ok", to="completion"),
    )
    async with engine_bench(tmp_path, model, tools=[look, read], room=room()) as bench:
        await ask(bench, "look it up and read it")
    assert read.calls == [{"x": "bo"}]
