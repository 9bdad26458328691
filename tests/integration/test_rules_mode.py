"""Without a model: every example of the help works, whole requests are understood or nothing is done."""

import re
from pathlib import Path

import pytest

from agent.answers.answer_without_model import list_examples
from agent.core.models import Room
from agent.planning.rules import find_tool_calls
from agent.runs.rooms import load_rooms
from gateway.packaged_files import PACKAGE_ROOT
from tests.support.engine import Bench, engine_bench

WORKS_WITH = {
    "search_knowledge": "The warranty lasts five years.",
    "current_time": "Stockholm",
    "calculator": "4200",
    "memory_save": "Remembered: my favourite colour is green",
    "memory_search": "my favourite colour is green",
    "list_files": "notes.txt",
    "search_files": "the invoice of May",
    "read_file": "the invoice of May",
}


def default_room() -> Room:
    """The room that a gateway without any settings offers."""
    return load_rooms(PACKAGE_ROOT / "config" / "rooms", default="stepgate").get("stepgate", None)


async def shown_examples(bench: Bench) -> list[str]:
    """The requests that the help of the room names."""
    response = await bench.run("Who wrote Hamlet?")
    return re.findall(r": `([^`]+)`", response.response)


async def test_every_example_of_the_default_rooms_help_works(tmp_path: Path) -> None:
    files = tmp_path / "files"
    files.mkdir()
    (files / "notes.txt").write_text("the invoice of May\n", "utf-8")
    (tmp_path / "terms.txt").write_text("The warranty lasts five years.\n", "utf-8")
    room = default_room()
    async with engine_bench(tmp_path / "data", None, room=room, file_roots=(files,)) as bench:
        await bench.library.ingest("local", "terms", tmp_path / "terms.txt")
        examples = await shown_examples(bench)
        told = {example: (await bench.run(example)).response for example in examples if "https://" not in example}
        page = find_tool_calls("fetch https://example.org", bench.engine.registry.list_specs())
    assert [(call.tool, call.args) for call in page] == [("web_fetch", {"url": "https://example.org"})]
    assert len(examples) >= 6
    for tool, expected in WORKS_WITH.items():
        for example in list_examples([bench.engine.registry.get(tool).spec]):
            if example.text in told:
                assert expected.lower() in told[example.text].lower(), example
    assert not [example for example, text in told.items() if "did not understand" in text]


@pytest.mark.parametrize(
    ("request_text", "part"),
    [
        ("3 + 4 and then multiply by 5", "multiply by 5"),
        ("what day is it tomorrow?", "what day is it tomorrow?"),
        ("Log that I was ill on Monday", "Log that I was ill on Monday"),
        ("What does report-2026-11-20.txt say?", "What does report-2026-11-20.txt say?"),
    ],
)
async def test_what_is_not_understood_as_a_whole_is_told_and_not_done(
    tmp_path: Path, request_text: str, part: str
) -> None:
    async with engine_bench(tmp_path, None) as bench:
        response = await bench.run(request_text)
    assert f"I did not understand: {part!r}. Nothing was done." in response.response
    assert response.metadata["status"] == "partial", "what is not done has not succeeded"
    assert response.metadata["tool_results"] == []


async def test_a_studio_names_the_commands_and_has_no_empty_list(tmp_path: Path) -> None:
    studio = load_rooms(PACKAGE_ROOT / "config" / "rooms", default="stepgate").get("studio", None)
    async with engine_bench(tmp_path, None, room=studio) as bench:
        response = await bench.run("make me a room")
    assert "`stepgate rooms list|show|create" in response.response
    assert "What works now" not in response.response


async def test_what_was_remembered_answers_a_later_question(tmp_path: Path) -> None:
    async with engine_bench(tmp_path, None) as bench:
        await bench.run("Remember that my favourite colour is teal")
        response = await bench.run("What is my favourite colour?")
        unknown = [await bench.run(f"What is my {thing}?") for thing in ("shoe size", "favourite animal")]
    assert "my favourite colour is teal" in response.response
    assert [result["tool"] for result in response.metadata["tool_results"]] == ["memory_search"]
    assert [one.response for one in unknown] == ["Nothing is remembered about that."] * 2


@pytest.mark.parametrize("request_text", ["What do you remember?", "what do you know about me?", "Vad minns du?"])
async def test_what_is_remembered_is_listed(tmp_path: Path, request_text: str) -> None:
    async with engine_bench(tmp_path, None) as bench:
        nothing = await bench.run(request_text)
        await bench.run("Remember that my favourite colour is teal")
        await bench.run("Remember that the boat leaves at noon")
        response = await bench.run(request_text)
    assert nothing.response == "Nothing is remembered yet."
    assert set(response.response.splitlines()) == {"- my favourite colour is teal", "- the boat leaves at noon"}


async def test_commands_load_and_store_the_conversation_as_every_request_does(tmp_path: Path) -> None:
    async with engine_bench(tmp_path, None) as bench:
        response = await bench.run("2+2*3", conversation_id="c")
        turns = await bench.store.conversations.list_turns("local", "c")
    assert (response.response, response.metadata["runtime"]["route"]) == ("2+2*3 = 8", "plan")
    assert turns == [("user", "2+2*3"), ("assistant", "2+2*3 = 8")]


async def test_several_commands_are_all_carried_out(tmp_path: Path) -> None:
    async with engine_bench(tmp_path, None) as bench:
        response = await bench.run("What is 6*7, and what time is it in Stockholm?")
    assert "42" in response.response
    assert "Stockholm" in response.response


async def test_a_skill_that_is_called_by_its_name_does_what_the_rules_understand(tmp_path: Path) -> None:
    async with engine_bench(tmp_path, None) as bench:
        done = await bench.run("/calculate what is 17 * 3?")
        half = await bench.run("/calculate 17 * 3 and tell me whether that is much")
    assert "17 * 3 = 51" in done.response
    assert half.metadata["tool_results"] == []
    assert "no rule of skill 'calculate' fits this task" in half.response


async def test_an_unknown_command_is_asked_back_in_one_line_with_the_nearest_names(tmp_path: Path) -> None:
    async with engine_bench(tmp_path / "data", None, room=default_room()) as bench:
        typo = await bench.run("/tols")
        other = await bench.run("/xyzzy everything")
        listed = await bench.run("/tools")
    assert typo.response.startswith("There is no command `/tols`. Did you mean `/tools`")
    assert other.response == "There is no command `/xyzzy`. `/help` lists the commands."
    assert (typo.metadata["status"], listed.metadata["status"]) == ("awaiting_input", "complete")
    assert "calculator" in listed.response


@pytest.mark.parametrize(
    ("request_text", "status"),
    [
        ("Lösche alle Räume", "partial"),
        ("ファイルを削除してください", "partial"),
        ("Envía un correo a Ana", "partial"),
        ("احذف الملف", "partial"),
        ("What is 6 * 7?", "complete"),
        ("/tools", "complete"),
        ("Hello!", "complete"),
        ("help", "complete"),
    ],
)
async def test_only_what_is_done_is_complete(tmp_path: Path, request_text: str, status: str) -> None:
    async with engine_bench(tmp_path / "data", None, room=default_room()) as bench:
        response = await bench.run(request_text)
    assert response.metadata["status"] == status, response.response
