"""What was seen to go wrong in planning, each as a run: routes, replies of small models, references, the last step.

Replies are scripted. The tests say what the gateway does with a reply, not how well any model plans.
"""

import json
from pathlib import Path
from typing import Any

import openai
import pytest

from agent.core.errors import ToolInputError
from agent.core.models import AgentRequest, Room
from agent.tools import READ_ONLY, ToolContext, ToolResult, ToolSpec
from tests.integration.conftest import Serve
from tests.integration.test_engine import write_skill
from tests.support.catalogues import load_specs
from tests.support.engine import Bench, engine_bench
from tests.support.script import Call, answers, judges, plans, says, script
from tests.support.scripted_server import ScriptedServer
from tests.support.tools import EFFECT, returning

JOIN = {"tool": "completion"}
AUTO = Room(id="test", supervision="auto")


class NamedTool:
    """A foreign tool that answers anything."""

    def __init__(self, spec: ToolSpec) -> None:
        self.spec = spec

    async def call(self, args: Any, context: ToolContext) -> ToolResult:
        """Return a word."""
        return ToolResult("done", "done")

    async def reconcile(self, key: str, context: ToolContext) -> ToolResult | None:
        """Nothing is known."""
        return None


def prompt_of(bench: Bench, purpose: str, number: int = 0) -> str:
    """The text of the n-th request of a purpose, system and user message together."""
    asked = [request["body"]["messages"] for request in bench.client.requests if request["purpose"] == purpose]
    return "\n".join(str(message["content"]) for message in asked[number])


# Routes


@pytest.mark.parametrize(
    ("request_text", "tool"),
    [
        ("Is it raining in Bergen?", "weather"),
        ("Which tickets are assigned to me?", "tickets"),
        ("Log that I was ill on Monday", "log_absence"),
        ("Regnar det i Bergen?", "weather"),
        ("Vilka ärenden är tilldelade mig?", "tickets"),
        ("Skriv upp att jag var sjuk i måndags", "log_absence"),
        ("Regnet es in Bergen?", "weather"),
        ("Quels tickets me sont attribués ?", "tickets"),
    ],
)
async def test_an_everyday_request_reaches_its_tool_also_without_translation(
    tmp_path: Path, request_text: str, tool: str
) -> None:
    """No word of a request decides whether the planner sees it, in any language."""
    fitting = returning(tool, "as it was asked", annotations=EFFECT if tool == "log_absence" else READ_ONLY)
    model = script(plans({"tool": tool, "inputs": {"x": "it"}}, JOIN), says("Gjort.", to="completion"))
    room = Room(id="test", approval="never")
    async with engine_bench(tmp_path, model, tools=[fitting], room=room, translate="off") as bench:
        response = await bench.run(request_text)
        purposes = bench.client.purposes()
    assert purposes == ["planner", "completion"]
    assert len(fitting.calls) == 1
    assert response.response == "Gjort."


async def test_swedish_requests_plan_over_http_with_translation_off(serve: Serve, model_server: ScriptedServer) -> None:
    model = script(
        plans({"tool": "calculator", "inputs": {"expression": "17.5*240"}}), says("Det blir 4 200.", to="completion")
    )
    async with serve(model, translate="off") as url:
        client = openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none")
        answer = await client.chat.completions.create(
            model="stepgate", messages=[{"role": "user", "content": "Hur mycket är sjutton och en halv gånger 240?"}]
        )
        await client.close()
        planner, completion = (request["body"]["messages"] for request in model_server.requests())
    assert answer.choices[0].message.content == "Det blir 4 200."
    assert "Write the answer in Swedish" in planner[1]["content"]
    assert "request, in Swedish," in completion[0]["content"]
    assert "17.5*240 = 4200" in completion[1]["content"]


