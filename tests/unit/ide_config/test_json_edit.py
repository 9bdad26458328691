"""Editing JSON in place: what is set is there, and every other byte is as it was."""

import json
import random
from typing import Any

import pytest

from gateway.ide_config.json_edit import MalformedJsonError, append_entry, read_member, set_member

SETTINGS = """// Zed settings
{
  "theme": "One Dark", // mine
  /* servers */
  "context_servers": {
    "other": {
      "command": "x", // keep

      "args": [ 1,2 ],
    }, // the last one
  },
  "vim_mode": false
}
"""


def test_a_member_is_added_after_the_last_one_and_nothing_else_changes() -> None:
    changed = set_member(SETTINGS, ("context_servers", "new"), {"url": "u"}, comments=True)
    added = '\n    "new": {\n      "url": "u"\n    }'
    assert changed == SETTINGS.replace("}, // the last one", "}, // the last one" + added)
    assert read_member(changed, ("context_servers", "new"), comments=True) == {"url": "u"}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("{}", '{\n  "a": {\n    "b": 1\n  }\n}'),
        ("{ }\n", '{\n  "a": {\n    "b": 1\n  }\n}\n'),
        ('{"x":1}', '{"x":1, "a": {"b": 1}}'),
        ('{\n\t"x": 1\n}', '{\n\t"x": 1,\n\t"a": {\n\t\t"b": 1\n\t}\n}'),
        ('{\r\n    "x": 1\r\n}\r\n', '{\r\n    "x": 1,\r\n    "a": {\r\n        "b": 1\r\n    }\r\n}\r\n'),
        ('{\n  "a": {}\n}', '{\n  "a": {\n    "b": 1\n  }\n}'),
        ('{\n  "a": {"b": {"old": [1]}, "c": 2}\n}', '{\n  "a": {"b": 1, "c": 2}\n}'),
        ('{"a": {"b": 0}, "a": {}}', '{"a": {"b": 0}, "a": {\n  "b": 1\n}}'),
    ],
)
def test_the_style_of_the_text_is_kept(before: str, after: str) -> None:
    assert set_member(before, ("a", "b"), 1, comments=False) == after


def test_comments_in_an_empty_object_and_behind_the_last_member_stay() -> None:
    empty = set_member('{\n  "a": {\n    // none yet\n  }\n}', ("a", "b"), 1, comments=True)
    assert empty == '{\n  "a": {\n    // none yet\n    "b": 1\n  }\n}'
    behind = set_member('{\n  "x": 1 // one\n}', ("b",), 2, comments=True)
    assert behind == '{\n  "x": 1, // one\n  "b": 2\n}'


def test_an_entry_is_appended_to_a_list() -> None:
    text = '{\n  "inputs": [\n    {"id": "x"}\n  ]\n}'
    changed = append_entry(text, ("inputs",), {"id": "y"}, comments=True)
    assert json.loads(changed)["inputs"] == [{"id": "x"}, {"id": "y"}]
    assert changed.startswith(text[: text.index("}") + 1])
    assert json.loads(append_entry("{}", ("inputs",), 1, comments=True)) == {"inputs": [1]}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "line 1, column 1: it ends too early"),
        ('{"a": 1', "a comma or } is missing"),
        ('{"a": 1 "b": 2}', "a comma or } is missing"),
        ('{"a": 1,}', "a comma after the last entry"),
        ('{"a": 1} x', "text after the end"),
        ("{'a': 1}", "a key in double quotes"),
        ('{"a" 1}', "a colon is missing"),
        ('{"a": nul}', "a value is missing"),
        ('{\n "a": "x\\q"}', "line 2, column 7: a value is missing"),
        ('{"a": 01}', "a comma or } is missing"),
        ("// c\n{}", "a value is missing"),
        ("[" * 500, "nested too deeply"),
        ("[1]", "the file is not an object"),
        ('{"a": "text"}', "a is not an object"),
    ],
)
def test_malformed_text_is_refused_with_its_place(text: str, said: str) -> None:
    with pytest.raises(MalformedJsonError, match=said.replace("{", r"\{").replace("}", r"\}")):
        set_member(text, ("a", "b"), 1, comments=False)


def test_an_unfinished_comment_is_malformed() -> None:
    with pytest.raises(MalformedJsonError):
        set_member("{} /* x", ("a",), 1, comments=True)


def make_value(random_: random.Random, depth: int) -> Any:
    kind = random_.randrange(7 if depth else 5)
    if kind == 5:
        return [make_value(random_, depth - 1) for _ in range(random_.randrange(4))]
    if kind == 6:
        return {make_text(random_): make_value(random_, depth - 1) for _ in range(random_.randrange(4))}
    return (
        None,
        True,
        random_.random() * 10 ** random_.randrange(-9, 9),
        random_.randrange(-999, 999),
        make_text(random_),
    )[kind]


def make_text(random_: random.Random) -> str:
    return "".join(random_.choice('ab"\\/{}[],:\n\té€😀//*') for _ in range(random_.randrange(6)))


def test_whatever_json_writes_is_read_and_kept() -> None:
    for seed in range(300):
        check_whatever_json_writes(random.Random(seed))


def check_whatever_json_writes(random_: random.Random) -> None:
    value = {"k": make_value(random_, 4), **{make_text(random_): make_value(random_, 3) for _ in range(3)}}
    text = json.dumps(value, indent=random_.choice([None, 1, 4, "\t"]), ensure_ascii=random_.random() < 0.5)
    changed = set_member(text, ("mcp", "new"), {"url": "u"}, comments=random_.random() < 0.5)
    assert json.loads(changed) == {**value, "mcp": {"new": {"url": "u"}}}
    before = text.rstrip().removesuffix("}").rstrip()
    assert changed.startswith(before), "what was there begins the new text, byte for byte"
