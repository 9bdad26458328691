"""A reader whose library is an optional part: skipped where it is missing, named with the command that installs it."""

from pathlib import Path

import pytest

from agent.core.extras import EXTRAS, Extra
from gateway.features.documents.engine.ingest.errors import ParserCorruptError, ParserUnsupportedError
from gateway.features.documents.engine.ingest.parsers.read_file import read_file
from gateway.features.documents.engine.ingest.parsers.registry import list_readers
from gateway.features.documents.engine.search.models import ParserInput

COMMAND = "pip install 'stepgate[kreuzberg]'"


@pytest.fixture
def without_kreuzberg(monkeypatch: pytest.MonkeyPatch) -> None:
    missing = Extra(("no_such_module",), "a second reader")
    monkeypatch.setitem(EXTRAS, "kreuzberg", missing)


@pytest.mark.usefixtures("without_kreuzberg")
def test_the_other_readers_read_and_the_named_one_says_how_to_get_it() -> None:
    assert [reader.name for reader in list_readers("docx")] == ["python-docx"]
    assert [reader.name for reader in list_readers("xlsx")] == ["workbook", "openpyxl"]
    with pytest.raises(ParserUnsupportedError, match="the parser kreuzberg is not installed") as caught:
        list_readers("docx", "kreuzberg")
    assert COMMAND in caught.value.message


@pytest.mark.usefixtures("without_kreuzberg")
def test_a_damaged_file_names_the_reader_that_may_read_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: object) -> None:
        raise ValueError("cannot")

    monkeypatch.setattr("gateway.features.documents.engine.ingest.parsers.web.read_html", refuse)
    path = tmp_path / "a.html"
    path.write_text("<p>Hi there</p>")
    wanted = ParserInput(file_path=str(path), file_type="html")
    with pytest.raises(ParserCorruptError) as caught:
        read_file(wanted, max_bytes=10_000)
    assert COMMAND in caught.value.message
    assert caught.value.details == {"reason": "damaged"}
    with pytest.raises(ParserCorruptError) as named:
        read_file(wanted, max_bytes=10_000, parser="lxml")
    assert COMMAND not in named.value.message