@pytest.mark.parametrize(
    "request_text",
    ["How are you today?", "What is the capital of France?", "Book me a flight to the moon", "Say that more briefly"],
)
async def test_small_talk_a_plain_question_a_follow_up_and_the_impossible_cost_one_call(
    serve: Serve, model_server: ScriptedServer, request_text: str
) -> None:
    before = [{"role": "user", "content": "What is rain?"}, {"role": "assistant", "content": "Water that falls."}]
    history: Any = before if "briefly" in request_text else []
    async with serve(script(answers("Here you are."))) as url:
        client = openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none")
        answer = await client.chat.completions.create(
            model="stepgate", messages=[*history, {"role": "user", "content": request_text}]
        )
        await client.close()
        asked = model_server.requests()
    assert answer.choices[0].message.content == "Here you are."
    assert len(asked) == 1


async def test_a_follow_up_keeps_its_tools_and_is_understood_from_the_history(tmp_path: Path) -> None:
    model = script(
        plans({"tool": "calculator", "inputs": {"expression": "8*12*10"}}, about="10 users", times=1),
        plans({"tool": "calculator", "inputs": {"expression": "8*12*20"}}, about="20 users"),
    )
    async with engine_bench(tmp_path, model) as bench:
        await bench.run("A seat costs 8 a month. What are 10 users for a year?", conversation_id="c")
        second = await bench.run("And for 20 users for a year?", conversation_id="c")
        prompt = prompt_of(bench, "planner", -1)
    assert second.response == "8*12*20 = 1920"
    assert "A seat costs 8 a month" in prompt
    assert "assistant: 8*12*10 = 960" in prompt
    assert "- calculator(" in prompt


# Catalogue


async def test_nine_foreign_tools_push_no_own_tool_out_of_the_prompt(tmp_path: Path) -> None:
    foreign = [NamedTool(spec) for spec in load_specs() if spec.name.startswith("forge__")][:9]
    async with engine_bench(tmp_path, script(answers("Yes.")), tools=foreign) as bench:
        await bench.run("What is new?")
        prompt = prompt_of(bench, "planner")
    assert len(foreign) == 9
    shown = ["web_fetch", "read_file", "search_knowledge", "search_files", "calculator"]
    shown += [tool.spec.name for tool in foreign]
    assert [name for name in shown if f"- {name}(" not in prompt] == []
    assert "find_tools" not in prompt, "nothing was left out"


async def test_every_tool_of_a_large_catalogue_is_in_the_prompt_with_its_name(tmp_path: Path) -> None:
    foreign = [NamedTool(spec) for spec in load_specs()]
    async with engine_bench(tmp_path, script(answers("Yes.")), tools=foreign) as bench:
        await bench.run("What is new?")
        prompt = prompt_of(bench, "planner")
    assert '"kind": "find_tools"' in prompt
    assert "spelled out by find_tools" in prompt
    assert [tool.spec.name for tool in foreign if tool.spec.name.partition("__")[2] not in prompt] == []
    assert len(prompt) < 8_000 * 4


@pytest.mark.parametrize(
    "told",
    [
        "completion joins results into the answer. It takes no inputs",
        "none can serve it (then say plainly that you cannot)",
        "arrays and objects as JSON text",
        "write $s1 or $s1.output.field as a value, also inside a longer text",
        "let a skill or query_table do both: the calculator cannot read a text",
        "prefer the user's own data (files, collections, memory) to the web",
        "and the narrower tool to the wider",
    ],
)
async def test_the_planner_is_told_what_models_were_seen_not_to_know(tmp_path: Path, told: str) -> None:
    async with engine_bench(tmp_path, script(answers("Yes."))) as bench:
        await bench.run("What is new?")
        assert told in prompt_of(bench, "planner")


async def test_what_never_changes_stands_first_in_every_prompt(tmp_path: Path) -> None:
    """Providers cache prompts by their beginning."""
    model = script(plans({"tool": "current_time"}, JOIN), says("Noon.", to="completion"))
    async with engine_bench(tmp_path, model) as bench:
        await bench.run("What time is it?", conversation_id="a")
        await bench.run("And what is the date today?", conversation_id="b")
        planners = [one["body"]["messages"] for one in bench.client.requests if one["purpose"] == "planner"]
        writers = [one["body"]["messages"] for one in bench.client.requests if one["purpose"] == "completion"]
    for one, other in (planners, writers):
        assert one[0] == other[0], "the system message holds nothing of the request"
        assert one[1] != other[1]
    assert "And what is the date today?" not in planners[1][0]["content"]


