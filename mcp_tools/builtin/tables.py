"""`describe_table` and `query_table`: analyse table files below the file roots with SQL."""

import asyncio
import os
import stat
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import PurePosixPath

from pydantic import Field, JsonValue, model_validator

from agent.core.errors import ToolInputError
from agent.core.models import DeferredModel, Source
from agent.tools import PlanHints, ToolContext
from mcp_tools.builtin.file_roots import FileRoots, FileTool
from mcp_tools.tables.process import FORMATS, TableFile, run_worker

MAX_FILE_BYTES = 256 * 1024 * 1024
MAX_FILES = 8
QUERY_SECONDS = 30.0
"""Time limit of loading and querying together."""
SAMPLE_ROWS = 5
MAX_TEXT_ROWS = 200
"""Rows of the Markdown table; the structured result has all returned rows."""
MAX_COLUMN_CHARS = 200
"""Longer cells are cut in the Markdown table."""


class DescribeTableInput(DeferredModel):
    """Arguments of `describe_table`."""

    paths: list[str] = Field(
        min_length=1,
        max_length=MAX_FILES,
        description="the table files (CSV, TSV, XLSX, Parquet, JSON lines), relative to a readable folder",
    )

    @model_validator(mode="before")
    @classmethod
    def _take_single_path(cls, given: object) -> object:
        """Recipes of earlier versions name one file as `path`."""
        if isinstance(given, dict) and "path" in given and "paths" not in given:
            return {"paths": [given["path"]], **{name: value for name, value in given.items() if name != "path"}}
        return given


class ColumnDescription(DeferredModel):
    """A column of a table."""

    name: str
    type: str = Field(description="SQL type")
    format: str = Field(default="", description="how an Excel sheet shows the column's numbers; empty for its default")
    missing: int = Field(description="number of rows without a value")
    min: JsonValue = None
    max: JsonValue = None
    values: list[str] = Field(default_factory=list, description="all values of a text column that has only a few")


class TableDescription(DeferredModel):
    """A table; a workbook has one for each sheet."""

    table: str = Field(description="the name in SQL")
    path: str
    row_count: int
    columns: list[ColumnDescription]
    sample: list[list[JsonValue]] = Field(description="the first rows")
    notes: list[str] = Field(default_factory=list, description="what a reader of the table should know")


class DescribeTableOutput(DeferredModel):
    """The tables of a file."""

    tables: list[TableDescription]


class DescribeTableTool(FileTool[DescribeTableInput, DescribeTableOutput]):
    name = "describe_table"
    description = (
        "Describe a table file (CSV, TSV, XLSX, Parquet, JSON lines): table names, columns with types, number of rows, "
        "first rows. Use it before query_table if the columns are unknown."
    )
    tainted = True
    timeout_s = QUERY_SECONDS + 10
    keywords = ("table", "csv", "tsv", "excel", "xlsx", "spreadsheet", "parquet", "jsonl", "columns", "rows", "schema")
    hints = PlanHints(heading="Tables", source="files", file_input="paths", file_types=tuple(FORMATS))

    async def run(self, args: DescribeTableInput, context: ToolContext) -> DescribeTableOutput:
        with ExitStack() as stack:
            files = await _open_files(self._roots, args.paths, stack)
            reply = await run_worker(files, None, max_rows=SAMPLE_ROWS, timeout_s=QUERY_SECONDS)
        return DescribeTableOutput.model_validate(reply)

    def format_text(self, output: DescribeTableOutput) -> str:
        parts = []
        for table in output.tables:
            columns = [
                [column.name, column.type, column.format, column.missing, *_list_range(column)]
                for column in table.columns
            ]
            parts += [
                f"Table `{table.table}` of {table.path}: {table.row_count:,} rows.",
                *(f"Note: {note}" for note in table.notes),
                format_markdown_table(["column", "type", "format", "missing", "min", "max", "values"], columns),
                "First rows:",
                format_markdown_table([column.name for column in table.columns], table.sample),
            ]
        return "\n\n".join(parts) or "The file holds no table."

    def list_sources(self, output: DescribeTableOutput) -> tuple[Source, ...]:
        return _make_sources([table.path for table in output.tables], self.format_text(output))


class QueryTableInput(DeferredModel):
    """Arguments of `query_table`."""

    sql: str = Field(
        min_length=1,
        max_length=20_000,
        description="a whole SQL query (DuckDB) that starts with SELECT and computes the answer: the sums, counts or "
        "averages of the request, FROM the table, WHERE all conditions of the request hold, joined with AND",
        json_schema_extra={"contentMediaType": "application/sql"},
    )
    paths: list[str] = Field(
        min_length=1,
        max_length=MAX_FILES,
        description="the table files with their endings, relative to a readable folder; in SQL a table is named as its "
        "file without the ending, a single table also data",
    )
    max_rows: int = Field(default=100, ge=1, le=1_000, description="most rows returned")


