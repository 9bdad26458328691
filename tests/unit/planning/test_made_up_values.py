"""Values of changes that stand nowhere: which inputs are told, and which texts a model may write itself."""

import pytest
from pydantic import JsonValue

from agent.core.models import PlanStep
from agent.planning.made_up_values import find_made_up_values
from agent.planning.request import RoundResult
from agent.tools.catalogue import Catalogue
from tests.unit.planning.kitchen import SIDE_EFFECT, asking, spec

TEXT: dict[str, JsonValue] = {"type": "string"}
WRITE = spec(
    "write_file", {"name": TEXT, "text": TEXT}, ["name", "text"], description="Write a file.", annotations=SIDE_EFFECT
)
SAVE = spec("save", {"text": TEXT}, ["text"], description="Remember it.", annotations=SIDE_EFFECT)
GROUND = "Today is Friday.\nFiles (2):\n- old.txt\n- keep.txt"
POEM = "Roses are red and violets are blue"


def find(question: str, tool: str, *rounds: RoundResult, **args: JsonValue) -> list[str]:
    step = PlanStep(id="s1", executor="agent", action="tool", tool=tool, args=args, effect="effect")
    catalogue = Catalogue(skills=(), tools=(WRITE, SAVE))
    request = asking(question, catalogue=catalogue, ground=GROUND, rounds=rounds)
    return [one.name for one in find_made_up_values([step], request)]


@pytest.mark.parametrize(
    ("question", "name", "told"),
    [
        ("Delete old.txt", "keep.txt", ["text"]),
        ("Write a poem into keep.txt", "keep.txt", []),
        ("Write a poem into roses.md", "roses.md", []),
        ("Write a poem", "secret", ["name"]),
    ],
)
def test_a_text_of_its_own_goes_only_where_the_request_says(question: str, name: str, told: list[str]) -> None:
    assert find(question, "write_file", name=name, text=POEM) == told


def test_a_text_of_its_own_may_go_where_a_result_says() -> None:
    found = RoundResult(0, "read_file", {}, "Put poems into verses.md", failed=False, missing=())
    assert find("Write a poem where the note says", "write_file", found, name="verses.md", text=POEM) == []
    assert find("Write a poem where the note says", "write_file", name="verses.md", text=POEM) == ["name"]


def test_a_change_that_is_only_a_text_is_the_models_to_write() -> None:
    assert find("Remember what I like", "save", text=POEM) == []