# Replies of small models

STEP = {"id": "s1", "tool": "orders", "inputs": [{"name": "x", "value": "May"}], "depends_on": [], "intent": "look"}
PLAN = {"kind": "plan", "reasoning": "r", "goal": "g", "language": "en", "answer_tier": "fast", "steps": [STEP]}
OTHER_WORDS = {
    "plan": {
        "steps": [{"step_id": 1, "action": "tool", "name": "Orders", "arguments": {"x": "May"}, "purpose": "look"}]
    }
}
WRITTEN = {
    "prose around it": f"Sure! Here is my plan:\n{json.dumps(PLAN)}\nLet me know.",
    "a code fence": f"```json\n{json.dumps(PLAN, indent=2)}\n```",
    "thinking before it": f"<think>maybe {{}} or not</think>{json.dumps(PLAN)}",
    "other field names": json.dumps(OTHER_WORDS),
    "a bare list": json.dumps([STEP]),
    "a trailing comma": json.dumps(PLAN)[:-2] + ",]}",
    "Python's words": json.dumps(PLAN).replace('"answer_tier": "fast"', '"answer_tier": None'),
    "a number as id": json.dumps({**PLAN, "steps": [{**STEP, "id": 1}]}),
}


@pytest.mark.parametrize("reply", WRITTEN.values(), ids=WRITTEN.keys())
async def test_a_plan_that_is_only_written_otherwise_costs_no_second_call(tmp_path: Path, reply: str) -> None:
    orders = returning("orders", "17 orders")
    model = script(says(reply, to="planner"), says("17 orders in May.", to="completion"))
    async with engine_bench(tmp_path, model, tools=[orders], room=AUTO) as bench:
        response = await bench.run("how many orders in May?")
        purposes = bench.client.purposes()
    assert purposes == ["planner", "completion"]
    assert (orders.calls, response.response) == ([{"x": "May"}], "17 orders in May.")


DAMAGED = {
    "cut off": says(json.dumps(PLAN)[:120], to="planner", times=1, finish_reason="length"),
    "a bracket missing": says(json.dumps(PLAN)[:-2], to="planner", times=1),
    "a value that swallowed a step": says(
        json.dumps(PLAN).replace('"value": "May"', '"value": "May"}, {"name": "y": "June"'), to="planner", times=1
    ),
    "a key written twice": says(
        json.dumps(PLAN).replace('"id": "s1"', '"id": "s0", "id": "s1"'), to="planner", times=1
    ),
    "a tool that is not there": plans({"tool": "delete_everything", "inputs": {"x": "May"}}, times=1),
    "an argument of the wrong kind": plans({"tool": "orders", "inputs": {"x": "May"}, "depends_on": ["s9"]}, times=1),
    "a circle": plans(
        {"tool": "orders", "inputs": {"x": "a"}, "depends_on": ["s2"]},
        {"tool": "orders", "inputs": {"x": "b"}, "depends_on": ["s1"]},
        times=1,
    ),
    "thirteen steps": plans(*({"tool": "orders", "inputs": {"x": str(n)}} for n in range(13)), times=1),
}


@pytest.mark.parametrize("damaged", DAMAGED.values(), ids=DAMAGED.keys())
async def test_a_damaged_plan_is_asked_for_once_more_and_nothing_of_it_is_done(tmp_path: Path, damaged: Any) -> None:
    orders = returning("orders", "17 orders")
    model = script(
        damaged, plans({"tool": "orders", "inputs": {"x": "May"}}, JOIN), says("17 orders in May.", to="completion")
    )
    async with engine_bench(tmp_path, model, tools=[orders], room=AUTO) as bench:
        response = await bench.run("how many orders in May?")
        purposes, again = bench.client.purposes(), prompt_of(bench, "planner", 1)
    assert purposes == ["planner", "planner", "completion"]
    assert "That reply cannot be used:\n<problems>\n- " in again
    assert (orders.calls, response.response) == ([{"x": "May"}], "17 orders in May.")


