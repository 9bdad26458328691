"""Which requests are answered by writing alone: what the model says of their kind, and what points to a tool."""

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest

from agent.core.models import JsonObject, Usage
from agent.llm.port import ModelReply, ResponseSchema
from agent.planning.request import PlanningRequest
from agent.planning.request_kinds import BEGIN_CHARS, END_CHARS, PAGE, TEXT_HERE, needs_no_tool
from agent.planning.round_attempt import Attempt
from agent.tools import PlanHints
from agent.tools.catalogue import Catalogue, SkillCard
from tests.unit.planning.kitchen import SIDE_EFFECT, asking, spec

SEARCH = spec("web_fetch", {"url": {"type": "string"}}, ["url"])
NOTES = spec("list_files", {}, hints=PlanHints(source="files"))
PRICE = replace(
    spec("set_price", {"product": {"type": "string"}}, ["product"], annotations=SIDE_EFFECT), origin="mcp:shop"
)


class Chooser:
    """Says one thing to each question, in order, and keeps what it was asked."""

    def __init__(self, *choices: JsonObject | str) -> None:
        self.choices = [*choices]
        self.questions: list[str] = []

    async def ask(self, messages: Sequence[JsonObject], schema: ResponseSchema | None) -> ModelReply:
        self.questions.append(str(messages[-1]["content"]))
        chosen = self.choices[len(self.questions) - 1]
        return ModelReply(
            chosen if isinstance(chosen, str) else json.dumps(chosen), "small", "stop", Usage(model_calls=1)
        )


async def decide(question: str, model: Chooser, *tools: object, **more: object) -> bool:
    catalogue = Catalogue(skills=more.pop("skills", ()), tools=tools or (SEARCH,))  # type: ignore[arg-type]
    request: PlanningRequest = replace(asking(question, catalogue=catalogue), **more)  # type: ignore[arg-type]
    attempt = Attempt(request, (), catalogue.tools, is_questioned=True)
    return await needs_no_tool(model, request, attempt)


@pytest.mark.parametrize(
    ("question", "tools", "more", "is_answered"),
    [
        ("Tell me about love", (SEARCH,), {}, True),
        ("Raise the price of the desk by 10", (SEARCH, PRICE), {}, False),
        ("Do it for T-104", (SEARCH, PRICE), {}, False),
        ("Do it for T-104", (SEARCH,), {}, True),
        ("Erhöhe alles ein wenig", (SEARCH, PRICE), {"answer_language": "German"}, False),
        ("Erhöhe alles ein wenig", (SEARCH,), {"answer_language": "German"}, True),
        ("A market report, please", (SEARCH,), {"skills": (SkillCard("market-report", "Reports"),)}, False),
    ],
)
async def test_what_points_to_a_server_s_tool_or_a_skill_is_decided_on(
    question: str, tools: tuple[object, ...], more: dict[str, object], *, is_answered: bool
) -> None:
    assert await decide(question, Chooser({"kind": "writing"}), *tools, **more) is is_answered


@pytest.mark.parametrize(
    "question",
    [
        "Summarize https://example.org/a",
        "Summarize www.example.org",
        "Explain notes.txt",
        "Explain /srv/notes",
        "Go on in ./x",
    ],
)
@pytest.mark.parametrize(("wanted", "is_answered"), [(TEXT_HERE, True), (PAGE, False), ("", False)])
async def test_an_address_in_a_text_to_write_is_asked_about(question: str, wanted: str, *, is_answered: bool) -> None:
    model = Chooser({"kind": "writing"}, {"wanted": wanted})
    assert await decide(question, model) is is_answered
    assert len(model.questions) == 2


@pytest.mark.parametrize(
    ("question", "tools", "is_answered"),
    [
        ("How many legs has a spider?", (SEARCH,), True),
        ("What is twelve times seven?", (SEARCH,), False),
        ("Is 2028 a leap year?", (SEARCH,), False),
        ("How many notes do I have?", (SEARCH, NOTES), False),
        ("What do all prices come to?", (SEARCH, PRICE), False),
    ],
)
async def test_a_calculation_has_figures_or_things_to_count(
    question: str, tools: tuple[object, ...], *, is_answered: bool
) -> None:
    assert await decide(question, Chooser({"kind": "calculation"}), *tools) is is_answered


@pytest.mark.parametrize("reply", ["", "none", "[]", "{}", '{"kind": 7}', '{"kind": "poetry"}', '{"tool": "none"}'])
async def test_a_reply_that_names_no_kind_decides_nothing(reply: str) -> None:
    assert not await decide("Tell me about love", Chooser(reply))


async def test_of_a_long_text_the_ends_are_shown() -> None:
    model = Chooser({"kind": "writing"})
    assert await decide("Summarize this: " + "b" * 5_000 + " In two sentences!", model)
    assert "Summarize this: bbb" in model.questions[0]
    assert "In two sentences!" in model.questions[0]
    assert len(model.questions[0]) < BEGIN_CHARS + END_CHARS + 300
