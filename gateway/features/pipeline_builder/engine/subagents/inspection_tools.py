"""Tools that look closer at one file: compare two parsers, show the pipeline's passages."""

import asyncio
from difflib import SequenceMatcher
from statistics import median

from pydantic import Field

from agent.core.errors import ToolInputError
from agent.core.models import DeferredModel
from agent.tools import ToolContext
from gateway.features.documents.engine.ingest.errors import ParserError
from gateway.features.documents.engine.ingest.plugins import AUTO, list_types_read_by
from gateway.features.documents.engine.search.models import ParserOutput
from gateway.features.pipeline_builder.engine.subagents.validation_tools import FILE, FILE_SECONDS, ValidationTool

COMPARED_CHARS = 20_000
PREVIEW_CHARS = 300


class CompareInput(DeferredModel):
    """A file and two parsers."""

    file: str = Field(min_length=1, max_length=4_000, description=FILE)
    parser_a: str = Field(max_length=100)
    parser_b: str = Field(max_length=100)


class ParsedBy(DeferredModel):
    """What one parser made of the file, or its error."""

    parser: str
    success: bool
    error: str | None = None
    characters: int = 0
    blocks: int = 0
    tables: int = 0
    headings: int = 0
    pages: int = 0
    seconds: float = 0.0
    beginning: str = ""


class Comparison(DeferredModel):
    """Both results, and how b differs from a. `similarity` is 0 to 1, or None if one failed."""

    file: str
    a: ParsedBy
    b: ParsedBy
    characters_difference: int
    tables_difference: int
    blocks_difference: int
    similarity: float | None = None


class CompareParserOutputTool(ValidationTool[CompareInput, Comparison]):
    name = "compare_parser_output"
    description = "Read one file by two parsers and compare what they made of it: characters, tables, blocks, text."
    timeout_s = FILE_SECONDS

    async def run(self, args: CompareInput, context: ToolContext) -> Comparison:
        """Compares the two. Raises `ToolInputError` for an unknown file or parser."""
        name = await self._session.resolve_name(args.file)
        one, text = await self._parse_with(name, args.parser_a)
        other, text_other = await self._parse_with(name, args.parser_b)
        similarity = None
        if one.success and other.success:
            similarity = await asyncio.to_thread(_compute_similarity, text, text_other)
        return Comparison(
            file=name,
            a=one,
            b=other,
            characters_difference=other.characters - one.characters,
            tables_difference=other.tables - one.tables,
            blocks_difference=other.blocks - one.blocks,
            similarity=similarity,
        )

    async def _parse_with(self, name: str, parser: str) -> tuple[ParsedBy, str]:
        if not list_types_read_by(parser):
            raise ToolInputError(f"there is no parser {parser!r}; {AUTO} takes the best one of the type")
        try:
            output, seconds = await self._session.readings.parse(name, parser)
        except ParserError as error:
            return ParsedBy(parser=parser, success=False, error=error.message), ""
        return _parse_summary(parser, output, seconds), _format_text(output)


class InspectInput(DeferredModel):
    """Which file, and how many passages to show."""

    file: str = Field(min_length=1, max_length=4_000, description=FILE)
    limit: int = Field(default=5, ge=1, le=20, description="passages that are shown")


class PassageShown(DeferredModel):
    """One passage."""

    index: int
    characters: int
    layout: str
    headings: list[str]
    preview: str


class ChunkInspection(DeferredModel):
    """A file as the pipeline splits it; sizes in characters."""

    file: str
    count: int
    smallest: int
    median: float
    largest: int
    passages: list[PassageShown]


class InspectChunksTool(ValidationTool[InspectInput, ChunkInspection]):
    name = "inspect_chunks"
    description = "Cut one file by the pipeline and show its passages: how many, how large, how they begin."
    timeout_s = FILE_SECONDS

    async def run(self, args: InspectInput, context: ToolContext) -> ChunkInspection:
        """Inspects one file. Raises `ToolInputError` if it cannot be read."""
        name = await self._session.resolve_name(args.file)
        try:
            made = await self._session.process_file(self._session.pipeline, name)
        except ParserError as error:
            raise ToolInputError(f"{name} cannot be read by this pipeline: {error.message}") from error
        lengths = [len(chunk.text) for chunk in made.chunks] or [0]
        passages = [
            PassageShown(
                index=chunk.index,
                characters=len(chunk.text),
                layout=chunk.layout_type,
                headings=list(chunk.heading_path),
                preview=chunk.text[:PREVIEW_CHARS],
            )
            for chunk in made.chunks[: args.limit]
        ]
        return ChunkInspection(
            file=name,
            count=len(made.chunks),
            smallest=min(lengths),
            median=median(lengths),
            largest=max(lengths),
            passages=passages,
        )


def _compute_similarity(text: str, other: str) -> float:
    """From 0 to 1, by words. Takes seconds for texts with many repeated words, such as logs."""
    return round(SequenceMatcher(None, text.split(), other.split(), autojunk=False).ratio(), 3)


def _format_text(output: ParserOutput) -> str:
    return "\n".join(chunk.content for chunk in output.chunks)[:COMPARED_CHARS]


def _parse_summary(parser: str, output: ParserOutput, seconds: float) -> ParsedBy:
    kinds = [chunk.layout_type for chunk in output.chunks]
    return ParsedBy(
        parser=str(output.metadata.get("parser") or parser),
        success=True,
        characters=sum(len(chunk.content) for chunk in output.chunks),
        blocks=len(kinds),
        tables=kinds.count("table"),
        headings=kinds.count("header"),
        pages=output.total_pages,
        seconds=round(seconds, 3),
        beginning=_format_text(output)[:PREVIEW_CHARS],
    )
