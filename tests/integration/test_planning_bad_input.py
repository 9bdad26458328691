"""Catalogues and replies that nobody should send: each ends clearly, and what else there is keeps working."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from agent.core.models import JsonObject
from agent.tools import READ_ONLY, ToolAnnotations, ToolContext, ToolResult, ToolSpec
from agent.tools.catalogue import Catalogue
from tests.integration.conftest import Serve
from tests.support.catalogues import load_specs
from tests.support.door_bench import door_bench
from tests.support.engine import Bench, engine_bench
from tests.support.script import Rule, answers, plans, says, script
from tests.support.scripted_server import ScriptedServer
from tests.support.tools import EFFECT, returning

JOIN = {"tool": "completion"}
TEXT: JsonObject = {"type": "string"}


class ForeignTool:
    """A tool of a foreign server that keeps the arguments of its calls."""

    def __init__(
        self, name: str, properties: JsonObject, *, required: list[str] | None = None, about: str = ""
    ) -> None:
        self.calls: list[JsonObject] = []
        schema: JsonObject = {"type": "object", "properties": properties, "required": [*(required or [])]}
        self.spec = ToolSpec(
            name,
            about or f"The tool {name}.",
            schema,
            None,
            READ_ONLY,
            tainted=True,
            origin=f"mcp:{name.split('_', maxsplit=1)[0]}",
        )

    async def call(self, args: JsonObject, context: ToolContext) -> ToolResult:
        """Return which tool it is."""
        self.calls.append(args)
        return ToolResult(f"from {self.spec.name}", f"from {self.spec.name}")

    async def reconcile(self, key: str, context: ToolContext) -> ToolResult | None:
        """Nothing is known of earlier calls."""
        return None


def prompt_of(bench: Bench, number: int = 0) -> str:
    asked = [one["body"]["messages"] for one in bench.client.requests if one["purpose"] == "planner"]
    return "\n".join(str(message["content"]) for message in asked[number])


# Catalogues


async def test_of_two_tools_with_one_description_the_planned_one_is_called(tmp_path: Path) -> None:
    tools = [ForeignTool(f"{server}__search", {"query": TEXT}, about="Search.") for server in ("alpha", "beta")]
    model = script(plans({"tool": "beta__search", "inputs": {"query": "tea"}}, JOIN), says("Tea.", to="completion"))
    async with engine_bench(tmp_path, model, tools=tools) as bench:
        response = await bench.run("search beta for tea")
        prompt = prompt_of(bench)
    assert "Tools of the server alpha:\n- alpha__search(query?: string): Search." in prompt
    assert "Tools of the server beta:\n- beta__search(query?: string): Search." in prompt
    assert [len(tool.calls) for tool in tools] == [0, 1]
    assert response.response == "Tea."


async def test_a_name_that_two_servers_share_is_asked_for_again_with_both(tmp_path: Path) -> None:
    tools = [ForeignTool(f"{server}__search", {"query": TEXT}, about="Search.") for server in ("alpha", "beta")]
    model = script(
        plans({"tool": "search", "inputs": {"query": "tea"}}, JOIN, times=1),
        plans({"tool": "alpha__search", "inputs": {"query": "tea"}}, JOIN),
        says("Tea.", to="completion"),
    )
    async with engine_bench(tmp_path, model, tools=tools) as bench:
        await bench.run("search for tea")
        again = prompt_of(bench, 1)
    assert "search" in again.rpartition("That reply cannot be used:")[2]
    assert [len(tool.calls) for tool in tools] == [1, 0]


HUGE: dict[str, JsonObject] = {
    "many inputs": {f"field_{number:04}": TEXT for number in range(2_500)},
    "a long name": {"x" * 50_000: TEXT},
    "a long choice": {"kind": {"enum": ["y" * 5_000, *(f"{n} " * 500 for n in range(40))]}},
    "deeply nested": {"a": {"anyOf": [{"type": "array", "items": {"enum": ["z" * 50_000]}}, {"type": "null"}]}},
}


@pytest.mark.parametrize("properties", HUGE.values(), ids=HUGE.keys())
@pytest.mark.parametrize("all_required", [True, False])
async def test_a_schema_of_50_kilobytes_does_not_fill_the_prompt(
    tmp_path: Path, properties: JsonObject, *, all_required: bool
) -> None:
    huge = ForeignTool(
        "erp__book", {**properties, "to": TEXT}, required=[*properties, "to"] if all_required else ["to"]
    )
    assert len(json.dumps(huge.spec.input_schema)) > 20_000
    async with engine_bench(tmp_path, script(answers("Yes.")), tools=[huge]) as bench:
        await bench.run("book it with erp__book")
        prompt = prompt_of(bench)
    (line,) = (line for line in prompt.splitlines() if line.startswith("- erp__book("))
    assert len(line) < 2_500
    assert all_required or "to: string" in line, "required inputs are shown first"
    assert "- web_fetch(" in prompt


async def test_a_tool_with_a_huge_schema_can_be_planned_and_called(tmp_path: Path) -> None:
    huge = ForeignTool("erp__book", {**HUGE["many inputs"], "to": TEXT}, required=["to"])
    inputs = {"to": "Anna", "field_2400": "a later one"}
    model = script(plans({"tool": "erp__book", "inputs": inputs}, JOIN), says("Booked.", to="completion"))
    async with engine_bench(tmp_path, model, tools=[huge]) as bench:
        response = await bench.run("book it")
    assert (huge.calls, response.response) == ([inputs], "Booked.")


def test_one_huge_tool_takes_no_room_from_the_others_of_a_large_catalogue() -> None:
    huge = ForeignTool("aaa__book", HUGE["many inputs"], required=[*HUGE["many inputs"]]).spec
    view = Catalogue(tools=(huge, *load_specs())).show("book it with aaa__book")
    before = Catalogue(tools=load_specs()).show("book it with aaa__book")
    assert "aaa__book" in view.names
    assert len(view.names) > len(before.names) - 40
    assert len(view.text) < 30_000


async def test_names_in_other_scripts_are_planned_and_called(tmp_path: Path) -> None:
    tool = ForeignTool("weather__show", {"город": TEXT, "日付": TEXT}, required=["город"], about="Показывает погоду.")
    step = {"tool": "weather__show", "inputs": {"город": "Берген", "日付": "明日"}}
    odd = {**step, "id": "第1"}
    model = script(plans(odd, JOIN, times=1), plans(step, JOIN), says("Идёт дождь.", to="completion"))
    async with engine_bench(tmp_path, model, tools=[tool], translate="off") as bench:
        response = await bench.run("Какая погода будет завтра в Бергене?")
        prompt, again = prompt_of(bench), prompt_of(bench, 1)
    assert "an id is a letter and up to 31 letters, digits, - or _; use s1, s2" in again
    assert "- weather__show(город: string, 日付?: string): Показывает погоду." in prompt
    assert (tool.calls, response.response) == ([{"город": "Берген", "日付": "明日"}], "Идёт дождь.")


# Replies


def looks_for(query: str, **conditions: Any) -> Rule:
    return says(json.dumps({"kind": "find_tools", "query": query}), to="planner", **conditions)


@pytest.mark.parametrize("query", ["xylophone", "", "z" * 5_000, "\u200b", "天気"])
async def test_a_search_for_tools_that_finds_nothing_ends_with_an_answer(tmp_path: Path, query: str) -> None:
    tools = [ForeignTool(spec.name, {"x": TEXT}, about=spec.description) for spec in load_specs()]
    model = script(looks_for(query, times=1), answers("No tool here plays the xylophone."))
    async with engine_bench(tmp_path, model, tools=tools) as bench:
        response = await bench.run("Play the xylophone")
        purposes = bench.client.purposes()
    assert response.response == "No tool here plays the xylophone."
    assert purposes == ["planner", "planner"]


async def test_a_planner_that_searches_for_ever_is_told_and_then_left(tmp_path: Path) -> None:
    tools = [ForeignTool(spec.name, {"x": TEXT}, about=spec.description) for spec in load_specs()]
    model = script(looks_for("xylophone"), says("I found no tool for that.", to="completion"))
    async with engine_bench(tmp_path, model, tools=tools) as bench:
        response = await bench.run("Play the xylophone")
        purposes, last = bench.client.purposes(), prompt_of(bench, -1)
    assert purposes == ["planner", "planner", "planner", "completion"]
    assert "no further tools can be searched" in last
    assert response.response == "I found no tool for that."
    assert response.metadata["runtime"]["planner"]["fallback_used"] is True


async def test_a_search_for_tools_where_all_are_shown_is_refused(tmp_path: Path) -> None:
    async with engine_bench(tmp_path, script(looks_for("tea", times=1), answers("No."))) as bench:
        response = await bench.run("Make tea")
        last = prompt_of(bench, -1)
    assert "no further tools can be searched" in last
    assert response.response == "No."


@pytest.mark.parametrize("form", ["text", "json"])
async def test_a_planner_that_answers_and_plans_has_planned(tmp_path: Path, form: str) -> None:
    tool = ForeignTool("orders__list", {"x": TEXT})
    plan = json.loads(plans({"tool": "orders__list", "inputs": {"x": "all"}}, JOIN).reply.text)
    text = f"ANSWER\nThere are 3.\n{json.dumps(plan)}"
    both = json.dumps({"kind": "answer", "answer": "There are 3.", **plan})
    reply = text if form == "text" else both
    model = script(says(reply, to="planner"), says("As listed.", to="completion"))
    async with engine_bench(tmp_path, model, tools=[tool]) as bench:
        response = await bench.run("how many orders?")
    assert (len(tool.calls), response.response) == (1, "As listed.")


async def test_a_question_where_nobody_can_answer_ends_the_task_with_what_is_known(serve: Serve) -> None:
    """A planner that asks all the same is told so once; then the room's own rules carry the task out."""
    ask = says(json.dumps({"kind": "ask", "question": "Which month?"}), to="planner")
    model = script(ask, says("Nothing more is known.", to="completion"), says("{}"))
    async with serve(model) as url, httpx.AsyncClient(base_url=url, timeout=60) as http:
        created = (await http.post("/tasks", json={"prompt": "How many orders were there?"})).json()
        ran = (await http.post(f"/tasks/{created['task_id']}/run")).json()
        runs = (await http.get("/v1/runs", params={"limit": 5})).json()["data"]
    assert ran["status"] == "completed", ran
    assert {run["status"] for run in runs} == {"succeeded"}
    assert "Which month?" not in json.dumps(ran)


