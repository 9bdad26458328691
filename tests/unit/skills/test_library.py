"""The library: which skills it finds below the roots, precedence, and names."""

from pathlib import Path

import pytest

from agent.core.errors import SkillUnknownError
from agent.core.settings import Settings
from agent.skills import SkillLibrary, SkillRoot, list_skill_roots
from agent.skills.library import MAX_DEPTH, MAX_FOLDERS
from tests.unit.skills.folders import write_skill


def load(*roots: Path) -> SkillLibrary:
    """The library of these roots, labelled by their folder names."""
    return SkillLibrary.load([SkillRoot(root, root.name) for root in roots])


def names(library: SkillLibrary) -> list[str]:
    """The names in the library's order."""
    return [skill.name for skill in library]


def test_skills_come_in_order_of_name_wherever_they_lie(tmp_path: Path) -> None:
    for name in ("zeta", "group/alpha", "group/deeper/mid"):
        write_skill(tmp_path, name)
    library = load(tmp_path)
    assert names(library) == ["alpha", "mid", "zeta"]
    assert library.diagnostics == ()


@pytest.mark.row("Scard-04")
def test_a_malformed_skill_is_named_and_the_others_load(tmp_path: Path) -> None:
    write_skill(tmp_path, "good")
    write_skill(tmp_path, "bad", "name: bad")
    write_skill(tmp_path, "odd", "name: Odd\ndescription: d")
    library = load(tmp_path)
    assert names(library) == ["Odd", "good"]
    assert library.diagnostics[0] == "skill 'bad' is skipped: it has no description"
    assert all("'Odd'" in note for note in library.diagnostics[1:])
    assert len(library.diagnostics) == 3


def test_the_first_root_wins_and_the_other_is_noted(tmp_path: Path) -> None:
    first = write_skill(tmp_path / "mine", "same", "name: same\ndescription: mine")
    second = write_skill(tmp_path / "theirs", "same", "name: same\ndescription: theirs")
    library = load(tmp_path / "mine", tmp_path / "theirs")
    assert library.get("same").description == "mine"
    assert library.get("same").origin == "mine"
    assert library.diagnostics == (f"skill 'same' in {second / 'SKILL.md'} is shadowed by {first / 'SKILL.md'}",)


def test_a_skill_linked_from_a_second_root_is_one_skill(tmp_path: Path) -> None:
    real = write_skill(tmp_path / "real", "same")
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "same").symlink_to(real, target_is_directory=True)
    assert names(load(tmp_path / "links")) == ["same"]
    library = load(tmp_path / "real", tmp_path / "links")
    assert (names(library), library.diagnostics) == (["same"], ())


def test_symlink_loops_end(tmp_path: Path) -> None:
    write_skill(tmp_path / "root", "group/only")
    (tmp_path / "root" / "group" / "again").symlink_to(tmp_path / "root", target_is_directory=True)
    (tmp_path / "root" / "self").symlink_to(tmp_path / "root" / "self")
    library = load(tmp_path / "root")
    assert (names(library), library.diagnostics) == (["only"], ())


def test_depth_and_number_of_folders_are_bounded(tmp_path: Path) -> None:
    write_skill(tmp_path / "deep", "/".join(["d"] * (MAX_DEPTH - 1) + ["reached"]))
    write_skill(tmp_path / "deep", "/".join(["d"] * MAX_DEPTH + ["too-deep"]))
    assert names(load(tmp_path / "deep")) == ["reached"]
    write_skill(tmp_path / "wide", "aaa")
    for number in range(MAX_FOLDERS):
        (tmp_path / "wide" / f"f{number:05}").mkdir()
    write_skill(tmp_path / "wide", "zzz")
    library = load(tmp_path / "wide")
    assert names(library) == ["aaa"]
    assert library.diagnostics == (f"skills below {tmp_path / 'wide'} beyond 2,000 folders are ignored",)


def test_what_lies_in_a_skill_or_a_hidden_folder_is_no_skill(tmp_path: Path) -> None:
    write_skill(tmp_path, "outer")
    write_skill(tmp_path, "outer/examples/inner")
    write_skill(tmp_path, ".git/hidden")
    assert names(load(tmp_path)) == ["outer"]


