"""What a model thinks is taken out of its answer, wherever the pieces of a stream are cut."""

import pytest

from agent.answers.unwrapping import Piece, ThoughtSplitter

THOUGHT = "<think>\nA < b, so </thin is no end.\n</think>\n\nParis, not <think>."


def split(*pieces: str) -> Piece:
    splitter = ThoughtSplitter()
    parts = [*map(splitter.feed, pieces), splitter.end()]
    return Piece("".join(one.thought for one in parts), "".join(one.text for one in parts))


@pytest.mark.parametrize("size", range(1, len(THOUGHT) + 1))
def test_a_thought_is_split_off_wherever_the_stream_is_cut(size: int) -> None:
    pieces = [THOUGHT[at : at + size] for at in range(0, len(THOUGHT), size)]
    assert split(*pieces) == ("\nA < b, so </thin is no end.\n", "Paris, not <think>.")


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("  \n<thinking>Hm.</thinking>Yes.", ("Hm.", "Yes.")),
        ("<think>It never ends </th", ("It never ends </th", "")),
        ("The tag <think> begins a thought.", ("", "The tag <think> begins a thought.")),
        ("<thing>is no tag</thing>", ("", "<thing>is no tag</thing>")),
        ("  indented", ("", "  indented")),
        ("<thin", ("", "<thin")),
        ("<think></think>", ("", "")),
        ("", ("", "")),
    ],
)
def test_only_a_thought_at_the_beginning_is_one(reply: str, expected: tuple[str, str]) -> None:
    assert split(reply) == expected
    assert split(*reply) == expected