# Plans that are refused twice

UNMADE = "Nothing was changed, sent or saved."


async def test_a_run_whose_changes_were_never_planned_right_is_partial(
    tmp_path: Path, model_server: ScriptedServer
) -> None:
    """What the model says then is not known to be true, and it is told that nothing was called."""
    timer = returning("set_timer", "set", properties={"minutes": {"type": "integer"}}, annotations=EFFECT)
    wrong = {"tool": "set_timer", "inputs": {"minutes": "ten of them"}}
    rules = (plans(wrong, JOIN), says("The timer is set.", to="completion"))
    async with door_bench(tmp_path, model_server, *rules, tools=[timer], model_profile="capable") as door:
        answer = await door.ask("Start the timer")
        (asked,) = door.bodies("completion")
    assert timer.calls == []
    assert answer["metadata"]["status"] == "partial"
    assert UNMADE in answer["response"]
    told = str(asked["messages"][-1]["content"])
    assert '<failed tool="set_timer">\nnot called: the model gave no valid plan' in told


@pytest.mark.parametrize(
    ("effect", "beginning"),
    [
        (READ_ONLY, "It rains.\n\nThe model answered this from memory, without any tool."),
        (EFFECT, f"{UNMADE} The model wrote:\n\nIt rains."),
    ],
)
async def test_an_answer_after_refused_plans_says_what_it_is(
    tmp_path: Path, effect: ToolAnnotations, beginning: str
) -> None:
    tool = returning("look", "7", properties={"day": {"type": "integer"}}, annotations=effect)
    model = script(plans({"tool": "look", "inputs": {"day": "soon"}}, JOIN), says("It rains.", to="completion"))
    async with engine_bench(tmp_path, model, tools=[tool], model_profile="capable") as bench:
        response = await bench.run("Will it rain?")
    assert (tool.calls, response.metadata["status"]) == ([], "partial")
    assert response.response.startswith(beginning)


