"""Mappings from rows to documents: a small YAML or JSON file that names the columns of a document."""

import json
import string
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

import yaml
from pydantic import Field, JsonValue, ValidationError, field_validator

from agent.core.errors import BadRequestError
from agent.core.models import FrozenModel, JsonObject
from agent.core.surrogates import replace_surrogates
from agent.core.value_faults import describe_first_fault
from gateway.features.documents.engine.ingest.corpus import CorpusDocument
from gateway.features.documents.engine.ingest.corpus_fields import INDEX_WORDS

MAPPING_BYTES = 1_000_000
"""The largest mapping file. A larger file is not a mapping."""
_Template = list[tuple[str, str | None]]
"""Literals, each with the column that follows it."""
_VALUE_CHARS = 10_000
"""Characters of one metadata value."""


class Dedup(FrozenModel):
    """Keeps the latest of several rows about one thing."""

    key: str = Field(description="column that names the thing")
    latest: str = Field(description="column whose greatest value is the latest; numbers as numbers, else as text")


class CorpusMapping(FrozenModel):
    """A mapping. Values are templates: `{column}` is the row's value; in JSON, `{a.b}` is `b` within `a`."""

    source: str = Field(min_length=1, max_length=100, description="the system the rows are from, e.g. jira")
    doc_id: str = Field(description="template of the document's id")
    title: str = Field(default="", description="template of what people see of it")
    text: tuple[str, ...] = Field(
        min_length=1, description="templates of its lines; one whose columns are all empty is left out"
    )
    metadata: Mapping[str, str] = Field(default_factory=dict, description="templates by name; empty ones are left out")
    dedup: Dedup | None = None
    empty: tuple[str, ...] = Field(default=(), description="values that stand for none, such as ? or NULL")
    rows: str = Field(default="", description="where the list of rows is in a JSON file, e.g. issues")
    delimiter: str = Field(default="", max_length=1, description="what separates columns; guessed when empty")
    encoding: str = Field(default="", description="of the file; guessed when empty")

    @field_validator("doc_id", "title", "text", "metadata")
    @classmethod
    def _check_templates(cls, value: str | tuple[str, ...] | Mapping[str, str]) -> object:
        for template in _list_templates(value):
            list(_iter_template_parts(template))
        return value

    @field_validator("metadata")
    @classmethod
    def _check_own_names(cls, value: Mapping[str, str]) -> Mapping[str, str]:
        reserved_names = sorted(set(value) & INDEX_WORDS)
        if reserved_names:
            raise ValueError(f"{', '.join(reserved_names)}: the index has these names for itself; choose others")
        return value

    @property
    def columns(self) -> list[str]:
        """Every column that the mapping names, once."""
        templates = (self.doc_id, self.title, *self.text, *self.metadata.values())
        names = [name for template in templates for _, name in _iter_template_parts(template) if name is not None]
        return list(dict.fromkeys([*names, *((self.dedup.key, self.dedup.latest) if self.dedup else ())]))


def load_mapping(path: Path) -> CorpusMapping:
    """Reads a mapping. Raises `BadRequestError` that says what is wrong, and where."""
    try:
        with path.open("rb") as file:
            raw = file.read(MAPPING_BYTES + 1)
        if len(raw) > MAPPING_BYTES:
            raise _make_mapping_error(
                path, f"larger than {MAPPING_BYTES:,} bytes; a mapping is a short YAML or JSON file"
            )
        data = yaml.safe_load(raw.decode("utf-8-sig"))
    except OSError as error:
        raise _make_mapping_error(path, f"cannot be read: {error.strerror}") from error
    except (UnicodeDecodeError, yaml.YAMLError, RecursionError) as error:
        raise _make_mapping_error(path, f"no valid YAML: {' '.join(str(error).split())[:300]}") from error
    if not isinstance(data, dict):
        raise _make_mapping_error(path, "a mapping holds `key: value` lines: source, doc_id, text ...")
    try:
        return CorpusMapping.model_validate(data)
    except ValidationError as error:
        raise _make_mapping_error(path, describe_first_fault(error)) from error