async def test_two_unusable_plans_end_with_the_rules_and_the_reason(tmp_path: Path) -> None:
    model = script(plans({"tool": "delete_everything"}), says("I cannot.", to="completion"))
    async with engine_bench(tmp_path, model) as bench:
        response = await bench.run("tidy up")
        purposes = bench.client.purposes()
    assert purposes == ["planner", "planner", "completion"]
    planner = response.metadata["runtime"]["planner"]
    assert (planner["effective"], planner["fallback_used"]) == ("rules", True)
    assert "delete_everything" in planner["fallback_reason"]


# References


async def test_five_dollars_are_money_and_a_reference_inside_a_text_is_filled(tmp_path: Path) -> None:
    orders, note = returning("orders", "17"), returning("note", "noted", annotations=EFFECT)
    model = script(
        plans(
            {"tool": "orders", "inputs": {"x": "May"}},
            {"tool": "note", "inputs": {"x": "$s1 orders at $5 each, ${s1} in all; $HOME stays"}},
        ),
        says("Noted.", to="completion"),
    )
    room = Room(id="test", approval="never")
    async with engine_bench(tmp_path, model, tools=[orders, note], room=room) as bench:
        await bench.run("note the orders")
    assert note.calls == [{"x": "17 orders at $5 each, 17 in all; $HOME stays"}]


async def test_a_spliced_result_is_capped_for_a_skill_and_for_the_judge(tmp_path: Path) -> None:
    long = "word " * 10_000
    write_skill(tmp_path / "skills", "shorten")
    model = script(
        plans({"tool": "pages", "inputs": {"x": "all"}}, {"tool": "shorten", "inputs": {"task": "shorten this: $s1"}}),
        judges("SUCCESS"),
        says("Short.", to="skill"),
    )
    room = Room(id="test", supervision="always")
    pages = returning("pages", long)
    async with engine_bench(
        tmp_path / "d", model, tools=[pages], skill_roots=[tmp_path / "skills"], room=room
    ) as bench:
        await bench.run("shorten my pages")
        skill, judge = prompt_of(bench, "skill"), prompt_of(bench, "supervisor", 0)
    assert 7_000 < len(skill) < 12_000
    assert len(judge) < 6_000
    assert "[cut" in skill
    assert "[cut" in judge


# Verdicts


@pytest.mark.parametrize(
    ("result", "answer"),
    [
        ("864", "The total is 864.00."),
        ("864.00", "The total is 864."),
        ("the exact rate is 63.3224", "The rate is 63.32."),
        ("balance -12.58", "You owe 12.58."),
        ("12.58", "It is -12.58."),
        ("due 2026-10-09", "It is due on 9 October."),
        ("item,units,price\nchair,151,2870\ntable,7,12", "There are 151 chairs at 2870."),
        ("item,units,price\nchair,151,2870\ntable,7,12", "| item | units |\n| --- | --- |\n| chair | 151 |"),
        ("1234567", "That is 1,234,567."),
        ("a share of 0.125", "That is 12.5 %."),
        ("line one\nline two\nline three", "See lines 1-3."),
        ("four seats", "For your 520 guests, four seats are not enough."),
    ],
)
async def test_a_good_result_is_not_doubted_and_costs_no_further_call(tmp_path: Path, result: str, answer: str) -> None:
    """Each cost a call of the judge, and most a new plan."""
    model = script(plans({"tool": "lookup", "inputs": {"x": "it"}}, JOIN), says(answer, to="completion"))
    async with engine_bench(tmp_path, model, tools=[returning("lookup", result)], room=AUTO) as bench:
        response = await bench.run("Look it up for my 520 guests")
        purposes = bench.client.purposes()
    assert purposes == ["planner", "completion"]
    assert (response.response, response.metadata["status"]) == (answer, "complete")
    assert response.metadata["uncertainties"] == []


