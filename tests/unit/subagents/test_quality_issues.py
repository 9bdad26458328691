"""What the trials of parsers say about a source."""

import pytest

from gateway.features.pipeline_builder.engine.subagents.reading_tools import ParserTrial
from gateway.features.pipeline_builder.engine.subagents.source_uncertainties import (
    find_quality_issues,
    find_uncertainties,
)


def tried(file: str, *kinds: str, error_code: str | None = None) -> ParserTrial:
    """A trial that succeeded, or failed with this error."""
    return ParserTrial(
        file=file, extension="", parser="p", success=error_code is None, error_code=error_code,
        characters=0 if error_code else 9, document_types=list(kinds),
    )  # fmt: skip


@pytest.mark.row("S000-36")
@pytest.mark.parametrize(
    ("kinds", "issues"),
    [(("code", "table"), []), (("code", "spreadsheet"), []), (("code", "prose"), ["code_and_prose"]), (("code",), [])],
)
def test_tables_beside_program_texts_are_no_prose(kinds: tuple[str, ...], issues: list[str]) -> None:
    trials = [tried(kind, kind) for kind in kinds]
    assert find_quality_issues(trials, []) == issues
    told = [one.message for one in find_uncertainties(None, trials, []) if "source code and prose" in one.message]
    assert len(told) == len(issues)


@pytest.mark.row("S000-32", "S000-36")
def test_a_file_that_one_parser_reads_is_not_mislabelled() -> None:
    wrong = tried("good.pdf", error_code="ERR_PARSER_UNSUPPORTED")
    assert find_quality_issues([wrong], []) == ["mislabelled_files"]
    assert find_quality_issues([wrong, tried("good.pdf", "prose")], []) == []
