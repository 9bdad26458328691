"""`ParsedFiles`: parses files of a source; keeps figures and text samples of each."""

from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from time import monotonic

from gateway.features.documents.engine.ingest.errors import ParserUnsupportedError
from gateway.features.documents.engine.ingest.parsers import ParserLimits, ParserPool
from gateway.features.documents.engine.ingest.plugins import AUTO
from gateway.features.documents.engine.search.models import Coverage, ParsedChunk, ParserInput, ParserOutput
from gateway.features.pipeline_builder.engine.subagents.source_files import SourceFiles

SAMPLE_CHARS = 4_000
"""Characters from each of beginning, middle and end: enough to recognise language and kind."""
_OCR_SIGNS = ("by OCR", "scanned", "earlier OCR", "OCR found no text", "OCR is unsure")
_KEPT = 64


@dataclass(frozen=True, slots=True)
class ParsedFile:
    """What a parser made of a file. `samples` are pieces of its text; `seconds` is how long it took."""

    parser: str
    pages: int
    characters: int
    blocks: int
    tables: int
    images: int
    headings: int
    scanned: bool
    uncertainties: tuple[str, ...]
    samples: tuple[str, ...]
    seconds: float
    coverage: Coverage | None = None


class ParsedFiles:
    """Parses files in worker processes, which start with the first file and end with `stack`."""

    def __init__(self, files: SourceFiles, stack: AsyncExitStack) -> None:
        self._files = files
        self._stack = stack
        self._pool: ParserPool | None = None
        self._kept: dict[tuple[str, str, bool], ParsedFile] = {}

    async def read(self, name: str, parser: str = AUTO, *, force_ocr: bool = False) -> ParsedFile:
        """Parses one file. Raises `ToolInputError` if it does not exist, and the narrowest `ParserError`."""
        key = (name, parser, force_ocr)
        if key not in self._kept:
            output, seconds = await self.parse(name, parser, force_ocr=force_ocr)
            if len(self._kept) >= _KEPT:
                del self._kept[next(iter(self._kept))]
            self._kept[key] = _summarise(output, seconds)
        return self._kept[key]

    async def parse(self, name: str, parser: str = AUTO, *, force_ocr: bool = False) -> tuple[ParserOutput, float]:
        """The whole document and the seconds it took. Raises what `read` raises."""
        file = await self._files.get_file(name)
        if file.file_type is None:
            raise ParserUnsupportedError(f"{file.extension} files are not read", found=file.extension)
        async with self._files.open_copy(name) as copy:
            if self._pool is None:
                self._pool = ParserPool(ParserLimits())
                self._stack.push_async_callback(self._pool.aclose)
            wanted = ParserInput(file_path=str(copy.path), file_type=file.file_type, force_ocr=force_ocr)
            started = monotonic()
            output = await self._pool.parse(wanted, parser=None if parser == AUTO else parser)
            uncertainties = tuple(copy.rename_in(uncertainty) for uncertainty in output.uncertainties)
        return output.model_copy(update={"uncertainties": uncertainties}), monotonic() - started


def _summarise(output: ParserOutput, seconds: float) -> ParsedFile:
    kinds = [chunk.layout_type for chunk in output.chunks]
    return ParsedFile(
        parser=str(output.metadata.get("parser", "")),
        pages=output.total_pages,
        characters=sum(len(chunk.content) for chunk in output.chunks),
        blocks=len(kinds),
        tables=kinds.count("table"),
        images=kinds.count("image"),
        headings=kinds.count("header"),
        scanned=any(sign in uncertainty for uncertainty in output.uncertainties for sign in _OCR_SIGNS),
        uncertainties=output.uncertainties,
        samples=tuple(_iter_samples(output.chunks)),
        seconds=seconds,
        coverage=output.coverage,
    )


def _iter_samples(chunks: Sequence[ParsedChunk]) -> Iterator[str]:
    """Yields pieces from the beginning, middle and end; a short document as a whole."""
    if sum(len(chunk.content) for chunk in chunks) <= 3 * SAMPLE_CHARS:
        yield "\n\n".join(chunk.content for chunk in chunks)
        return
    for start in (0, len(chunks) // 2, max(0, len(chunks) - 20)):
        text = ""
        for chunk in chunks[start:]:
            if len(text) >= SAMPLE_CHARS:
                break
            text += chunk.content[: SAMPLE_CHARS - len(text)] + "\n\n"
        yield text
