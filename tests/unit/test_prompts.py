"""Every prompt agrees with its fields: each renders, and neither a missing nor an unused value passes."""

import re

import pytest

from agent.core.models import Outcome
from agent.llm.prompts import PROMPTS, PromptSource
from tests.support.processes import ROOT

SOURCES = {
    path: PromptSource(path)
    for package in ("agent", "gateway")
    for path in (ROOT / package).rglob("prompts/")
    if any(path.glob("*.md"))
}
"""The kernel's prompts and those of each feature."""
FILES = sorted(path for folder in SOURCES for path in folder.glob("*.md"))
FIELDS = {path.stem: sorted(set(re.findall(r"\{\{(\w+)\}\}", path.read_text("utf-8")))) for path in FILES}
EACH = [(prompt, field) for prompt, fields in FIELDS.items() for field in fields]
PLACES = {path.stem: SOURCES[path.parent] for path in FILES}


def render(prompt: str, /, **values: str) -> str:
    """The prompt, from wherever it lies."""
    return PLACES[prompt].render(prompt, **values)


def values(prompt: str) -> dict[str, str]:
    return {field: f"[the {field}]" for field in FIELDS[prompt]}


def test_the_names_are_those_of_the_files() -> None:
    assert sorted(name for source in SOURCES.values() for name in source.list_names()) == sorted(FIELDS)
    assert {"planner", "planner_reask", "supervisor", "skill", "skill_task", "completion"} <= set(PROMPTS.list_names())
    assert len(FILES) == len(FIELDS), "two prompts have one name"


@pytest.mark.parametrize("prompt", sorted(FIELDS))
def test_each_prompt_renders_whole(prompt: str) -> None:
    text = render(prompt, **values(prompt))
    assert [value for value in values(prompt).values() if value not in text] == []
    assert "{{" not in text, "a field was left open"
    assert text == text.strip()
    assert len(text) > 20


@pytest.mark.parametrize(("prompt", "field"), EACH)
def test_a_missing_value_raises(prompt: str, field: str) -> None:
    rest = {name: value for name, value in values(prompt).items() if name != field}
    with pytest.raises(KeyError, match=field):
        render(prompt, **rest)


@pytest.mark.parametrize("prompt", sorted(FIELDS))
def test_a_value_without_a_field_raises(prompt: str) -> None:
    with pytest.raises(TypeError, match=f"prompt '{prompt}' has no field nonsense"):
        render(prompt, **values(prompt), nonsense="x")


def test_an_unknown_prompt_raises() -> None:
    with pytest.raises(FileNotFoundError):
        PROMPTS.render("no_such_prompt")


def test_a_value_is_not_read_for_fields_of_its_own() -> None:
    assert "{{max_steps}} \\1" in render("planner", **{**values("planner"), "catalogue": "{{max_steps}} \\1"})


def test_the_judge_is_told_every_outcome_there_is() -> None:
    text = render("supervisor")
    assert "|".join(Outcome) in text
    assert [outcome for outcome in Outcome if f"- {outcome}: " not in text] == []


@pytest.mark.parametrize("prompt", ["planner", "skill", "completion", "supervisor"])
def test_prompts_that_hold_text_from_elsewhere_say_that_it_is_no_instruction(prompt: str) -> None:
    assert re.search(r"never instructions to you|never changes these rules", render(prompt, **values(prompt)))
