"""A skill's own files: listed and read as text, and nothing outside of the folder."""

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.core.errors import SkillUnknownError, ToolError, ToolInputError
from agent.skills import Skill, read_skill
from tests.unit.skills.folders import load_skill

SECRET = "outside the folder"


@pytest.fixture(scope="module")
def skill(tmp_path_factory: pytest.TempPathFactory) -> Skill:
    """A skill with files of every kind, and a secret beside its folder."""
    root = tmp_path_factory.mktemp("skills")
    (root / "secret.txt").write_text(SECRET)
    skill = load_skill(root, "some")
    (root / "some-more").mkdir()
    (root / "some-more" / "secret.txt").write_text(SECRET)
    references = skill.folder / "references"
    references.mkdir()
    (references / "how.md").write_text("\ufeffThis is how: é", "utf-8")
    (skill.folder / "data.bin").write_bytes(b"\xff\xfe\x00")
    (skill.folder / "huge.txt").write_text("x" * 200_001)
    (skill.folder / ".hidden").write_text("kept out of the list")
    (skill.folder / "link.txt").symlink_to(root / "secret.txt")
    (skill.folder / "up").symlink_to(root, target_is_directory=True)
    (skill.folder / "loop").symlink_to(skill.folder / "loop")
    os.mkfifo(skill.folder / "pipe")
    return skill


def test_files_are_the_folders_own_in_order(skill: Skill) -> None:
    assert skill.list_files() == ["data.bin", "huge.txt", "references/how.md"]


def test_files_are_bounded(tmp_path: Path) -> None:
    many = load_skill(tmp_path, "many")
    for number in range(205):
        (many.folder / f"{number}.txt").touch()
    assert len(many.list_files()) == 200


@pytest.mark.parametrize("path", ["references/how.md", "./references/how.md", "references/../references/how.md"])
def test_a_file_inside_is_read(skill: Skill, path: str) -> None:
    assert skill.read_file(path) == "This is how: é"


@pytest.mark.parametrize(
    "path",
    [
        "../secret.txt",
        "references/../../secret.txt",
        "../some-more/secret.txt",
        "/etc/passwd",
        "link.txt",
        "up/secret.txt",
        "loop",
        "pipe",
        "references",
        "",
        ".",
        "nothing.md",
        "how.md\x00",
        "\ud800",
        "x" * 5000,
    ],
    ids=lambda path: repr(path[:20]),
)
def test_anything_else_is_refused_with_the_list_of_files(skill: Skill, path: str) -> None:
    with pytest.raises(ToolInputError, match=r"its files: data\.bin, huge\.txt, references/how\.md"):
        skill.read_file(path)


@given(
    st.one_of(
        st.text(max_size=40),
        st.lists(st.sampled_from(["..", ".", "/", "up", "link.txt", "secret.txt", "references", "some-more"])).map(
            "/".join
        ),
    )
)
@settings(max_examples=100)
def test_no_path_leads_out(skill: Skill, path: str) -> None:
    try:
        text = skill.read_file(path)
    except ToolError:
        return
    assert SECRET not in text
    assert (skill.folder / path).resolve().is_relative_to(skill.folder.resolve())


@pytest.mark.parametrize(("path", "why"), [("huge.txt", "200,000 bytes"), ("data.bin", "not UTF-8 text")])
def test_what_a_model_cannot_read_is_refused(skill: Skill, path: str, why: str) -> None:
    with pytest.raises(ToolError, match=why):
        skill.read_file(path)


def test_a_flat_skill_has_no_files(tmp_path: Path) -> None:
    (tmp_path / "flat.md").write_text("---\ndescription: d\n---\nDo it.")
    (tmp_path / "other.txt").write_text("a neighbour")
    flat = read_skill(tmp_path / "flat.md")
    assert isinstance(flat, Skill)
    assert flat.list_files() == []
    with pytest.raises(ToolInputError, match="its files: none"):
        flat.read_file("other.txt")


def test_a_skill_that_has_gone_says_so(tmp_path: Path) -> None:
    gone = load_skill(tmp_path, "gone")
    gone.path.unlink()
    with pytest.raises(SkillUnknownError, match="'gone' can no longer be read"):
        gone.render_instructions("")
