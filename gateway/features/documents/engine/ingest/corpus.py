"""A corpus: documents `{doc_id, source, text, metadata}` as JSON Lines.

`corpus_prepare.py` makes one from tables, `corpus_index.py` indexes it; neither depends on the other.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import Field, ValidationError, field_validator

from agent.core.errors import BadRequestError
from agent.core.models import FrozenModel, JsonObject
from agent.core.surrogates import replace_surrogates
from agent.core.value_faults import describe_first_fault

TEXT_CHARS = 1_000_000
"""Characters of a document. Larger ones are files, for `stepgate ingest`."""
LINE_CHARS = 4 * TEXT_CHARS
"""Characters of a JSON line, which may be longer than its text through escapes. Longer lines are skipped unread."""
MAX_KEPT_FAULTS = 1_000
"""Faults that are listed; the rest is only counted."""
TITLE_CHARS = 300
_TITLE_LINE = re.compile(r"^(?:summary|title|short description):[ \t]*(\S.*)$", re.IGNORECASE | re.MULTILINE)
"""The line of a normalized text that says what the ticket is about."""


class CorpusDocument(FrozenModel):
    """A document. All fields of `metadata` but `title` can be filtered by."""

    doc_id: str = Field(min_length=1, max_length=300)
    source: str = Field(min_length=1, max_length=100, description="the system it is from, e.g. jira")
    text: str = Field(max_length=TEXT_CHARS)
    metadata: JsonObject = Field(default_factory=dict)

    @field_validator("text")
    @classmethod
    def _is_not_blank(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("is empty")
        return value

    @field_validator("doc_id", "source")
    @classmethod
    def _is_one_line(cls, value: str) -> str:
        if not value.isprintable():
            raise ValueError("has characters that cannot be printed")
        return value

    @property
    def title(self) -> str:
        """The display name: `metadata.title`, else the line `Summary:` or `Title:` of the text, else the id."""
        given = str(self.metadata.get("title") or "").strip()
        if not given and (line := _TITLE_LINE.search(self.text)) is not None:
            given = line[1].strip()
        return (given or self.doc_id)[:TITLE_CHARS]

    def to_json_line(self) -> str:
        """The document as a JSON line without line end."""
        return self.model_dump_json()


@dataclass(frozen=True, slots=True)
class Fault:
    """A rejected line; `line` counts from 1."""

    file: str
    line: int
    reason: str

    def __str__(self) -> str:
        return f"{self.file} line {self.line}: {self.reason}"


@dataclass(slots=True)
class Faults:
    """Rejected lines: all counted, the first ones listed."""

    kept: list[Fault] = field(default_factory=list)
    count: int = 0

    def add(self, file: str, line: int, reason: str) -> None:
        """Adds a fault."""
        self.count += 1
        if len(self.kept) < MAX_KEPT_FAULTS:
            self.kept.append(Fault(file, line, reason[:500]))


Progress = Callable[[str, int, int], None]
"""Called now and then with the file name, the bytes read and the file's size."""


def read_corpus(
    path: Path, faults: Faults, *, progress: Progress = lambda _, __, ___: None
) -> Iterator[tuple[int, CorpusDocument]]:
    """Yields the documents of a JSONL file with their line numbers. An invalid line becomes a fault.

    Raises `BadRequestError` for a file that cannot be read.
    """
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            number = 0
            while raw := file.readline(LINE_CHARS):
                number += 1
                if not raw.endswith(b"\n") and len(raw) == LINE_CHARS:
                    faults.add(path.name, number, f"longer than {LINE_CHARS:,} bytes")
                    _skip_line(file.readline)
                elif raw.strip():
                    document = _parse_document(raw, number == 1)
                    if isinstance(document, CorpusDocument):
                        yield number, document
                    else:
                        faults.add(path.name, number, document)
                if number % 500 == 0:
                    progress(path.name, file.tell(), size)
            progress(path.name, size, size)
    except OSError as error:
        raise BadRequestError(f"{path}: cannot be read: {error.strerror}", agent_id="corpus") from error


def _skip_line(readline: Callable[[int], bytes]) -> None:
    while (piece := readline(LINE_CHARS)) and not piece.endswith(b"\n"):
        pass


def _parse_document(raw: bytes, is_first: bool) -> CorpusDocument | str:
    """The document of a line, or why it is invalid."""
    try:
        text = raw.decode("utf-8-sig" if is_first else "utf-8")
    except UnicodeDecodeError as error:
        return f"no UTF-8: {error.reason} at byte {error.start + 1}"
    try:
        data = json.loads(text.replace("\\u0000", "\\ufffd"))  # PostgreSQL stores no NUL
        written = json.dumps(data, ensure_ascii=False, allow_nan=False)
        if (
            mended := replace_surrogates(written)
        ) != written:  # half characters, which JSON's escapes allow and UTF-8 does not
            data = json.loads(mended)
    except ValueError as error:
        return f"not valid JSON: {error}"
    except RecursionError:
        return "nested too deeply"
    if not isinstance(data, dict):
        return "no JSON object"
    try:
        return CorpusDocument.model_validate(data)
    except ValidationError as error:
        return f"no document: {describe_first_fault(error)}"
