"""New plans: what has succeeded or has been done is not done again, and what is given up is told."""

from pathlib import Path

import pytest
from pydantic import JsonValue

from agent.core.errors import ToolError, ToolInputError
from agent.core.models import JsonObject, Room
from agent.tools import READ_ONLY, ToolAnnotations
from tests.integration.test_engine import write_skill
from tests.support.engine import engine_bench
from tests.support.script import Call, Rule, judges, plans, says, script
from tests.support.tools import EFFECT, FunctionTool, returning

ALWAYS = Room(id="test", supervision="always")
CHECKS = Room(id="test", supervision="checks")


@pytest.mark.row("S001-29", "S001-31")
@pytest.mark.parametrize(
    "again",
    [plans({"tool": "completion"}), says("no plan", to="planner"), says("", to="planner", fault="status_401")],
    ids=["nothing new", "no plan", "no planner"],
)
async def test_what_a_new_plan_gives_up_is_told(tmp_path: Path, again: Rule) -> None:
    """Nobody is to take the rest for the whole, and no model to fill it in."""
    model = script(
        plans(
            {"tool": "weather", "intent": "look up the weather in Lund"},
            {"tool": "notes", "intent": "read the notes"},
            {"tool": "completion"},
            times=1,
        ),
        again,
        says("The notes say kelp.", to="completion"),
    )
    tools = [returning("weather", ToolError("quota exceeded")), returning("notes", "kelp, say the notes")]
    async with engine_bench(tmp_path, model, tools=tools, room=CHECKS) as bench:
        response = await bench.run("search the notes, and what is the weather in Lund?")
        asked = [one["body"]["messages"] for one in bench.client.requests if one["purpose"] == "completion"]
    assert response.response == "The notes say kelp."
    doubts = response.metadata["uncertainties"]
    assert [(one["level"], one["step_id"]) for one in doubts if one["level"] == "notable"] == [("notable", "s1")]
    assert doubts[0]["message"].startswith("given up: look up the weather in Lund (weather failed: quota exceeded")
    [messages] = asked
    assert "Take every fact, figure, name, code and link from the results" in messages[0]["content"]
    assert '<failed step="s1" tool="weather" intent="look up the weather in Lund">' in messages[1]["content"]


@pytest.mark.row("S001-29")
async def test_what_another_way_was_found_for_is_no_doubt(tmp_path: Path) -> None:
    model = script(
        plans({"tool": "weather", "intent": "look up the weather in Lund"}, times=1),
        plans({"tool": "notes", "intent": "read the notes"}),
        says("The notes say it is mild.", to="completion"),
    )
    tools = [returning("weather", ToolError("quota exceeded")), returning("notes", "mild, say the notes")]
    async with engine_bench(tmp_path, model, tools=tools, room=CHECKS) as bench:
        response = await bench.run("search: what is the weather in Lund?")
        asked = [one["body"]["messages"] for one in bench.client.requests if one["purpose"] == "completion"]
    assert response.metadata["uncertainties"] == []
    assert "<failed" not in str(asked)


@pytest.mark.row("S001-29")
async def test_a_step_that_succeeded_is_not_done_again_because_another_of_its_tool_failed(tmp_path: Path) -> None:
    """Models give the whole plan again when they are asked for a new one."""
    sent: list[JsonValue] = []

    async def send(args: JsonObject) -> JsonValue:
        sent.append(args["x"])
        if args["x"] == "Bert":
            raise ToolError("there is no Bert")
        return f"sent to {args['x']}"

    model = script(
        plans(
            {"tool": "send", "inputs": {"x": "Anna"}},
            {"tool": "send", "inputs": {"x": "Bert"}, "depends_on": ["s1"]},
            {"tool": "completion"},
        ),
        says("fine", to="completion"),
    )
    async with engine_bench(tmp_path, model, tools=[FunctionTool("send", send, annotations=EFFECT)]) as bench:
        response = await bench.run("search for both and send them the news then")
    assert sent.count("Anna") == 1
    assert sent.count("Bert") == 1, "it would fail in the same way"
    assert response.metadata["status"] == "partial"