class RowMapper:
    """Applies a mapping to rows with these columns; `columns` is None for JSON, whose rows may differ.

    Raises `BadRequestError` for a column that does not exist, naming those that do.
    """

    def __init__(self, mapping: CorpusMapping, columns: Collection[str] | None, file: str) -> None:
        self._source = mapping.source
        self._empty = frozenset(mapping.empty)
        self._found = _map_columns(mapping, columns, file) if columns is not None else {}
        self._doc_id = self._parse_template(mapping.doc_id)
        self._title = self._parse_template(mapping.title)
        self._text = [self._parse_template(template) for template in mapping.text]
        self._metadata = {name: self._parse_template(template) for name, template in mapping.metadata.items()}
        self._id_template = mapping.doc_id

    def build_document(self, row: JsonObject) -> CorpusDocument:
        """The document of a row. Raises `ValueError` if the row makes none."""
        metadata: JsonObject = {}
        title = self._render(self._title, row)
        if title:
            metadata["title"] = title[:300]
        for name, template in self._metadata.items():
            rendered = self._render(template, row)
            if rendered:
                metadata[name] = rendered[:_VALUE_CHARS]
        lines = [line for template in self._text if (line := self._render(template, row))]
        doc_id = self._render(self._doc_id, row)
        if not doc_id:
            raise ValueError(f"it has no id: {self._id_template} is empty")
        try:
            return CorpusDocument(doc_id=doc_id, source=self._source, text="\n".join(lines), metadata=metadata)
        except ValidationError as error:
            raise ValueError(describe_first_fault(error)) from error

    def get_value(self, row: JsonObject, name: str) -> str:
        """A row's value as text; empty if it has none."""
        return self._read_column(row, self._found.get(name, name))

    def _read_column(self, row: JsonObject, column: str) -> str:
        text = _to_text(row[column] if column in row else _get_nested_value(row, column))
        return "" if text in self._empty else text

    def _parse_template(self, template: str) -> _Template:
        return [
            (literal, name if name is None else self._found.get(name, name))
            for literal, name in _iter_template_parts(template)
        ]

    def _render(self, template: _Template, row: JsonObject) -> str:
        """Renders a template with the row's values; empty if it names columns and all are empty."""
        made, named, has_text = [], False, False
        for literal, column in template:
            made.append(literal)
            if column is not None:
                text = self._read_column(row, column)
                named, has_text = True, has_text or bool(text)
                made.append(text)
        return "" if named and not has_text else "".join(made).strip()


def _map_columns(mapping: CorpusMapping, columns: Collection[str], file: str) -> dict[str, str]:
    """Maps the names in the mapping to the table's columns, ignoring case."""
    there = {name.strip().casefold(): name for name in reversed(list(columns))}
    cells = {name: there.get(name.strip().casefold(), "") for name in mapping.columns}
    missing = [name for name, column in cells.items() if not column]
    if missing:
        raise BadRequestError(
            f"{file} has no column {', '.join(map(repr, missing))}; its columns are: {', '.join(columns)[:1_000]}",
            agent_id="corpus",
        )
    return cells


def _list_templates(value: str | tuple[str, ...] | Mapping[str, str]) -> list[str]:
    if isinstance(value, str):
        return [value]
    return list(value.values()) if isinstance(value, Mapping) else list(value)


def _iter_template_parts(template: str) -> Iterator[tuple[str, str | None]]:
    """Yields the literals of a template, each with the column that follows it."""
    for literal, name, form, conversion in string.Formatter().parse(template):
        if name is not None and (form or conversion or not name.strip()):
            raise ValueError(f"{template!r}: write {{column}}; braces that stand for themselves are doubled")
        yield literal, name


def _get_nested_value(row: JsonObject, path: str) -> JsonValue:
    """The value at `a.b.c`, or None."""
    nested_value: JsonValue = row
    for part in path.split("."):
        nested_value = nested_value.get(part) if isinstance(nested_value, dict) else None
    return nested_value


def _to_text(value: JsonValue) -> str:
    """A value as text without carriage returns and lone surrogates."""
    if value is None:
        return ""
    if isinstance(value, list):
        return ", ".join(filter(None, map(_to_text, value)))
    if isinstance(value, dict):
        return replace_surrogates(json.dumps(value, ensure_ascii=False))
    if isinstance(value, bool):
        return str(value).lower()
    text = str(value).strip()
    if text.isascii() and text.isprintable():
        return text
    return replace_surrogates(text).replace("\r\n", "\n").replace("\r", "\n").replace("\x00", "").strip()


def _make_mapping_error(path: Path, why: str) -> BadRequestError:
    return BadRequestError(f"{path}: {why}", agent_id="corpus")
