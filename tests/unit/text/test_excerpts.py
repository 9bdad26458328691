"""Long results that are shortened to what a question asks for."""

import json
from collections.abc import Callable

import pytest

from agent.text.excerpts import cut_to_excerpt

NAMES = ["Ann", "Ben", "Cleo", "Dan", "Eva", "Finn", "Gro", "Hans", "Ida", "Jon"]
QUESTION = "Which reset code did the Nordbank mail give me?"
SOUGHT = "Nordbank: your reset code is 4711"
FILLER = "nothing but the usual news of the week"


def make_mails(sought_at: int) -> list[dict[str, str]]:
    return [
        {"from": name, "text": SOUGHT if place == sought_at else f"{FILLER} {place}"}
        for place, name in enumerate(NAMES * 4)
    ]


def write_yaml(mails: list[dict[str, str]]) -> str:
    return "\n".join(f"- from: {mail['from']}\n  text: {mail['text']}" for mail in mails)


Mails = list[dict[str, str]]
WRITERS: dict[str, Callable[[Mails], str]] = {
    "a JSON list": json.dumps,
    "an object with a list": lambda mails: json.dumps({"total": len(mails), "mails": mails}),
    "objects one after the other": lambda mails: "\n".join(json.dumps(mail, indent=2) for mail in mails),
    "YAML": write_yaml,
    "lines": lambda mails: "\n".join(f"{mail['from']}: {mail['text']}" for mail in mails),
    "paragraphs": lambda mails: "\n\n".join(f"{mail['from']}\n{mail['text']}" for mail in mails),
}


@pytest.mark.parametrize("form", WRITERS)
@pytest.mark.parametrize("place", [0, 17, 39])
def test_the_entry_that_is_asked_for_stays_wherever_it_stands(form: str, place: int) -> None:
    text = WRITERS[form](make_mails(place))
    excerpt = cut_to_excerpt(text, 700, QUESTION)
    assert SOUGHT in excerpt
    assert len(excerpt) <= 800
    assert "left out]" in excerpt


def test_entries_keep_their_order_and_gaps_are_told() -> None:
    lines = [f"row {number}: {'lamp' if number in (12, 30) else FILLER}" for number in range(40)]
    shown = cut_to_excerpt("\n".join(lines), 200, "Where is the lamp?").split("\n")
    assert shown.index("row 12: lamp") < shown.index("row 30: lamp")
    left_out = sum(int(line[1:].split()[0]) for line in shown if line.endswith("left out]"))
    assert left_out + sum(line.startswith("row") for line in shown) == len(lines)


def test_a_short_text_and_one_without_the_words_are_read_from_their_beginning() -> None:
    assert cut_to_excerpt("short", 100, QUESTION) == "short"
    lines = [f"row {number} {FILLER}" for number in range(100)]
    assert cut_to_excerpt("\n".join(lines), 300, "zzz?").startswith("row 0")


def test_a_table_keeps_its_head() -> None:
    rows = [f"{number},{'Oslo' if number == 80 else 'Bergen'},{number * 3}" for number in range(100)]
    shown = cut_to_excerpt("\n".join(["id,city,visits", *rows]), 200, "How many visits has Oslo?")
    assert shown.startswith("id,city,visits\n")
    assert "80,Oslo,240" in shown


@pytest.mark.parametrize(
    "text", ["x" * 5_000, "[" * 5_000, '{"a": ' * 900, "\n" * 5_000, "- \n" * 3_000, "[]" + " " * 900]
)
def test_texts_without_entries_are_cut(text: str) -> None:
    assert len(cut_to_excerpt(text, 300, QUESTION)) <= 420


def test_a_huge_text_is_looked_at_up_to_a_bound_and_the_rest_is_told() -> None:
    excerpt = cut_to_excerpt("\n".join(f"{FILLER} {number}" for number in range(40_000)), 500, QUESTION)
    assert "more characters]" in excerpt