@pytest.mark.row("S001-29", "Scard-09")
async def test_what_was_done_is_not_done_again_because_the_judge_thinks_little_of_it(tmp_path: Path) -> None:
    """The letter has gone out, whatever is thought of the receipt; only another one may follow it."""
    send = returning("send", "receipt 77", annotations=EFFECT)
    again = plans({"tool": "send", "inputs": {"x": "Anna"}}, {"tool": "completion"}, times=2)
    other = plans({"tool": "send", "inputs": {"x": "Bert"}}, {"tool": "completion"})
    verdicts = (judges("REPLAN", "this is a mere receipt", about="x: Anna"), judges("SUCCESS"))
    model = script(again, other, *verdicts, says("Bert has it.", to="completion"))
    async with engine_bench(tmp_path, model, tools=[send], room=ALWAYS) as bench:
        response = await bench.run("search for Anna and send the letter then")
    assert [call["x"] for call in send.calls] == ["Anna", "Bert"]
    assert response.metadata["status"] == "complete"
    refused = [step.detail["rejected"] for step in response.steps if step.type == "plan" and "rejected" in step.detail]
    assert "calls send as it has been done already" in str(refused)


@pytest.mark.row("S001-29")
@pytest.mark.parametrize(
    ("failure", "looks", "calls"),
    [
        (ToolError("no such address"), False, 1),
        (ToolError("no such address"), True, 2),
        ("Error: service unavailable", False, 1),
        ("Error: service unavailable", True, 1),
        ({"success": False}, True, 1),
    ],
)
async def test_the_same_change_is_made_again_only_if_it_failed_for_certain_and_something_was_read(
    tmp_path: Path, failure: JsonValue | Exception, looks: bool, calls: int
) -> None:
    """What returned something may be done, and no plan that was made before the look knows better."""
    send = returning("send", failure, "sent", annotations=EFFECT)
    outbox = returning("read_outbox", "nothing was sent today")
    letter = {"tool": "send", "inputs": {"x": "Anna"}}
    look = ({"id": "s5", "tool": "read_outbox"},) if looks else ()
    again = plans(*look, {**letter, "id": "s6", "depends_on": ["s5"] if looks else []}, {"tool": "completion"})
    model = script(plans(letter, {"tool": "completion"}, times=1), again, says("Anna has it.", to="completion"))
    async with engine_bench(tmp_path, model, tools=[send, outbox], room=CHECKS) as bench:
        response = await bench.run("search for Anna and send the letter then")
    assert len(send.calls) == calls
    assert response.metadata["status"] == ("complete" if calls > 1 else "partial")


@pytest.mark.row("S001-29", "Scard-09")
@pytest.mark.parametrize("result", [{"error": None, "id": 5}, {"error": "", "id": 5}, '{"error": null, "id": 5}'])
@pytest.mark.parametrize("annotations", [EFFECT, READ_ONLY])
async def test_an_error_field_that_names_no_error_is_a_success(
    tmp_path: Path, result: JsonValue, annotations: ToolAnnotations
) -> None:
    create = returning("create_issue", result, annotations=annotations)
    model = script(plans({"tool": "create_issue"}, {"tool": "completion"}), says("It is #5.", to="completion"))
    async with engine_bench(tmp_path, model, tools=[create], room=CHECKS) as bench:
        response = await bench.run("open an issue")
    assert (len(create.calls), response.metadata["status"]) == (1, "complete")


@pytest.mark.row("S001-29", "Scard-09")
@pytest.mark.parametrize("reference", ["$s1.output.email", "${s1.output.email}", {"$from": "s1", "path": "email"}])
async def test_a_change_with_an_earlier_result_is_not_made_again_because_another_step_failed(
    tmp_path: Path, reference: JsonValue
) -> None:
    find, send = returning("find", {"email": "ann@example.org"}), returning("send", "sent", annotations=EFFECT)
    book = returning("book", ToolError("no room is free"), "booked", annotations=EFFECT)
    steps = (
        {"tool": "find"},
        {"tool": "send", "inputs": {"x": reference}},
        {"tool": "book", "inputs": {"x": "room 1"}, "depends_on": ["s2"]},
    )
    other = {**steps[2], "inputs": {"x": "room 2"}}
    end = {"tool": "completion"}
    model = script(
        plans(*steps, end, times=1), plans(*steps[:2], other, end), says("Sent and booked.", to="completion")
    )
    async with engine_bench(tmp_path, model, tools=[find, send, book], room=CHECKS) as bench:
        response = await bench.run("find Ann, send her the news and book a room")
    assert [call["x"] for call in send.calls] == ["ann@example.org"]
    assert [call["x"] for call in book.calls] == ["room 1", "room 2"]
    assert response.metadata["status"] == "complete"


