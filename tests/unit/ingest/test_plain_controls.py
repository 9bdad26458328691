"""Control characters of plain text: ends of pages and lines separate words, what terminals obey is no text."""

from pathlib import Path
from time import process_time

import pytest

from tests.unit.ingest.test_markdown_html_coverage import lines, read


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("First page\x0cSecond page", ["First page", "Second page"]),
        ("a\n\x0c\nb", ["a", "b"]),
        ("a\x0bb\x85c\u2028d", ["a\nb\nc\nd"]),
        ("\x1b[1;31mError 5\x1b[0m in pump\x1b[K", ["Error 5 in pump"]),
        ("see \x1b]8;;https://example.org\x1b\\here\x1b]8;;\x1b\\", ["see here"]),
        ("B\x08Bo\x08ol\x08ld and _\x08x", ["Bold and x"]),
        ("[31m is text", ["[31m is text"]),
    ],
)
def test_control_characters_end_words_or_are_left_out(text: str, expected: list[str], tmp_path: Path) -> None:
    output = read(text, "txt", tmp_path)
    assert lines(output) == expected
    assert output.coverage is not None
    assert output.coverage.share == 1.0


def test_lines_of_many_spaces_are_read_in_time(tmp_path: Path) -> None:
    started = process_time()
    assert lines(read(f"a{' ' * 50_000}b", "txt", tmp_path)) == [f"a{' ' * 50_000}b"]
    assert process_time() - started < 5  # it took 25 s where each space began a search of its own