def test_flat_files_count_in_the_root_only_and_documents_never(tmp_path: Path) -> None:
    for path in ("old.md", "README.md", "CHANGELOG.md", "notes.txt", "docs/inner.md"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text("---\ndescription: d\n---\nDo it.")
    library = load(tmp_path)
    assert (names(library), library.diagnostics) == (["old"], ())


def test_a_card_in_lower_case_and_a_root_that_is_a_skill_load(tmp_path: Path) -> None:
    folder = write_skill(tmp_path, "small")
    (folder / "SKILL.md").rename(folder / "skill.md")
    (folder / "more.txt").touch()
    library = load(folder)
    assert names(library) == ["small"]
    assert library.get("small").list_files() == ["more.txt"]


def test_only_a_required_root_is_missed(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    assert SkillLibrary.load([SkillRoot(gone, "user")]).diagnostics == ()
    noted = SkillLibrary.load([SkillRoot(gone, "project", required=True)]).diagnostics
    assert noted == (f"the skills folder {gone} does not exist or cannot be entered",)


def test_aliases_find_a_skill_and_never_hide_another(tmp_path: Path) -> None:
    write_skill(tmp_path, "read-mail", "name: read-mail\ndescription: d\naliases: [post, other]")
    write_skill(tmp_path, "other")
    library = load(tmp_path)
    assert library.get("read_mail") is library.get("read-mail") is library.get("post")
    assert library.get("other").name == "other"
    assert "read_mail" in library
    assert "nothing" not in library


def test_an_older_name_with_underscores_is_found_by_hyphens(tmp_path: Path) -> None:
    write_skill(tmp_path, "old_name")
    assert load(tmp_path).get("old-name").name == "old_name"


def test_an_unknown_name_is_told_with_near_ones(tmp_path: Path) -> None:
    write_skill(tmp_path, "summarize")
    library = load(tmp_path)
    with pytest.raises(SkillUnknownError, match="no skill named 'sumarise'; did you mean summarize"):
        library.get("sumarise")
    with pytest.raises(SkillUnknownError, match="known: summarize"):
        library.get("qqq")
    with pytest.raises(SkillUnknownError, match="known: none"):
        SkillLibrary([]).get("summarize")


def test_a_room_sees_what_it_allows_by_name_or_alias(tmp_path: Path) -> None:
    for name in ("a-one", "b-two", "c-three"):
        write_skill(tmp_path, name)
    library = load(tmp_path)
    assert [skill.name for skill in library.list_visible(None)] == ["a-one", "b-two", "c-three"]
    assert [skill.name for skill in library.list_visible(["c-three", "a_one", "gone"])] == ["a-one", "c-three"]
    assert library.list_visible([]) == []


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, ["home/.agents/skills", "ours"]),
        ("", ["home/.agents/skills", "ours"]),
        ("first,second", ["first", "second", "ours"]),
        ("first, ~/.agents/skills, .agents/skills", ["first", "home/.agents/skills", ".agents/skills", "ours"]),
        ("None", ["ours"]),
    ],
)
def test_the_roots_are_those_of_the_setting_and_the_shipped_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, value: str | None, expected: list[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    if value is not None:
        monkeypatch.setenv("AGENT_SKILLS_DIRS", value)
    roots = list_skill_roots(Settings(_env_file=None), shipped=Path("ours"))
    assert [root.path.as_posix().removeprefix(f"{tmp_path}/") for root in roots] == expected
    origins = {"home/.agents/skills": "user", "ours": "shipped"}
    assert [root.origin for root in roots] == [origins.get(path, "project") for path in expected]
    assert [root.required for root in roots] == [origins.get(path) != "user" for path in expected]


def test_skills_in_dot_folders_are_reported(tmp_path: Path) -> None:
    for name in (".curated/one", ".curated/two", "plain"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "SKILL.md").write_text(f"---\nname: {Path(name).name}\ndescription: Does it.\n---\nDo it.\n")
    (tmp_path / ".git" / "hooks").mkdir(parents=True)
    library = SkillLibrary.load([SkillRoot(tmp_path, "test")])
    assert [skill.name for skill in library] == ["plain"]
    (note,) = library.diagnostics
    assert note.startswith(
        f"2 skills below {tmp_path / '.curated'} ignored, because the folder's name starts with a dot"
    )
    assert "AGENT_SKILLS_DIRS" in note