async def test_the_same_output_after_a_retry_may_be_right(tmp_path: Path) -> None:
    model = script(
        plans({"tool": "lookup", "inputs": {"x": "it"}}, JOIN),
        judges("RETRY", "look more closely", times=1),
        judges("SUCCESS"),
        says("151 chairs.", to="completion"),
    )
    tool = returning("lookup", "151 chairs")
    room = Room(id="test", supervision="always")
    async with engine_bench(tmp_path, model, tools=[tool], room=room) as bench:
        response = await bench.run("How many chairs?")
        purposes = bench.client.purposes()
    assert purposes == ["planner", "supervisor", "supervisor", "completion", "supervisor"], "no new plan"
    assert (response.response, response.metadata["status"]) == ("151 chairs.", "complete")


async def test_a_planner_that_repeats_what_failed_for_good_is_not_asked_again(tmp_path: Path) -> None:
    broken = returning("orders", ToolInputError("there is no month 13"))
    model = script(plans({"tool": "orders", "inputs": {"x": "13"}}, JOIN))
    async with engine_bench(tmp_path, model, tools=[broken], room=AUTO) as bench:
        response = await bench.run("how many orders in month 13?")
        purposes = bench.client.purposes()
    assert purposes == ["planner", "planner"]
    assert len(broken.calls) == 1
    assert response.metadata["status"] == "partial"
    assert response.response.count("there is no month 13") == 1
    assert "(s" not in response.response, "people are not shown the ids of steps"


async def test_what_a_person_did_not_allow_ends_with_that_and_without_further_plans(tmp_path: Path) -> None:
    send = returning("send", "sent", annotations=EFFECT)
    found = returning("find", "bob@example.org", tainted=True)
    model = script(
        plans({"tool": "find", "inputs": {"x": "Bob"}}, {"tool": "send", "inputs": {"x": "$s1"}}, JOIN, times=1),
        plans({"tool": "send", "inputs": {"x": "bob@example.org"}}, JOIN),
    )
    async with engine_bench(tmp_path, model, tools=[send, found], room=AUTO) as bench:
        run_id = await bench.service.start_run(AgentRequest(prompt="write to Bob"))
        asked = await bench.service.wait_for_response(run_id)
        decisions = 0
        while asked.metadata["status"] == "awaiting_approval":
            decisions += 1
            decided = await bench.service.submit_decision(run_id, "reject", reason="not him")
            asked = await bench.service.wait_for_response(run_id, seen_seq=decided.last_seq)
        purposes = bench.client.purposes()
    assert send.calls == []
    assert purposes.count("planner") <= 2
    assert "not him" in asked.response


# The last step


@pytest.mark.parametrize(
    ("step", "answer"),
    [
        ({"tool": "memory_save", "inputs": {"text": "tea is at four"}}, "Remembered: tea is at four"),
        ({"tool": "calculator", "inputs": {"expression": "85/2"}}, "85/2 = 42.5"),
    ],
)
async def test_one_result_that_explains_itself_is_the_answer(tmp_path: Path, step: Any, answer: str) -> None:
    async with engine_bench(tmp_path, script(plans(step))) as bench:
        response = await bench.run("Do it, please")
        purposes = bench.client.purposes()
    assert (purposes, response.response) == (["planner"], answer)


@pytest.mark.parametrize(
    "changes",
    [
        {"room": Room(id="test", persona="You are a pirate.")},
        {"room": Room(id="test", citations=True)},
        {"request": {"options": {"response_format": {"type": "json_object"}}}},
        {"question": "Hur mycket är åttiofem delat med två, är du snäll?", "translate": "off"},
    ],
    ids=["persona", "citations", "response_format", "another language"],
)
async def test_it_is_written_where_a_form_is_due(tmp_path: Path, changes: dict[str, Any]) -> None:
    request, question = changes.pop("request", {}), changes.pop("question", "What is half of 85, please?")
    model = script(
        plans({"tool": "calculator", "inputs": {"expression": "85/2"}}), says('{"half": 42.5}', to="completion")
    )
    async with engine_bench(tmp_path, model, **changes) as bench:
        response = await bench.run(question, **request)
        purposes = bench.client.purposes()
    assert purposes[:2] == ["planner", "completion"]
    assert response.response.startswith('{"half": 42.5}')


