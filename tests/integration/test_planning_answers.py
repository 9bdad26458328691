"""Answers in their due form: JSON, Markdown without a fence, clean files; and searches of one place only."""

import json
from pathlib import Path
from typing import Any

import openai
import pytest

from agent.core.models import Room, Source
from agent.tools import READ_ONLY, ToolContext, ToolResult
from tests.integration.conftest import Serve
from tests.integration.test_engine import write_skill
from tests.support.engine import engine_bench
from tests.support.script import Call, answers, plans, says, script
from tests.support.scripted_server import ScriptedServer
from tests.support.tools import EFFECT, FunctionTool, returning

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "people": {"type": "integer"}},
    "required": ["city", "people"],
    "additionalProperties": False,
}
FORM: Any = {
    "type": "json_schema",
    "json_schema": {"name": "city", "strict": True, "schema": SCHEMA},
}
GOOD = '{"city": "Oslo", "people": 700000}'
LOOK_UP = plans({"tool": "lookup", "inputs": {"x": "Oslo"}}, {"tool": "completion"})
OSLO = "Oslo has 700000 people."
TABLE = "| item | price |\n| --- | --- |\n| tea | 4 |"


async def ask_for_json(folder: Path, *replies: str, form: dict[str, Any] = FORM) -> tuple[Any, list[str], list[Any]]:
    """The response, the purposes of the model's calls, and the completion's requests."""
    model = script(LOOK_UP, *(says(reply, to="completion", times=1) for reply in replies))
    async with engine_bench(folder, model, tools=[returning("lookup", OSLO)]) as bench:
        response = await bench.run("How many people live in Oslo?", options={"response_format": form})
        asked = [one["body"]["messages"] for one in bench.client.requests if one["purpose"] == "completion"]
        return response, bench.client.purposes(), asked


@pytest.mark.parametrize(
    "reply",
    [GOOD, f"```json\n{GOOD}\n```", f"```\n{GOOD}\n```", f"Here it is:\n{GOOD}\nIs that right?", f"\n\n{GOOD}\n"],
    ids=["plain", "fenced", "in a bare fence", "in prose", "with blank lines"],
)
async def test_json_is_freed_of_fences_and_prose(tmp_path: Path, reply: str) -> None:
    response, purposes, _ = await ask_for_json(tmp_path, reply)
    assert (response.response, response.metadata["status"]) == (GOOD, "complete")
    assert purposes == ["planner", "completion"]


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        ('{"city": "Oslo"}', "'people' is a required property"),
        ('{"city": "Oslo", "people": "many"}', "people: 'many' is not of type 'integer'"),
        ("Oslo has 700000 people.", "it is not JSON"),
        ('{"city": "Oslo", "people": 700000', "it is not JSON"),
    ],
)
async def test_json_that_does_not_fit_is_asked_for_once_more_with_the_problem(
    tmp_path: Path, reply: str, problem: str
) -> None:
    response, purposes, asked = await ask_for_json(tmp_path, reply, f"```json\n{GOOD}\n```")
    assert (response.response, response.metadata["status"]) == (GOOD, "complete")
    assert purposes == ["planner", "completion", "completion"]
    assert problem in asked[1][-1]["content"]
    assert response.metadata["uncertainties"] == []


async def test_json_that_never_fits_is_partial_and_says_why(tmp_path: Path) -> None:
    response, purposes, _ = await ask_for_json(tmp_path, '{"city": "Oslo"}', '{"city": "Oslo"}')
    assert (response.response, response.metadata["status"]) == ('{"city": "Oslo"}', "partial")
    assert purposes == ["planner", "completion", "completion"], "twice, and no new plan"
    (doubt,) = response.metadata["uncertainties"]
    assert doubt["level"] == "notable"
    assert "not in the form that the request asks for: the whole: 'people' is a required property" in doubt["message"]


async def test_any_json_object_will_do_where_no_schema_is_named(tmp_path: Path) -> None:
    response, purposes, _ = await ask_for_json(tmp_path, "[1]", '{"a": 1}', form={"type": "json_object"})
    assert response.response == '{"a": 1}'
    assert purposes == ["planner", "completion", "completion"]