@pytest.mark.parametrize(
    "reply",
    [
        '{"steps": [{"tool": "send_email", "inputs": {"x": "hello"}}, {"tool": "completion"}]}',
        '{"steps": [{"tool": "send_mail", "inputs": {"x": "hel',
        '```json\n{"steps": [{"tool": "send_mail", "inputs": {"x": "hel',
        '{"steps": [{"tool": "completion"}, {"tool": "send_email"',
        '{"steps": [{"tool": ["a"], "inputs": {}}]}',
        '{"steps": [{"tool": null, "inputs": {"x": "hello"}}]}',
        '{"steps": [{"inputs": {"x": "hello"}}]}',
        '[{"tool": "gmail.send", "inputs": {"x": "hello"}}]',
    ],
)
@pytest.mark.parametrize("finish", ["stop", "length"])
async def test_a_plan_with_an_unknown_name_or_without_its_end_is_no_success(
    tmp_path: Path, reply: str, finish: str
) -> None:
    mail = returning("send_mail", "sent", annotations=EFFECT)
    model = script(says(reply, to="planner", finish_reason=finish), says("All done: sent.", to="completion"))
    async with engine_bench(tmp_path, model, tools=[mail], model_profile="capable") as bench:
        response = await bench.run("send hello")
    assert (mail.calls, response.metadata["status"]) == ([], "partial")
    assert UNMADE in response.response