async def test_the_writer_sees_request_intent_inputs_results_and_what_failed(tmp_path: Path) -> None:
    model = script(
        plans(
            {"tool": "orders", "inputs": {"x": "May"}, "intent": "count the orders of May"},
            {"tool": "broken", "inputs": {"x": "June"}, "intent": "count those of June"},
            JOIN,
            times=1,
        ),
        plans(JOIN),
        says("17 in May; June is not known.", to="completion"),
    )
    tools = [returning("orders", "17 orders"), returning("broken", RuntimeError("the disk is full"))]
    async with engine_bench(tmp_path, model, tools=tools, room=Room(id="test", supervision="checks")) as bench:
        await bench.run("How many orders in May and June?")
        prompt = prompt_of(bench, "completion")
    assert "<user_request>\nHow many orders in May and June?\n</user_request>" in prompt
    assert 'tool="orders" intent="count the orders of May" input="x: May">\n17 orders' in prompt
    assert 'intent="count those of June"' in prompt
    assert "the disk is full" in prompt


@pytest.mark.parametrize("writer", ["completion", "skill"])
async def test_a_high_answer_tier_holds_wherever_the_answer_is_written(tmp_path: Path, writer: str) -> None:
    write_skill(tmp_path / "skills", "compose", "calculator")
    steps: list[dict[str, Any]] = [{"tool": "compose", "inputs": {"task": "write it"}}]
    steps += [JOIN] if writer == "completion" else []
    model = script(plans(*steps, tier="high"), says("Written.", to="skill"), says("Written.", to="completion"))
    async with engine_bench(tmp_path / "d", model, skill_roots=[tmp_path / "skills"]) as bench:
        await bench.run("Write something careful")
        models = {request["purpose"]: request["body"]["model"] for request in bench.client.requests}
    assert models[writer] == "large"
    assert models["planner"] == "small"
    assert writer == "skill" or models["skill"] == "small", "what is not the answer needs no large model"


# Traps


@pytest.mark.parametrize("purpose", ["planner", "supervisor", "skill", "completion"])
async def test_no_word_of_a_user_stands_in_a_system_message(tmp_path: Path, purpose: str) -> None:
    write_skill(tmp_path / "skills", "compose", "lookup")
    model = script(
        plans({"tool": "compose", "inputs": {"task": "zebra crossing"}, "intent": "zebra"}, JOIN),
        says(to="skill", times=1, calls=(Call("lookup", {"x": "zebra"}),)),
        says("A zebra.", to="skill"),
        judges("SUCCESS"),
        says("A zebra.", to="completion"),
    )
    room = Room(id="test", supervision="always")
    tools = [returning("lookup", "zebras are striped")]
    async with engine_bench(tmp_path / "d", model, tools=tools, skill_roots=[tmp_path / "skills"], room=room) as bench:
        await bench.run("What is a zebra?", conversation_id="c")
        await bench.run("And its zebra foal?", conversation_id="c")
        asked = [one["body"]["messages"] for one in bench.client.requests if one["purpose"] == purpose]
    assert len(asked) >= 2
    assert [messages[0]["role"] for messages in asked] == ["system"] * len(asked)
    assert [messages for messages in asked if "zebra" in messages[0]["content"]] == []
    assert all("zebra" in str(messages[1:]) for messages in asked)


async def test_nothing_is_streamed_where_no_stream_was_asked_for(serve: Serve) -> None:
    model = script(plans({"tool": "current_time"}, JOIN), says("It is noon. " * 20, to="completion"))
    async with serve(model) as url:
        client = openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none")
        for stream in (False, True):
            raw = await client.chat.completions.with_raw_response.create(
                model="stepgate", messages=[{"role": "user", "content": "What time is it?"}], stream=stream
            )
            wanted = "text/event-stream" if stream else "application/json"
            assert raw.headers["content-type"].startswith(wanted)
        await client.close()
