"""The YAML of rooms: edits keep the rest of the text, and no text is read that could stall or fill the gateway."""

from time import monotonic

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from agent.core.bounded_yaml import YamlError, load_yaml_mapping
from gateway.features.studio.engine.errors import ValidationError
from gateway.features.studio.engine.room_yaml import change_room, keep_mark, write_room

TEXT = """\
# Who answers customers.
name: "Support"
description: >-
  Answers customers,
  in a friendly way.
tools:
  # sums
  - calculator
  - current_time  # for opening hours
skills: [calculate]
budgets:
  # replanning confuses customers
  max_replans: 0
approval: side_effects  # agreed in May
"""


@pytest.mark.row("S002-41")
def test_an_edit_changes_only_the_lines_of_its_field() -> None:
    changed = change_room(TEXT, {"approval": "always", "persona": "Two sentences.\nNo more.\n"})
    before, after = TEXT.splitlines(), changed.splitlines()
    assert after[: len(before) - 1] == before[:-1]
    assert after[len(before) - 1].split() == ["approval:", "always", "#", "agreed", "in", "May"]
    assert after[len(before) :] == ["persona: |", "  Two sentences.", "  No more."]


def test_an_edit_without_a_change_changes_no_byte() -> None:
    assert change_room(TEXT, {}) == TEXT
    assert change_room(TEXT, {"approval": "side_effects", "vision": None}) == TEXT


def test_items_that_stay_keep_their_comments() -> None:
    changed = change_room(TEXT, {"tools": ["current_time", "web_fetch"], "budgets": {"max_steps": 3}})
    assert "  - current_time  # for opening hours\n" in changed
    assert "  - web_fetch\n" in changed
    assert "  # replanning confuses customers\n  max_replans: 0\n" in changed
    assert yaml.safe_load(changed)["budgets"] == {"max_replans": 0, "max_steps": 3}


def test_lists_are_written_as_the_file_indents_them() -> None:
    changed = change_room("tools:\n- calculator\n", {"skills": ["calculate"]})
    assert changed == "tools:\n- calculator\nskills:\n- calculate\n"


TEXTS = st.text(st.characters(codec="utf-8"), max_size=60) | st.sampled_from(
    ["yes", "on", "null", "~", "12:30", "012", "1e3", "2024-13-45", "- a", "a: b", "#a", "*a", "&a", "!a", "%a", "---",
     "...", "{", "[", "'", '"', "|", ">", " a", "a ", "a\n", "\na", "a\n\n", "a \nb", "a\r\nb", "\t", "\x85", "\u2028",
     "\ufeffa", "=", "<<", "a" * 300]
)  # fmt: skip


@given(TEXTS, st.lists(TEXTS, max_size=4))
def test_every_text_is_read_back_as_it_was_set_or_refused(text: str, items: list[str]) -> None:
    fields = {"system_prompt": text, "suggestions": items}
    try:
        written = change_room(TEXT, fields)
    except ValidationError:
        return
    assert {**yaml.safe_load(TEXT), **fields} == yaml.safe_load(written)


@given(TEXTS)
def test_every_printable_text_can_be_written(text: str) -> None:
    printable = "".join(char for char in text if char.isprintable() or char == "\n")
    assert yaml.safe_load(write_room({"name": printable})) == {"name": printable}


BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12)
)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (BOMB, "expands to more than"),
        ("a: &a [*a]\n", "a value that contains it"),
        ("tools: " + "[" * 5_000, "nested more than"),
        ("name: " + "x" * 10_000_000, "at most 262,144"),
        ("tools: [" + "a," * 30_000 + "a]", "expands to more than"),
        ("- a\n- b\n", "`key: value` lines"),
        ("1: a\n", "`key: value` lines"),
        ("", "`key: value` lines"),
        ("a: [x\n", "not valid YAML"),
        ("a: 2024-13-45\n", "not valid YAML"),
        ("a: !!python/object/apply:os.system [id]\n", "not valid YAML"),
        ("a: \x00\n", "not valid YAML"),
        ("a: 1\n---\nb: 2\n", "not valid YAML"),
    ],
)
def test_what_is_no_room_is_refused_soon_and_in_one_line(text: str, reason: str) -> None:
    started = monotonic()
    with pytest.raises(YamlError, match=reason) as refused:
        load_yaml_mapping(text)
    assert monotonic() - started < 10
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 600


def test_aliases_of_a_modest_size_are_read() -> None:
    assert load_yaml_mapping("a: &a [x, y]\nb: *a\n") == {"a": ["x", "y"], "b": ["x", "y"]}


def test_a_restored_text_keeps_the_mark_that_any_text_of_the_room_has() -> None:
    earlier, marked = "name: Ours\n", b"name: Ours\nfrom_outside: true\n"
    assert keep_mark(earlier, [None, b"persona: [", marked]) == marked.decode()
    assert keep_mark(earlier, [None, b"persona: [", earlier.encode()]) == earlier