async def test_after_a_refused_plan_a_right_one_is_carried_out(tmp_path: Path) -> None:
    tool = returning("look", "7", properties={"day": {"type": "integer"}}, annotations=EFFECT)
    model = script(
        plans({"tool": "look", "inputs": {"day": "soon"}}, JOIN, times=1),
        plans({"tool": "look", "inputs": {"day": "3"}}, JOIN),
        says("It rains.", to="completion"),
    )
    async with engine_bench(tmp_path, model, tools=[tool], model_profile="capable") as bench:
        response = await bench.run("Will it rain?")
    assert (tool.calls, response.metadata["status"]) == ([{"day": 3}], "complete")
    assert response.response == "It rains."


async def test_words_that_are_no_plan_leave_the_answer_as_it_is(tmp_path: Path) -> None:
    model = script(says('{"kind": "plan"', to="planner"), says("Blue.", to="completion"))
    async with engine_bench(tmp_path, model, model_profile="capable") as bench:
        response = await bench.run("Which colour has the sky?")
    assert (response.response, response.metadata["status"]) == ("Blue.", "complete")


async def test_a_list_that_is_written_as_one_text_is_sent_as_a_list(tmp_path: Path) -> None:
    names: JsonObject = {"type": "array", "items": {"type": "string"}}
    send = returning("send_mail", "sent", properties={"to": names}, annotations=EFFECT)
    model = script(
        plans({"tool": "send_mail", "inputs": {"to": "ann@example.org, bo@example.org"}}, JOIN),
        says("Sent.", to="completion"),
    )
    async with engine_bench(tmp_path, model, tools=[send], model_profile="capable") as bench:
        await bench.run("Mail ann@example.org and bo@example.org that the office is closed")
    assert send.calls == [{"to": ["ann@example.org", "bo@example.org"]}]
