"""The planner's prompt with 300 tools of ten servers: it stays small, and the right tool is in it."""

import pytest

from agent.core.models import JsonObject, Room
from agent.planning.prompt import build_messages
from agent.planning.request import AnswerRules, PlanningRequest
from agent.run_context.token_estimates import CHARS_PER_TOKEN
from agent.tools.catalogue import Catalogue, CatalogueView
from tests.support.catalogues import EverydayRequest, load_requests, load_specs
from tests.unit.planning.kitchen import CATALOGUE

LARGE = Catalogue(skills=CATALOGUE.skills, tools=(*CATALOGUE.tools, *load_specs()))
NEEDING = tuple(request for request in load_requests() if request.expected == "tool")
MAX_TOKENS = 8_000
GROUND = "\n".join(
    ["Files (60 of 900; list_files has all):", *(f"- folder/of/files/report-{n:03}.md" for n in range(60))]
)


def prompt(request: EverydayRequest) -> tuple[tuple[JsonObject, ...], CatalogueView]:
    view = LARGE.show(request.text)
    asked = PlanningRequest(
        question=request.text,
        room=Room(id="r"),
        catalogue=LARGE,
        answer=AnswerRules("text"),
        may_ask=True,
        ground=GROUND,
    )
    return build_messages(asked, view), view


@pytest.mark.parametrize("language", sorted({request.language for request in NEEDING}))
def test_with_300_tools_the_prompt_is_small_and_names_the_right_one(language: str) -> None:
    assert len(load_specs()) >= 300
    requests = [request for request in NEEDING if request.language == language]
    for request in requests:
        messages, view = prompt(request)
        assert not view.is_whole
        assert sum(len(str(message["content"])) for message in messages) / CHARS_PER_TOKEN < MAX_TOKENS
        local = request.tools[0].partition("__")[2]
        assert request.tools[0] in view.text or f" {local}" in view.text, "every tool is there, be it by name alone"


def test_the_right_tool_of_every_request_is_there_with_its_required_inputs() -> None:
    assert len(NEEDING) >= 200
    assert [request.id for request in NEEDING if request.tools[0] not in prompt(request)[1].names] == []


def test_most_english_requests_have_the_right_tool_spelled_out_whole() -> None:
    """What fits best by words has all its inputs with their types; this measures the ranking."""
    english = [request for request in NEEDING if request.language == "en"]
    whole = sum(any(_whole_line(tool) in prompt(request)[1].text for tool in request.tools) for request in english)
    assert whole / len(english) >= 0.5


def _whole_line(tool: str) -> str:
    view = Catalogue(tools=tuple(spec for spec in load_specs() if spec.name == tool)).show("")
    return view.text.splitlines()[1]