async def test_a_client_of_a_stream_never_sees_json_that_was_not_checked(
    serve: Serve, model_server: ScriptedServer
) -> None:
    sum_up = plans({"tool": "calculator", "inputs": {"expression": "350000*2"}}, {"tool": "completion"})
    bad = says('```json\n{"city": "Oslo", "people": "350000*2"}\n```', to="completion", times=1)
    async with serve(script(sum_up, bad, says(f"```json\n{GOOD}\n```", to="completion"))) as url:
        client = openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none")
        stream = await client.chat.completions.create(
            model="stepgate",
            messages=[{"role": "user", "content": "How many people live in both halves of Oslo?"}],
            response_format=FORM,
            stream=True,
        )
        text = "".join([chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices])
        await client.close()
    assert text == GOOD


async def test_json_has_no_rule_of_citations_and_an_answer_keeps_them_out_of_drafts(tmp_path: Path) -> None:
    page = SourcedTool("page", "Oslo has 700000 people [1].")
    plan = plans({"tool": "page", "inputs": {"x": "Oslo"}}, {"tool": "completion"})
    async with engine_bench(tmp_path, script(plan, says(GOOD, to="completion")), tools=[page]) as bench:
        await bench.run("How many people live in Oslo?", options={"response_format": FORM})
        await bench.run("Draft a mail about Oslo")
        formed, free = (
            one["body"]["messages"][0]["content"] for one in bench.client.requests if one["purpose"] == "completion"
        )
    assert "Cite sources" not in formed
    assert "Cite sources as [n]" in free
    assert "put no [n] into a text that is to be used elsewhere, such as a mail" in free


class SourcedTool(FunctionTool):
    """A tool whose text cites its source as [1]."""

    def __init__(self, name: str, text: str) -> None:
        async def work(_: Any) -> str:
            return text

        super().__init__(name, work, annotations=READ_ONLY)

    async def call(self, args: Any, context: ToolContext) -> ToolResult:
        """Return the text and its source."""
        result = await super().call(args, context)
        source = Source(id=1, name="handbook.pdf", quotes=(result.text,))
        return ToolResult(result.value, result.text, sources=(source,))


@pytest.mark.parametrize("by", ["tool", "skill"])
async def test_what_goes_into_a_file_carries_no_citation_marks(tmp_path: Path, by: str) -> None:
    """Only marks of sources are removed: a [2] that has none is part of the text."""
    page = SourcedTool("page", "Oslo has 700000 people [1], see step [2].")
    write = returning("write_file", "written", annotations=EFFECT)
    write_skill(tmp_path / "skills", "digest", "page")
    first = {"tool": "page", "inputs": {"x": "Oslo"}} if by == "tool" else {"tool": "digest", "inputs": {"task": "it"}}
    model = script(
        plans(first, {"tool": "write_file", "inputs": {"x": "$s1"}}, {"tool": "completion"}),
        says(to="skill", times=1, calls=(Call("page", {"x": "Oslo"}),)),
        says("Oslo has 700000 people [1], see step [2].", to="skill"),
        says("Written.", to="completion"),
    )
    room = Room(id="test", approval="never")
    async with engine_bench(
        tmp_path / "d", model, tools=[page, write], skill_roots=[tmp_path / "skills"], room=room
    ) as bench:
        await bench.run("write the page into a file")
    assert write.calls == [{"x": "Oslo has 700000 people, see step [2]."}]


# Markdown


@pytest.mark.parametrize("by", ["completion", "planner", "skill"])
async def test_a_fence_around_a_markdown_answer_is_removed(
    serve: Serve, model_server: ScriptedServer, tmp_path: Path, by: str
) -> None:
    fenced = f"```markdown\n{TABLE}\n```"
    rules = {
        "completion": (
            plans({"tool": "current_time"}, {"tool": "completion"}),
            says(fenced, to="completion", chunk=3, pause_s=0.01),
        ),
        "planner": (answers(fenced, chunk=3, pause_s=0.01),),
        "skill": (plans({"tool": "calculate", "inputs": {"task": "a table"}}), says(fenced, to="skill", chunk=3)),
    }
    async with serve(script(*rules[by])) as url:
        client = openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none")
        message: Any = [{"role": "user", "content": "Show the prices as a table"}]
        whole = await client.chat.completions.create(model="stepgate", messages=message)
        stream = await client.chat.completions.create(model="stepgate", messages=message, stream=True)
        pieces = [chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices]
        await client.close()
    assert (whole.choices[0].message.content or "").rstrip("\n") == TABLE
    assert "".join(pieces).rstrip("\n") == TABLE
    assert by == "skill" or len([piece for piece in pieces if piece]) > 3, "it was streamed"