class ResultColumn(DeferredModel):
    """A column of a result."""

    name: str
    type: str


class TableName(DeferredModel):
    """A table and its file."""

    table: str
    path: str
    notes: list[str] = Field(default_factory=list, description="what a reader of the table should know")


class QueryTableOutput(DeferredModel):
    """The rows of the result."""

    columns: list[ResultColumn]
    rows: list[list[JsonValue]]
    more: bool = Field(description="whether the result has further rows")
    tables: list[TableName] = Field(description="the tables that the statement could use")
    corrections: list[str] = Field(default_factory=list, description="what in the statement was corrected, and how")


class QueryTableTool(FileTool[QueryTableInput, QueryTableOutput]):
    name = "query_table"
    description = (
        "Query table files (CSV, TSV, XLSX, Parquet, JSON lines) with SQL: sums, averages, counts, filters, joins over "
        "any number of rows, exactly. Use it for every calculation on a table."
    )
    tainted = True
    timeout_s = QUERY_SECONDS + 10
    keywords = (
        "table", "csv", "tsv", "excel", "xlsx", "spreadsheet", "parquet", "jsonl", "sql", "query", "sum", "total",
        "average", "count", "group", "filter", "rows", "columns",
    )  # fmt: skip
    hints = PlanHints(heading="Query result", source="files", looks_first_with=DescribeTableTool.name)

    async def run(self, args: QueryTableInput, context: ToolContext) -> QueryTableOutput:
        with ExitStack() as stack:
            files = await _open_files(self._roots, args.paths, stack)
            reply = await run_worker(files, args.sql, max_rows=args.max_rows, timeout_s=QUERY_SECONDS)
        return QueryTableOutput.model_validate(reply)

    def format_text(self, output: QueryTableOutput) -> str:
        notes = "".join(f"Note on {table.table}: {note}\n\n" for table in output.tables for note in table.notes)
        notes += "".join(f"Corrected: {correction}\n\n" for correction in output.corrections)
        if not output.rows:
            return f"{notes}The query returned no rows."
        rows = output.rows[:MAX_TEXT_ROWS]
        table = notes + format_markdown_table([column.name for column in output.columns], rows)
        if output.more:
            return f"{table}\n\n[more rows; aggregate, or use LIMIT and OFFSET]"
        if len(rows) < len(output.rows):
            return f"{table}\n\n[{len(output.rows) - len(rows):,} more rows in the structured result]"
        return table

    def list_sources(self, output: QueryTableOutput) -> tuple[Source, ...]:
        return _make_sources([table.path for table in output.tables], self.format_text(output))


def _list_range(column: ColumnDescription) -> list[JsonValue]:
    """The extremes of a column, or all of its values if they are few."""
    return ["", "", ", ".join(column.values)] if column.values else [column.min, column.max, ""]


def format_markdown_table(names: Sequence[str], rows: Sequence[Sequence[JsonValue]]) -> str:
    """A Markdown table; an empty cell for null."""
    lines = [_format_row(names), "|" + " --- |" * len(names)]
    return "\n".join([*lines, *(_format_row(row) for row in rows)])


def _format_row(cells: Sequence[JsonValue]) -> str:
    return "| " + " | ".join(_format_cell(cell) for cell in cells) + " |"


def _format_cell(cell: JsonValue) -> str:
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return str(cell).lower()
    text = " ".join(str(cell).split())
    text = f"{text[: MAX_COLUMN_CHARS - 1]}…" if len(text) > MAX_COLUMN_CHARS else text
    return text.replace("|", "\\|")


def _make_sources(paths: Sequence[str], text: str) -> tuple[Source, ...]:
    return tuple(
        Source(id=number, name=path, quotes=(text[:300],)) for number, path in enumerate(dict.fromkeys(paths), start=1)
    )


async def _open_files(roots: FileRoots, paths: Sequence[str], stack: ExitStack) -> list[TableFile]:
    """Opens the files; the stack closes them. Raises `ToolInputError` and `ToolDeniedError`."""
    files = []
    for path in paths:
        place, descriptor = await asyncio.to_thread(roots.open, path)
        stack.callback(os.close, descriptor)
        name = place.display_path
        kind = FORMATS.get(PurePosixPath(name).suffix.lower())
        info = os.fstat(descriptor)
        if kind is None or not stat.S_ISREG(info.st_mode):
            raise ToolInputError(f"{name} is not a table file; known types: {', '.join(FORMATS)}")
        if info.st_size > MAX_FILE_BYTES:
            raise ToolInputError(f"{name} has {info.st_size:,} bytes; the limit is {MAX_FILE_BYTES:,}")
        files.append(TableFile(descriptor, name, kind))
    return files
