"""A text is cut into pieces that can be quoted, and nothing of it is lost."""

from hypothesis import given
from hypothesis import strategies as st

from agent.text.pieces import split_pieces

TEXT = """# Title

Every employee has 28 days. [1] Dr. Smith, e.g. on 5. May, said so. Ducks eat grasses.[24] They
swim.

- one. More [1].
- two

| a | b |
| --- | --- |
| 1 | 2 |
[1]

```
x = 1.
```
Name: Anna
Price: 5"""


def test_the_pieces_of_a_text() -> None:
    found = [(piece.kind, piece.marker, TEXT[piece.start : piece.end]) for piece in split_pieces(TEXT)]
    assert found == [
        ("heading", "", "# Title"),
        ("sentence", "", "Every employee has 28 days. [1]"),
        ("sentence", "", "Dr. Smith, e.g. on 5. May, said so."),
        ("sentence", "", "Ducks eat grasses.[24]"),
        ("sentence", "", "They\nswim."),
        ("sentence", "- ", "one."),
        ("sentence", "", "More [1]."),
        ("sentence", "- ", "two"),
        ("head", "", "| a | b |"),
        ("rule", "", "| --- | --- |"),
        ("row", "", "| 1 | 2 |"),
        ("sentence", "", "[1]"),
        ("code", "", "```\nx = 1.\n```"),
        ("sentence", "", "Name: Anna"),
        ("sentence", "", "Price: 5"),
    ]


@given(st.text(alphabet=st.sampled_from("ab A1.!?|-*#`[]():\n \u3002\u00e4"), max_size=200))
def test_pieces_are_in_order_and_lose_nothing(text: str) -> None:
    covered = 0
    for piece in split_pieces(text):
        assert covered <= piece.start < piece.end <= len(text)
        between = text[covered : piece.start]
        assert between.strip() in ("", piece.marker.strip())
        assert text[piece.start : piece.end].strip() == text[piece.start : piece.end]
        covered = piece.end
    rest = text[covered:].strip()
    assert not rest or not any(letter.isalnum() for letter in rest)
