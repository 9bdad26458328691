"""What a translation leaves alone comes back in its place, whatever the model and the stream do to the signs."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.answers.mask_for_translation import KEPT_IN_ANSWER, KEPT_IN_REQUEST, StreamUnmasker, mask

TEXT = "See [1] and [2][3]: `x = 1`, https://example.org/a.\n\n```py\nprint('hej')\n```\nDone [1]."


def unmask_pieces(pieces: list[str], text: str = TEXT) -> str:
    restorer = StreamUnmasker(mask(text, KEPT_IN_ANSWER))
    return "".join(restorer.feed(piece) for piece in pieces) + restorer.end()


def test_code_links_and_citations_stand_behind_signs() -> None:
    protected = mask(TEXT, KEPT_IN_ANSWER)
    assert protected.text == "See ⟦1⟧ and ⟦2⟧: ⟦3⟧, ⟦4⟧\n\n⟦5⟧\nDone ⟦6⟧."
    assert protected.originals[1] == "[2][3]"
    assert unmask_pieces([protected.text]) == TEXT


def test_quoted_words_of_a_request_are_kept_too() -> None:
    assert mask('sök efter "blå hund" i `a.md`', KEPT_IN_REQUEST).originals == ('"blå hund"', "`a.md`")


@given(st.lists(st.integers(0, 200), max_size=12))
def test_cuts_of_the_stream_change_nothing(cuts: list[int]) -> None:
    text = mask(TEXT, KEPT_IN_ANSWER).text
    places = sorted({0, len(text), *(cut % len(text) for cut in cuts)})
    assert unmask_pieces([text[a:b] for a, b in itertools.pairwise(places)]) == TEXT


@pytest.mark.parametrize(
    ("translated", "expected"),
    [
        ("Se ⟦1⟧ ⟦2⟧", "Se [1] [2]"),
        ("Se ⟦ 1 ⟧ och ⟦2⟧", "Se [1] och [2]"),
        ("Se ⟦1⟧", "Se [1] [2]"),
        ("Se", "Se [1] [2]"),
        ("Se ⟦1⟧ ⟦1⟧ ⟦2⟧ ⟦9⟧", "Se [1]  [2] "),
        ("Se ⟦1⟧ ⟦2⟧ ⟦", "Se [1] [2] ⟦"),
    ],
)
def test_what_a_model_loses_doubles_or_invents(translated: str, expected: str) -> None:
    assert unmask_pieces([translated], "See [1] x [2]") == expected


def test_signs_in_the_text_itself_are_kept() -> None:
    text = "the sign ⟦7⟧ and [1]"
    assert unmask_pieces([mask(text, KEPT_IN_ANSWER).text], text) == text


def test_a_lost_block_of_code_comes_at_the_end_as_a_block() -> None:
    assert unmask_pieces(["Klart."], "```\na\n```\nDone.") == "Klart.\n\n```\na\n```"
