"""Skills written elsewhere load here, with notes on problems."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.skills import Skill, read_skill
from agent.skills.front import read_fields
from tests.unit.skills.folders import load_refusal, load_skill, write_skill

pytestmark = pytest.mark.row("Scard-04")


def test_a_skill_of_the_format_loads_without_a_note(tmp_path: Path) -> None:
    skill = load_skill(
        tmp_path,
        "pdf-forms",
        "name: pdf-forms\ndescription: Fills forms.\nlicense: MIT\ncompatibility: Needs a screen\n"
        'metadata:\n  author: someone\n  version: "1.10"\n  agent-model: high\n  agent-max-turns: "3"\n'
        "allowed-tools: read_file web_fetch",
        "# Forms\n\nFill them.",
    )
    assert (skill.name, skill.description, skill.license) == ("pdf-forms", "Fills forms.", "MIT")
    assert skill.compatibility == "Needs a screen"
    assert skill.metadata["version"] == "1.10"
    assert (skill.tier, skill.max_turns) == ("high", 3)
    assert skill.allowed_tools == ("read_file", "web_fetch")
    assert skill.user_invocable
    assert skill.model_invocable
    assert skill.read_body() == "# Forms\n\nFill them."
    assert skill.diagnostics == ()


def test_windows_line_ends_and_a_byte_order_mark_are_survived(tmp_path: Path) -> None:
    folder = tmp_path / "crlf"
    folder.mkdir()
    text = "\ufeff---\r\nname: crlf\r\ndescription: From Windows.\r\n---\r\n\r\nOne.\r\nTwo.\r\n"
    (folder / "SKILL.md").write_bytes(text.encode("utf-8"))
    skill = read_skill(folder / "SKILL.md")
    assert isinstance(skill, Skill)
    assert skill.description == "From Windows."
    assert skill.read_body() == "One.\nTwo."
    assert skill.diagnostics == ()


def test_an_unquoted_colon_harms_no_other_field(tmp_path: Path) -> None:
    skill = load_skill(
        tmp_path,
        "review",
        "name: review\ndescription: Use this when: somebody asks\n  for a review, e.g. of code: theirs\n"
        "allowed-tools:\n  - Read\n  - Grep\nmetadata:\n  hint: say: what\n  include_tools: web_fetch",
    )
    assert skill.description == "Use this when: somebody asks for a review, e.g. of code: theirs"
    assert skill.allowed_tools == ("web_fetch",)
    assert skill.metadata["hint"] == "say: what"
    assert ["not valid YAML" in note for note in skill.diagnostics] == [True]


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        ("allowed-tools: Read Grep WebFetch", ("read_file", "search_files", "web_fetch")),
        ("allowed-tools: Read, LS, AskUserQuestion", ("read_file", "list_files", "ask_user")),
        ("allowed-tools:\n  - Read\n  - web_fetch\n  - Read", ("read_file", "web_fetch")),
        ("allowed-tools: [Read, Glob]", ("read_file", "list_files", "search_files")),
        ("allowed-tools: Read(docs/**) search_files", ("read_file", "search_files")),
        ("allowed-tools: mcp__my-server__make-it", ("my_server__make_it",)),
        ("tools: Read, calculator", ("read_file", "calculator")),
        ("allowed-tools: Read\ntools: calculator", ("read_file",)),
        ("allowed-tools: Read\nmetadata:\n  include_tools: calculator", ("calculator",)),
        ("allowed-tools: Read\nmetadata:\n  include_tools: [calculator, web_fetch]", ("calculator", "web_fetch")),
        ("allowed-tools: []\ntools: Read", ()),
        ("license: MIT", ()),
    ],
)
def test_declared_tools_come_under_our_names(tmp_path: Path, declared: str, expected: tuple[str, ...]) -> None:
    skill = load_skill(tmp_path, "some", f"name: some\ndescription: d\n{declared}")
    assert skill.allowed_tools == expected
    assert skill.diagnostics == ()


def test_tools_that_are_not_here_are_one_note_and_no_scope(tmp_path: Path) -> None:
    front = "name: git\ndescription: d\nallowed-tools: Bash(git add:*), Bash(git commit:*), Write, Read"
    skill = load_skill(tmp_path, "git", front)
    assert skill.allowed_tools == ("read_file",)
    assert skill.diagnostics == ("skill 'git': there is no tool called Bash(git add:*), Bash(git commit:*), Write",)


@pytest.mark.row("S001-32")
def test_a_skill_gets_what_it_declares_and_may_use_and_nothing_else(tmp_path: Path) -> None:
    skill = load_skill(tmp_path, "some", "name: some\ndescription: d\nallowed-tools: web_fetch Read calculator")
    assert skill.select_tools({"calculator", "read_file", "send_mail"}) == ("read_file", "calculator")
    assert skill.select_tools(()) == ()
    assert load_skill(tmp_path, "mute").select_tools({"calculator", "read_file"}) == ()


@pytest.mark.parametrize(
    ("front", "note"),
    [
        ("name: Some_Skill\ndescription: d", "not 1 to 64 lowercase letters"),
        (f"name: {'a' * 65}\ndescription: d", "not 1 to 64 lowercase letters"),
        ("name: other\ndescription: d", "differs from the folder 'some'"),
        (f"name: some\ndescription: {'d' * 1068}", "description has 1068 characters; the format allows 1024"),
        (f"name: some\ndescription: d\ncompatibility: {'c' * 501}", "compatibility has 501 characters"),
        ("name: some\ndescription: d\nversion: 1.0\nmodel: opus", "unknown fields are ignored: version, model"),
        ("name: some\ndescription: d\nmetadata:\n  agent-model: huge", "agent-model is 'huge'"),
        ("name: some\ndescription: d\nmetadata:\n  agent-max-turns: many", "agent-max-turns is 'many'"),
    ],
)
def test_what_the_format_forbids_is_told_and_loads(tmp_path: Path, front: str, note: str) -> None:
    skill = load_skill(tmp_path, "some", front)
    assert any(note in told and skill.name in told for told in skill.diagnostics), skill.diagnostics


@pytest.mark.parametrize(("wanted", "turns"), [("0", 1), ("-4", 1), ("7", 7), ("21", 20), ("9" * 5000, 8), ("²", 8)])
def test_turns_are_bounded(tmp_path: Path, wanted: str, turns: int) -> None:
    skill = load_skill(tmp_path, "some", f'name: some\ndescription: d\nmetadata:\n  agent-max-turns: "{wanted}"')
    assert skill.max_turns == turns


def test_who_may_call_a_skill_and_how_is_honoured(tmp_path: Path) -> None:
    front = "description: d\nuser-invocable: false\ndisable-model-invocation: true\nargument-hint: [file, page]"
    skill = load_skill(tmp_path, "some", front)
    assert skill.name == "some"
    assert not skill.user_invocable
    assert not skill.model_invocable
    assert skill.argument_hint == "[file, page]"
    hint = "name: more\ndescription: d\nargument-hint: [draft|final] <path> [--force]"
    assert load_skill(tmp_path, "more", hint).argument_hint == "[draft|final] <path> [--force]"


def test_arguments_and_the_base_folder_are_filled_in(tmp_path: Path) -> None:
    skill = load_skill(tmp_path, "some", body="Compare $ARGUMENTS as {baseDir}/references/how.md says.")
    filled = skill.render_instructions("a.txt {baseDir} $ARGUMENTS")
    assert filled == "Compare a.txt {baseDir} $ARGUMENTS as ./references/how.md says."


def test_embedded_commands_stay_text_and_are_told(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    skill = load_skill(tmp_path, "some", body=f"State: !`touch {mark}`")
    assert skill.render_instructions("") == f"State: !`touch {mark}`"
    assert not mark.exists()
    assert skill.diagnostics == ("skill 'some': commands embedded in the text (!`...`) are never run",)
    assert load_skill(tmp_path, "loud", body="Write `!` or `?` at the end.").diagnostics == ()


def test_a_flat_file_of_an_older_system_loads(tmp_path: Path) -> None:
    path = tmp_path / "translate.md"
    path.write_text("---\ndescription: Translates.\ntools: Read\n---\nTranslate $ARGUMENTS.", "utf-8")
    skill = read_skill(path)
    assert isinstance(skill, Skill)
    assert (skill.name, skill.allowed_tools, skill.diagnostics) == ("translate", ("read_file",), ())
    assert skill.render_instructions("it") == "Translate it."


def test_the_body_is_read_when_it_is_used(tmp_path: Path) -> None:
    skill = load_skill(tmp_path, "some", body="Old.")
    (skill.folder / "SKILL.md").write_text("---\nname: some\ndescription: d\n---\nNew.", "utf-8")
    assert skill.read_body() == "New."


@pytest.mark.parametrize(
    ("front", "why"),
    [
        ("name: bad", "no description"),
        ("name: bad\ndescription:", "no description"),
        ("name: bad\ndescription: [a, b]", "no description"),
        ("- name\n- description", "no `key: value` lines"),
        ("just words", "no `key: value` lines"),
        ("[" * 20_000, "no `key: value` lines"),
    ],
)
def test_a_malformed_skill_is_refused_by_name(tmp_path: Path, front: str, why: str) -> None:
    reason = load_refusal(tmp_path, "bad", front)
    assert reason.startswith("skill 'bad' is skipped: ")
    assert why in reason
    assert "\n" not in reason


@pytest.mark.parametrize("content", [b"", b"# No fields", b"---\nname: x\n", b"---\ndescription: \xff\n---\n"])
def test_a_file_that_is_no_skill_is_refused_by_name(tmp_path: Path, content: bytes) -> None:
    folder = tmp_path / "bad"
    folder.mkdir()
    (folder / "SKILL.md").write_bytes(content)
    assert str(read_skill(folder / "SKILL.md")).startswith("skill 'bad' is skipped: SKILL.md ")


def test_files_that_cannot_be_read_are_refused_by_name(tmp_path: Path) -> None:
    assert "is not a file" in str(read_skill(tmp_path / "gone" / "SKILL.md"))
    os.mkfifo(tmp_path / "pipe.md")  # reading it would wait for ever
    assert "skill 'pipe' is skipped" in str(read_skill(tmp_path / "pipe.md"))
    huge = write_skill(tmp_path, "huge", body="x" * 1_000_001)
    assert "larger than 1,000,000 bytes" in str(read_skill(huge / "SKILL.md"))


def test_a_few_lines_do_not_print_as_gigabytes(tmp_path: Path) -> None:
    bomb = "a0: &a0 [lol, lol]\n" + "\n".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 30))
    skill = load_skill(tmp_path, "some", f"{bomb}\nname: some\ndescription: d\nmetadata:\n  deep: *a29\nlicense: *a29")
    assert skill.metadata["deep"] == "*a29"
    assert skill.license == "*a29"


@given(st.text(alphabet=st.sampled_from("ab:-#'\"[]{}|>&*!%@` \t\n"), max_size=60))
def test_any_fields_are_read_without_raising(head: str) -> None:
    fields, _ = read_fields(head)
    assert all(isinstance(key, str) for key in fields)


@given(
    st.dictionaries(
        st.from_regex(r"[a-z]{1,8}", fullmatch=True), st.from_regex(r"[a-z]( [a-z:]{1,5}){0,4}", fullmatch=True)
    )
)
def test_plain_words_survive_with_or_without_colons(fields: dict[str, str]) -> None:
    head = "\n".join(f"{key}: {value}" for key, value in fields.items()) + "\nbroken: a: b"
    assert read_fields(head) == ({**fields, "broken": "a: b"}, False)
