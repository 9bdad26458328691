"""The shipped skills are valid elsewhere, and tell a small model how to use existing tools."""

from pathlib import Path

import pytest

from agent.skills import Skill, SkillLibrary, SkillRoot, validate_skill
from tests.support.processes import ROOT
from tests.unit.skills.folders import write_skill

SHIPPED = SkillLibrary.load([SkillRoot(ROOT / "skills", "shipped")])
TOOLS = {
    "web_fetch", "read_file", "list_files", "search_files", "describe_table", "query_table", "calculator",
    "current_time", "read_skill_file",
    "list_plugins", "get_plugin_details", "list_templates", "get_pipeline_state", "build_pipeline", "apply_pipeline",
    "spawn_source_analyzer", "spawn_pipeline_validator",
}  # fmt: skip
each_shipped = pytest.mark.parametrize("skill", [*SHIPPED], ids=lambda skill: skill.name)


def test_the_first_days_skills_are_there_without_a_note() -> None:
    assert {skill.name for skill in SHIPPED} >= {
        "answer-from-files",
        "calculate",
        "compare-documents",
        "draft-structured-data",
        "plan-project",
        "research-web-page",
        "summarize",
    }
    assert SHIPPED.diagnostics == ()


@pytest.mark.row("Scard-05")
@each_shipped
def test_a_shipped_skill_is_valid_elsewhere(skill: Skill) -> None:
    assert validate_skill(skill.folder) == []
    assert skill.license


@pytest.mark.row("S001-32")
@each_shipped
def test_a_shipped_skill_declares_tools_that_exist_and_speaks_of_each(skill: Skill) -> None:
    assert skill.allowed_tools
    assert skill.select_tools(TOOLS) == skill.allowed_tools
    body = skill.read_body()
    assert [tool for tool in TOOLS if f"`{tool}`" in body and tool not in skill.allowed_tools] == []
    assert [tool for tool in skill.allowed_tools if f"`{tool}`" not in body] == []


@each_shipped
def test_a_shipped_body_is_short_and_its_files_are_spoken_of(skill: Skill) -> None:
    body = skill.read_body()
    assert len(body.splitlines()) <= 60
    assert [name for name in skill.list_files() if name not in body] == []
    assert [skill.read_file(name) for name in skill.list_files() if not skill.read_file(name).strip()] == []
    assert bool(skill.list_files()) == ("read_skill_file" in skill.allowed_tools)


@each_shipped
def test_a_shipped_skill_that_reads_files_can_list_them(skill: Skill) -> None:
    """Small models guess names: without a list they give up."""
    assert "read_file" not in skill.allowed_tools or "list_files" in skill.allowed_tools


@each_shipped
def test_a_shipped_skill_says_in_its_line_what_it_takes(skill: Skill) -> None:
    assert len(skill.description) <= 400, "the catalogue shows no more"
    assert "Use it " in skill.description
    assert "Takes " in skill.description or not skill.model_invocable or skill.name == "build-pipeline"


def test_what_the_format_forbids_is_found_by_the_validator(tmp_path: Path) -> None:
    folder = write_skill(tmp_path, "some", "name: Other\ndescription: d\nversion: 1")
    problems = " ".join(validate_skill(folder))
    assert "version" in problems
    assert "lowercase" in problems
    (folder / "SKILL.md").write_bytes(b"---\nname: \xff\n---\n")
    assert "cannot be read as UTF-8" in validate_skill(folder)[0]
    assert validate_skill(tmp_path / "gone") != []
