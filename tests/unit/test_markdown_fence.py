"""A fence around a whole Markdown answer is removed, whole or streamed in any pieces; other fences stay."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent.answers.unwrapping import MarkdownFence, remove_markdown_fence

TABLE = "| item | price |\n| --- | --- |\n| tea | 4 |\n"
CODE = "```python\nprint(1)\n```\n"
CASES = [
    (f"```markdown\n# Title\n\n{TABLE}```", f"# Title\n\n{TABLE}"),
    (f"```md\n{TABLE}```\n", TABLE),
    (f"```\n{TABLE}```", TABLE),
    (f"\n```Markdown\n{TABLE}```\n\nIs that right?", f"{TABLE}\nIs that right?"),
    (f"```markdown\nRun this:\n{CODE}and look.\n```", f"Run this:\n{CODE}and look.\n"),
    (f"```markdown\n{TABLE}", TABLE),  # cut off
    ("```markdown\nuse `ls` and ``x``\n`y`\n```", "use `ls` and ``x``\n`y`\n"),
]
KEPT = [
    CODE,
    "```\nls -l\n```",
    "```json\n{}\n```",
    f"Here it is:\n```markdown\n{TABLE}```",
    "`x` is a variable",
    "``",
    "```",
    "```markdown-it is a library```",
    "plain",
    "",
    "  indented",
]


@pytest.mark.parametrize(("written", "shown"), CASES)
def test_the_fence_around_a_markdown_answer_is_removed(written: str, shown: str) -> None:
    assert remove_markdown_fence(written) == shown


@pytest.mark.parametrize("text", KEPT)
def test_any_other_text_stays_as_it_is(text: str) -> None:
    assert remove_markdown_fence(text) == text


@pytest.mark.parametrize("text", [*(written for written, _ in CASES), *KEPT])
@pytest.mark.parametrize("size", [1, 2, 3, 5, 8])
def test_the_pieces_of_a_stream_change_nothing(text: str, size: int) -> None:
    fence = MarkdownFence()
    pieces = [fence.feed(text[at : at + size]) for at in range(0, len(text), size)]
    assert "".join((*pieces, fence.end())) == remove_markdown_fence(text)


@given(st.lists(st.sampled_from(["```", "```\n", "```md\n", "`", "\n", "| a |\n", "text", " "]), max_size=12))
@example(["```md\n", "text", "```"])
def test_of_any_text_only_fences_are_lost(parts: list[str]) -> None:
    text = "".join(parts)
    fence = MarkdownFence()
    streamed = "".join([*(fence.feed(part) for part in parts), fence.end()])
    assert streamed == remove_markdown_fence(text)
    assert streamed.replace("`", "").replace("md", "").split() == text.replace("`", "").replace("md", "").split()


def test_ordinary_text_is_not_held_back() -> None:
    fence = MarkdownFence()
    assert [fence.feed(piece) for piece in ("The", " answer", "\n", "is")] == ["The", " answer", "\n", "is"]
