"""Tools that ask a model within their call: an order of passages, an answer with citations; and their ways without."""

import json
from pathlib import Path
from typing import Any

import pytest

from agent.core import events as ev
from agent.core.errors import ModelDownError
from agent.core.models import JsonObject
from gateway.features.documents.engine.search.llm_rerank import MAX_CANDIDATES, rerank_with_model
from tests.support.engine import Bench, engine_bench
from tests.support.script import Rule, Script, says, script

NOTES = {
    "a": "Parking permits are given by the reception. A permit for parking costs 4 euros.",
    "b": "Parking is free on Sundays, says the city.",
    "c": "Parking of bicycles is allowed in the yard.",
}
QUESTION = "What does a parking permit cost?"


class RecordedPrompt:
    """A model that says one thing, and keeps what it was asked."""

    def __init__(self, reply: str) -> None:
        self.reply = reply
        self.asked: list[JsonObject] = []

    async def __call__(self, messages: tuple[JsonObject, ...]) -> str:
        self.asked += messages
        if self.reply == "down":
            raise ModelDownError("the endpoint is away")
        return self.reply


async def called(tmp_path: Path, tool: str, model: Script | None, **args: Any) -> tuple[list[ev.Event], Any]:
    """A run of one explicit call; its log, and what the tool returned."""
    folder = tmp_path / "docs"
    folder.mkdir(exist_ok=True)
    for name, text in NOTES.items():
        (folder / f"{name}.md").write_text(f"# Note {name}\n\n{text}\n")
    async with engine_bench(tmp_path / "data", model) as bench:
        await bench.library.ingest("local", "work", folder)
        return await _called(bench, tool, args)


async def _called(bench: Bench, tool: str, args: Any) -> tuple[list[ev.Event], Any]:
    events = await bench.events("go", metadata={"tool_calls": [{"tool": tool, "args": args}]})
    (returned,) = [event.body for event in events if isinstance(event.body, ev.ToolReturned)]
    assert returned.error_code is None, returned.error
    return events, returned.output


def names(found: Any) -> list[str]:
    return [one["source"] for one in found["results"]]


def reranks(reply: Any) -> Rule:
    return says(json.dumps(reply), to="tool", about="Parking")


async def test_a_model_orders_the_passages_where_it_is_asked_to_in_one_call_of_the_run(tmp_path: Path) -> None:
    args = {"query": "parking", "min_relevance_score": 0.1}
    _, plain = await called(tmp_path, "search_knowledge", script(reranks({"order": [3, 1, 2]})), **args)
    events, found = await called(
        tmp_path, "search_knowledge", script(reranks({"order": [3, 1, 2]})), **args, use_llm_rerank=True, top_k=2
    )
    first, _, third = names(plain)
    assert names(found) == [third, first]
    assert found["note"].endswith("a model ordered the first 3 passages")
    asked = [
        event.body for event in events if isinstance(event.body, ev.ModelReturned) and event.body.purpose == "tool"
    ]
    assert len(asked) == 1, "metered and in the log like every other call"


async def test_without_a_model_the_order_stays_and_that_is_said(tmp_path: Path) -> None:
    args = {"query": "parking", "min_relevance_score": 0.1}
    _, plain = await called(tmp_path, "search_knowledge", None, **args)
    _, found = await called(tmp_path, "search_knowledge", None, **args, use_llm_rerank=True)
    assert names(found) == names(plain)
    assert "no model to rerank with" in found["note"]


@pytest.mark.parametrize(
    "reply",
    ["", "2, 1, 3", '{"order": [1, 2]}', '{"order": [1, 2, 2]}', '{"order": [0, 1, 2]}', '{"order": [1, 2, true]}',
     '{"order": "321"}', '[3, 2, 1]', 'Sure! {"order": [3, 2, 1]}'],
)  # fmt: skip
async def test_an_order_that_is_none_changes_nothing(reply: str) -> None:
    order, note = await rerank_with_model("q", ["one", "two", "three"], RecordedPrompt(reply))
    assert order == [0, 1, 2]
    assert "is not an order" in note


async def test_an_order_is_read_strictly_and_only_the_first_are_shown(tmp_path: Path) -> None:
    model = RecordedPrompt("```json\n" + json.dumps({"order": list(range(MAX_CANDIDATES, 0, -1))}) + "\n```")
    order, note = await rerank_with_model("q", [f"passage {n} </result> x" for n in range(MAX_CANDIDATES + 3)], model)
    assert order == [*reversed(range(MAX_CANDIDATES)), MAX_CANDIDATES, MAX_CANDIDATES + 1, MAX_CANDIDATES + 2]
    assert note == f"a model ordered the first {MAX_CANDIDATES} passages"
    shown = str(model.asked[1]["content"])
    assert shown.count("<result number=") == MAX_CANDIDATES
    assert shown.count("</result>") == MAX_CANDIDATES, "a passage cannot end its own block"
    assert await rerank_with_model("q", ["alone"], model) == ([0], "")
    order, note = await rerank_with_model("q", ["one", "two"], RecordedPrompt("down"))
    assert (order, "the endpoint is away" in note) == ([0, 1], True)


async def test_an_answer_is_written_by_the_model_and_only_what_stands_is_kept(tmp_path: Path) -> None:
    strict = says("1. -", to="tool", about="do not stand")
    wrote = says("The permit costs 4 euros [1]. Zidane pays it [1].", to="tool", about="End every sentence")
    check = json.dumps(
        {
            "claims": [
                {"claim": 1, "words": ["costs 4 euros"], "verdict": "supported"},
                {"claim": 2, "words": [], "verdict": "not_said"},
            ]
        }
    )
    checked = says(check, to="tool", about="You check an answer")
    events, output = await called(tmp_path, "answer_with_citations", script(strict, wrote, checked), question=QUESTION)
    assert output["content"] == "The permit costs 4 euros [1].\n\nWhat the documents do not support was left out (1)."
    assert output["citations"][0]["text_snippet"] == "A permit for parking costs 4 euros."
    asked = [
        event.body for event in events if isinstance(event.body, ev.ModelReturned) and event.body.purpose == "tool"
    ]
    assert [one.tier for one in asked] == ["high", "fast", "high"]


async def test_an_answer_is_made_by_rule_where_the_model_fails_or_there_is_none(tmp_path: Path) -> None:
    down = script(says(to="tool", fault="status_500"))
    for model in (down, None):
        _, output = await called(tmp_path, "answer_with_citations", model, question=QUESTION)
        assert "A permit for parking costs 4 euros. [1]" in output["content"]


async def test_nothing_found_is_not_asked_of_a_model(tmp_path: Path) -> None:
    model = script(says("Zidane won it [1].", to="tool"))
    events, output = await called(tmp_path, "answer_with_citations", model, question="Who won the world cup in 1998?")
    assert output["content"] == "The documents don't say."
    assert not [event for event in events if isinstance(event.body, ev.ModelReturned) and event.body.purpose == "tool"]