async def test_code_stays_in_its_fence_and_a_room_without_plan_changes_nothing(tmp_path: Path) -> None:
    code = "```python\nprint(1)\n```"
    async with engine_bench(tmp_path, script(answers(code), says(f"```md\n{TABLE}\n```", to="completion"))) as bench:
        planned = await bench.run("Show me a program")
        plain = await bench.run("Show me the source of a table", room="plain")
    assert planned.response == code
    assert plain.response == f"```md\n{TABLE}\n```"


async def test_figures_of_a_translation_follow_the_rules_of_its_language(tmp_path: Path) -> None:
    model = script(
        says("What does it cost?", to="translator", times=1),
        answers("It costs 4,000."),
        says("Det kostar 4 000.", to="translator"),
    )
    async with engine_bench(tmp_path, model) as bench:
        response = await bench.run("Vad kostar egentligen den här maskinen hos oss?")
        asked = [one["body"]["messages"][0]["content"] for one in bench.client.requests]
    assert response.response == "Det kostar 4 000."
    assert "the value of every figure" in asked[-1]
    assert "decimal and thousands separators" in asked[-1]


# Searches that looked in one place only


def searches(tool: str, query: str = "launch") -> dict[str, Any]:
    return {"tool": tool, "inputs": {"query": query}}


async def with_files_and_documents(bench: Any, folder: Path) -> None:
    """A collection that says nothing of the launch."""
    (folder / "handbook.txt").write_text("Vacations are 25 days.\n", "utf-8")
    await bench.library.ingest("local", "handbook", folder / "handbook.txt")


async def test_what_one_source_does_not_hold_is_looked_for_in_the_other_before_the_user_hears_of_nothing(
    tmp_path: Path,
) -> None:
    files = tmp_path / "files"
    files.mkdir()
    (files / "notes.txt").write_text("The launch of the mobile app moves to May.\n", "utf-8")
    model = script(
        plans(searches("search_knowledge", "xylophone"), {"tool": "completion"}, times=1),
        plans(searches("search_files"), {"tool": "completion"}),
        says("It moves to May.", to="completion"),
    )
    async with engine_bench(tmp_path / "d", model, file_roots=(files,)) as bench:
        await with_files_and_documents(bench, tmp_path)
        response = await bench.run("When is the launch?")
        purposes = bench.client.purposes()
        again = bench.client.requests[1]["body"]["messages"][1]["content"]
    assert purposes == ["planner", "planner", "completion"]
    assert "other sources were not asked: the user's files (search_files)" in again
    assert (response.response, response.metadata["status"]) == ("It moves to May.", "complete")


async def test_the_planner_may_find_that_no_other_source_fits_and_it_is_asked_once(tmp_path: Path) -> None:
    files = tmp_path / "files"
    files.mkdir()
    (files / "notes.txt").write_text("Nothing of it.\n", "utf-8")
    model = script(
        plans(searches("search_knowledge", "xylophone"), {"tool": "completion"}, times=1),
        says(json.dumps({"kind": "plan", "answer_tier": "fast", "steps": []}), to="planner"),
        says("The documents say nothing of it.", to="completion"),
    )
    async with engine_bench(tmp_path / "d", model, file_roots=(files,)) as bench:
        await with_files_and_documents(bench, tmp_path)
        response = await bench.run("When is the launch?")
        purposes = bench.client.purposes()
    assert purposes == ["planner", "planner", "completion"]
    assert response.response == "The documents say nothing of it."


@pytest.mark.parametrize("why", ["no files", "both asked", "a list of another tool"])
async def test_finding_nothing_is_an_answer_where_there_is_nowhere_else_to_look(tmp_path: Path, why: str) -> None:
    files = tmp_path / "files"
    files.mkdir()
    if why != "no files":
        (files / "notes.txt").write_text("Nothing of it.\n", "utf-8")
    steps = {
        "no files": [searches("search_knowledge", "xylophone")],
        "both asked": [searches("search_knowledge", "xylophone"), searches("search_files", "xylophone")],
        "a list of another tool": [{"tool": "tickets", "inputs": {"x": "mine"}}],
    }[why]
    model = script(plans(*steps, {"tool": "completion"}), says("There is nothing.", to="completion"))
    tickets = returning("tickets", {"tickets": []})
    async with engine_bench(tmp_path / "d", model, file_roots=(files,), tools=[tickets]) as bench:
        await with_files_and_documents(bench, tmp_path)
        response = await bench.run("When is the launch?")
        purposes = bench.client.purposes()
    assert purposes == ["planner", "completion"]
    assert (response.response, response.metadata["status"]) == ("There is nothing.", "complete")