@pytest.mark.row("S001-29")
@pytest.mark.parametrize("failure", [ToolError("request 17: no such file"), {"error": "no such file"}])
async def test_a_read_that_failed_twice_is_not_made_again(tmp_path: Path, failure: JsonValue | Exception) -> None:
    bad = returning("lookup", failure)
    model = script(plans({"tool": "lookup", "inputs": {"x": "Ann"}}, {"tool": "completion"}))
    async with engine_bench(tmp_path, model, tools=[bad], room=CHECKS) as bench:
        response = await bench.run("search the customer")
    assert len(bad.calls) == 2, "once, and once more"
    assert bench.client.purposes() == ["planner"] * 2
    assert response.metadata["status"] == "partial"
    assert response.response.startswith("I could not finish this: lookup failed and 1 new plan did not help: ")
    assert "no such file" in response.response


@pytest.mark.row("S001-29")
async def test_a_call_that_failed_for_good_is_not_made_again(tmp_path: Path) -> None:
    """The planner repeats its plan; the tool would refuse the same arguments again."""
    bad = returning("lookup", ToolInputError("there is no such customer"))
    model = script(plans({"tool": "lookup", "inputs": {"x": "Ann"}}, {"tool": "completion"}))
    async with engine_bench(tmp_path, model, tools=[bad], room=CHECKS) as bench:
        response = await bench.run("search the customer")
    assert len(bad.calls) == 1
    assert bench.client.purposes() == ["planner"] * 2, "a planner that repeats it is not asked a third time"
    assert response.metadata["status"] == "partial"
    assert "not called again, because the same call failed before: there is no such customer" in str(response.steps)


@pytest.mark.row("S001-29")
async def test_a_call_may_be_made_again_once_something_was_changed(tmp_path: Path) -> None:
    lookup = returning("lookup", ToolInputError("there is no such customer"), "customer 7")
    create = returning("create", "created", annotations=EFFECT)
    model = script(
        plans({"tool": "lookup", "inputs": {"x": "Ann"}}, {"tool": "completion"}, times=1),
        plans(
            {"id": "s5", "tool": "create", "inputs": {"x": "Ann"}},
            {"id": "s6", "tool": "lookup", "inputs": {"x": "Ann"}, "depends_on": ["s5"]},
            {"id": "s7", "tool": "completion"},
        ),
        says("It is customer 7.", to="completion"),
    )
    async with engine_bench(tmp_path, model, tools=[lookup, create], room=CHECKS) as bench:
        response = await bench.run("search the customer and create it then")
    assert (len(lookup.calls), len(create.calls)) == (2, 1)
    assert response.metadata["status"] == "complete"


async def test_a_skill_does_not_repeat_a_call_that_failed_for_good(tmp_path: Path) -> None:
    bad = returning("lookup", ToolInputError("there is no such customer"))
    roots = write_skill(tmp_path / "skills", "find-it", "lookup")
    ask = says("", to="skill", calls=(Call("lookup", {"x": "Ann"}),), times=2)
    model = script(ask, says("There is no such customer.", to="skill"))
    async with engine_bench(tmp_path / "d", model, tools=[bad], skill_roots=[roots], room=CHECKS) as bench:
        response = await bench.run("/find-it who is Ann?")
        told = bench.client.requests[2]["body"]["messages"][-1]["content"]
    assert len(bad.calls) == 1
    assert "the same call failed before (there is no such customer)" in told
    assert response.response == "There is no such customer."
