"""Proper names and identifiers, and whether a text holds them."""

from itertools import product
from time import process_time

import pytest

from agent.grounded_answers.names import Spoken, names, other_forms, small_words


def said(text: str) -> list[str]:
    return [name.text for name in names(text)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Anna Svensson approves it.", ["Anna Svensson"]),
        ("Zidane won the cup.", ["Zidane"]),
        ("Employees have 28 days, and the head of Finance approves.", ["Finance"]),
        ("However, the European Union says so.", ["European Union"]),
        ("NASA opened INC-1042 with an iPhone.", ["NASA", "INC-1042", "iPhone"]),
        ("it is in `config.yaml` now", ["`config.yaml`"]),
        ("see https://example.org/a?b=1, or mail a.b@example.org.", ["https://example.org/a?b=1", "a.b@example.org"]),
        ("Die Mitarbeiter haben im Jahr Urlaub, und das ist nicht wenig.", []),
        ("Enligt handboken har alla 28 dagar.", []),
    ],
)
def test_the_names_of_a_text(text: str, found: list[str]) -> None:
    assert said(text) == found


def test_a_first_word_that_the_passages_write_small_is_no_name() -> None:
    assert [name.text for name in names("Ducks swim.", small_words(["the duck swims"]))] == []
    assert said("Ducks swim.") == ["Ducks"]


@pytest.mark.parametrize(
    ("name", "text", "held"),
    [
        ("by Anna Svensson", "Svensson, Anna, decides", True),
        ("by Anna Berg", "Anna Svensson met, long before that day in the year, somebody called Erik Berg", False),
        ("by Anna's", "Anna decides", True),
        ("INC-1042", "incident inc 1042 is open", True),
        ("INC-1042", "INC-10425", False),
        ("INC-104", "INC-1042", False),
        ("the Paid Holiday", "28 days of paid holiday", True),
        ("`rm -rf`", "never type rm -rf there", True),
        ("https://evil.example/x", "https://example.org/x", False),
    ],
)
def test_whether_a_text_holds_a_name(name: str, text: str, held: bool) -> None:
    (found,) = names(name)
    assert Spoken(text).holds(found) is held


def test_a_german_noun_in_another_form_or_a_longer_word_is_no_name() -> None:
    question = "Wie viel Urlaub haben die Kollegen, und was sagt Frau Zander zu den Reisekosten?"
    texts = ["Die Urlaubstage. Ein Kollege hat Auslandsreisekosten, Zanderfilet gibt es auch."]
    assert other_forms(question, texts) == {"urlaub", "kollegen", "reisekosten", "zander"}
    assert other_forms("How much leave is there for the staff?", ["leaves"]) == frozenset()


def test_a_question_of_any_length_is_held_against_the_texts_in_no_time() -> None:
    letters = ["".join(one) for one in product("bdfgklmnrst", repeat=4)]
    question = "Wie viel ist das und was ist der " + " ".join(f"{one}{one}" for one in letters)
    started = process_time()
    other_forms(question, [" ".join(f"{one}ax" for one in letters), "a" * 500_000])
    assert process_time() - started < 20
