"""A corpus: canonical documents `{doc_id, source, text, metadata}`, one JSON object a line, from whatever made them.

`corpus_prepare.py` makes one from tables, `corpus_index.py` puts it into a collection; neither knows of the other.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import Field, ValidationError, field_validator

from agent.core.codec import whole
from agent.core.errors import BadRequestError
from agent.core.models import Frozen, JsonObject

TEXT_CHARS = 1_000_000
"""Characters of a document. A longer one is a file and belongs to `stepgate ingest`."""
LINE_CHARS = 4 * TEXT_CHARS
"""Characters of a line of JSON; a text may grow when it is escaped. What is longer is passed over unread."""
KEPT_FAULTS = 1_000
"""Faults that are kept with their places; the rest are counted."""


class CorpusDocument(Frozen):
    """A document. `metadata.title` is what people see of it; the other fields can be filtered by."""

    doc_id: str = Field(min_length=1, max_length=300)
    source: str = Field(min_length=1, max_length=100, description="the system it is from, e.g. jira")
    text: str = Field(max_length=TEXT_CHARS)
    metadata: JsonObject = Field(default_factory=dict)

    @field_validator("text")
    @classmethod
    def _says_something(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("is empty")
        return value

    @field_validator("doc_id", "source")
    @classmethod
    def _is_one_line(cls, value: str) -> str:
        if not value.isprintable():
            raise ValueError("has characters that cannot be printed")
        return value

    def line(self) -> str:
        """As a line of a corpus, without its end."""
        return self.model_dump_json()


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that was not taken, and where it stands; `line` counts from 1."""

    file: str
    line: int
    reason: str

    def __str__(self) -> str:
        return f"{self.file} line {self.line}: {self.reason}"


@dataclass(slots=True)
class Faults:
    """What was not taken: all of it counted, the first of it kept."""

    kept: list[Fault] = field(default_factory=list)
    count: int = 0

    def add(self, file: str, line: int, reason: str) -> None:
        """Another one."""
        self.count += 1
        if len(self.kept) < KEPT_FAULTS:
            self.kept.append(Fault(file, line, reason[:500]))


Progress = Callable[[str, int, int], None]
"""Told now and then: the file, how many bytes of it are read, how many it has."""


def read_corpus(
    path: Path, faults: Faults, *, progress: Progress = lambda _, __, ___: None
) -> Iterator[tuple[int, CorpusDocument]]:
    """The documents of a JSONL file with their line numbers, one at a time. A line that is none is a fault, and stops
    nothing. `BadRequestError` for a file that cannot be read."""
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            number = 0
            while raw := file.readline(LINE_CHARS):
                number += 1
                if not raw.endswith(b"\n") and len(raw) == LINE_CHARS:
                    faults.add(path.name, number, f"longer than {LINE_CHARS:,} bytes")
                    _to_the_end_of_the_line(file.readline)
                elif raw.strip():
                    found = _document(raw, number == 1)
                    if isinstance(found, CorpusDocument):
                        yield number, found
                    else:
                        faults.add(path.name, number, found)
                if number % 500 == 0:
                    progress(path.name, file.tell(), size)
            progress(path.name, size, size)
    except OSError as error:
        raise BadRequestError(f"{path}: cannot be read: {error.strerror}", agent_id="corpus") from error


def _to_the_end_of_the_line(readline: Callable[[int], bytes]) -> None:
    while (piece := readline(LINE_CHARS)) and not piece.endswith(b"\n"):
        pass


def _document(raw: bytes, is_first: bool) -> CorpusDocument | str:
    """The document of a line, or what is wrong with it."""
    try:
        text = raw.decode("utf-8-sig" if is_first else "utf-8")
    except UnicodeDecodeError as error:
        return f"no UTF-8: {error.reason} at byte {error.start + 1}"
    try:
        data = json.loads(text.replace("\\u0000", "\\ufffd"))  # PostgreSQL stores no NUL
        written = json.dumps(data, ensure_ascii=False, allow_nan=False)
        if (mended := whole(written)) != written:  # half characters, which JSON's escapes allow and UTF-8 does not
            data = json.loads(mended)
    except ValueError as error:
        return f"no JSON: {error}"
    except RecursionError:
        return "nested too deeply"
    if not isinstance(data, dict):
        return "no JSON object"
    try:
        return CorpusDocument.model_validate(data)
    except ValidationError as error:
        fault = error.errors()[0]
        field_name = ".".join(str(part) for part in fault["loc"])
        return f"no document: {field_name}: {fault['msg'].removeprefix('Value error, ')}"
