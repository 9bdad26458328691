"""The words of a search of chats, and the piece of a message that shows them."""

import pytest

from agent.runs.conversation_search import EXCERPT_CHARS, cut_excerpt, parse_words


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("", []),
        ("  Broken   LIFT ", ["broken", "lift"]),
        ('the "lift is  broken" Anna', ["the", "lift is broken", "anna"]),
        ("„Lost devices“ Ärger", ["lost devices", "ärger"]),
        ('an open "quotation', ["an", "open", "quotation"]),
        ('""', []),
        ("50 %_! 50", ["50", "%_!"]),
        ("电梯 坏了", ["电梯", "坏了"]),
    ],
)
def test_a_query_is_words_and_quoted_phrases(query: str, words: list[str]) -> None:
    assert parse_words(query) == words


def test_an_excerpt_is_one_line_around_the_first_word() -> None:
    text = "## Report\n\n" + "The harbour was quiet. " * 9 + "Anna mended the **Lift**.\n" + "Then all went home. " * 9
    excerpt = cut_excerpt(text, ["lift", "anna"])
    assert "Anna mended the Lift. Then" in excerpt
    assert excerpt.startswith("… ")
    assert excerpt.endswith(" …")
    assert len(excerpt) <= EXCERPT_CHARS + 4


@pytest.mark.parametrize(
    ("text", "excerpt"),
    [("Lift", "Lift"), ("no such word", "no such word"), ("", ""), ("the  lift\nworks", "the lift works")],
)
def test_a_short_text_is_its_own_excerpt(text: str, excerpt: str) -> None:
    assert cut_excerpt(text, ["lift"]) == excerpt


def test_a_text_without_spaces_is_cut_before_the_word() -> None:
    assert "电梯" in cut_excerpt("好" * 500 + "电梯" + "好" * 500, ["电梯"])


def test_an_excerpt_shows_the_longest_word_and_not_a_letter_of_another() -> None:
    text = "A harbour at noon. " * 9 + "He read us a poem."
    assert cut_excerpt(text, ["a", "poem"]).endswith("He read us a poem.")
