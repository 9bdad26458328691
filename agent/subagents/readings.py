"""`Readings`: files of a source, parsed to see what is in them; figures and samples of text are kept of each."""

from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from time import monotonic

from agent.knowledge.errors import ParserUnsupportedError
from agent.knowledge.models import ParsedChunk, ParserInput, ParserOutput
from agent.knowledge.parsers import ParserLimits, ParserPool
from agent.knowledge.plugins import AUTO
from agent.subagents.source_files import SourceFiles

SAMPLE_CHARS = 4_000
"""From the beginning, the middle and the end of a document each: enough for its language and kind."""
_OCR_SIGNS = ("by OCR", "scanned", "earlier OCR", "OCR found no text", "OCR is unsure")
_KEPT = 64


@dataclass(frozen=True, slots=True)
class Reading:
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


class Readings:
    """Parses files of a source in worker processes, which start with the first file and end with `stack`."""

    def __init__(self, files: SourceFiles, stack: AsyncExitStack) -> None:
        self._files = files
        self._stack = stack
        self._pool: ParserPool | None = None
        self._kept: dict[tuple[str, str, bool], Reading] = {}

    async def read(self, name: str, parser: str = AUTO, *, force_ocr: bool = False) -> Reading:
        """One file. Raises `ToolInputError` for one that is not there, and the narrowest `ParserError`."""
        key = (name, parser, force_ocr)
        if key not in self._kept:
            output, seconds = await self.parse(name, parser, force_ocr=force_ocr)
            if len(self._kept) >= _KEPT:
                del self._kept[next(iter(self._kept))]
            self._kept[key] = _reading(output, seconds)
        return self._kept[key]

    async def parse(self, name: str, parser: str = AUTO, *, force_ocr: bool = False) -> tuple[ParserOutput, float]:
        """The whole document, and how long it took in seconds. Raises what `read` does."""
        file = await self._files.file(name)
        if file.file_type is None:
            raise ParserUnsupportedError(f"{file.extension} files are not read", found=file.extension)
        async with self._files.copied(name) as copy:
            if self._pool is None:
                self._pool = ParserPool(ParserLimits())
                self._stack.push_async_callback(self._pool.aclose)
            wanted = ParserInput(file_path=str(copy.path), file_type=file.file_type, force_ocr=force_ocr)
            started = monotonic()
            output = await self._pool.parse(wanted, parser=None if parser == AUTO else parser)
            told = tuple(copy.told(doubt) for doubt in output.uncertainties)
        return output.model_copy(update={"uncertainties": told}), monotonic() - started


def _reading(output: ParserOutput, seconds: float) -> Reading:
    kinds = [chunk.layout_type for chunk in output.chunks]
    return Reading(
        parser=str(output.metadata.get("parser", "")),
        pages=output.total_pages,
        characters=sum(len(chunk.content) for chunk in output.chunks),
        blocks=len(kinds),
        tables=kinds.count("table"),
        images=kinds.count("image"),
        headings=kinds.count("header"),
        scanned=any(sign in doubt for doubt in output.uncertainties for sign in _OCR_SIGNS),
        uncertainties=output.uncertainties,
        samples=tuple(_samples(output.chunks)),
        seconds=seconds,
    )


def _samples(chunks: Sequence[ParsedChunk]) -> Iterator[str]:
    """Pieces of text from the beginning, the middle and the end; of a short document all of it, once."""
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
