"""Tools that look into files of a source: parser results, language, bytes."""

import codecs

from pydantic import Field

from agent.core.errors import ToolInputError
from agent.core.models import DeferredModel
from agent.text.language import LanguageDetector, get_language_name
from agent.tools import READ_ONLY, ToolContext, TypedTool
from gateway.features.documents.engine.ingest.errors import ParserError
from gateway.features.documents.engine.ingest.parsers.sniff import detect_kind as looks_like
from gateway.features.documents.engine.ingest.plugins import AUTO, list_types_read_by
from gateway.features.pipeline_builder.engine.subagents.document_kinds import (
    CODE,
    compute_code_share,
    detect_document_types,
)
from gateway.features.pipeline_builder.engine.subagents.parsed_files import ParsedFiles
from gateway.features.pipeline_builder.engine.subagents.source_files import SourceFiles
from gateway.features.pipeline_builder.engine.subagents.source_tools import SourceTool

PARSER_SECONDS = 150.0
"""A parser may take 60 s, and may wait behind others."""
EXCERPT_CHARS = 400
PASSAGE_CHARS = 600
MIXED_SHARE = 0.2
"""Share of a document's passages from which a second language counts as more than a quotation."""


class TryParserInput(DeferredModel):
    """Which file, and which parser."""

    file: str = Field(max_length=4_000, description="name of a file, as sample_files gives it")
    parser: str = Field(default=AUTO, max_length=100, description="name of a parser; auto takes the best of the type")
    force_ocr: bool = Field(default=False, description="read every page of a PDF by OCR")


class ParserTrial(DeferredModel):
    """What a parser made of a file, or its error."""

    file: str
    extension: str
    parser: str
    success: bool
    error_code: str | None = None
    error: str | None = None
    reason: str | None = None
    pages: int = 0
    characters: int = 0
    blocks: int = 0
    tables: int = 0
    images: int = 0
    headings: int = 0
    scanned: bool = Field(default=False, description="whether pages are pictures of text")
    document_types: list[str] = Field(default_factory=list)
    code_share: float = 0.0
    uncertainties: list[str] = Field(default_factory=list)
    coverage: float | None = Field(default=None, description="share of the file's text that was read")
    seconds: float = 0.0
    excerpt: str = ""


class TryParserTool(SourceTool[TryParserInput, ParserTrial]):
    name = "try_parser"
    description = "Parse one file with a parser and report success, figures and an excerpt; a failure is a result too."
    annotations = READ_ONLY
    tainted = True
    timeout_s = PARSER_SECONDS

    def __init__(self, files: SourceFiles, readings: ParsedFiles) -> None:
        super().__init__(files)
        self._readings = readings

    async def run(self, args: TryParserInput, context: ToolContext) -> ParserTrial:
        """Makes one trial. Raises `ToolInputError` for an unknown file or parser."""
        file = await self._files.get_file(args.file)
        if not list_types_read_by(args.parser):
            raise ToolInputError(f"there is no parser {args.parser!r}; auto takes the best one of the type")
        trial = ParserTrial(file=file.name, extension=file.extension, parser=args.parser, success=False)
        try:
            read = await self._readings.read(file.name, args.parser, force_ocr=args.force_ocr)
        except ParserError as error:
            reason = error.details.get("reason")
            return trial.model_copy(
                update={
                    "error_code": error.code,
                    "error": error.message,
                    "reason": str(reason) if reason else None,
                    "scanned": reason == "scanned",
                    "document_types": ["code"] if file.extension in CODE else [],
                }
            )
        return ParserTrial(
            file=file.name,
            extension=file.extension,
            parser=read.parser or args.parser,
            success=True,
            pages=read.pages,
            characters=read.characters,
            blocks=read.blocks,
            tables=read.tables,
            images=read.images,
            headings=read.headings,
            scanned=read.scanned,
            document_types=detect_document_types(read.samples, file.file_type, file.extension),
            code_share=round(compute_code_share("\n".join(read.samples)), 2),
            uncertainties=list(read.uncertainties[:5]),
            coverage=read.coverage.share if read.coverage is not None else None,
            seconds=round(read.seconds, 3),
            excerpt=read.samples[0][:EXCERPT_CHARS] if read.samples else "",
        )


class DetectLanguageInput(DeferredModel):
    """A file, or a text."""

    file: str = Field(default="", max_length=4_000, description="name of a file, as sample_files gives it")
    text: str = Field(default="", max_length=20_000, description="a text instead")


class LanguageResult(DeferredModel):
    """The language of a text. `shares` has the share of its passages in each language, from 0 to 1."""

    file: str = ""
    language: str
    language_name: str
    shares: dict[str, float]
    mixed: bool = Field(description="whether a second language has at least a fifth of the passages")


class DetectLanguageTool(TypedTool[DetectLanguageInput, LanguageResult]):
    name = "detect_language"
    description = "Detect which language a file or a text is written in, and whether it mixes several."
    annotations = READ_ONLY
    tainted = True
    timeout_s = PARSER_SECONDS

    def __init__(self, readings: ParsedFiles, languages: LanguageDetector) -> None:
        super().__init__()
        self._readings = readings
        self._languages = languages

    async def run(self, args: DetectLanguageInput, context: ToolContext) -> LanguageResult:
        """Detects the languages. Raises `ToolInputError` if there is no text."""
        samples = [args.text]
        if args.file:
            try:
                samples = list((await self._readings.read(args.file)).samples)
            except ParserError as error:
                raise ToolInputError(f"{args.file} has no text to look at: {error.message}") from error
        passages = [passage for sample in samples for passage in _split_passages(sample)]
        if not passages:
            raise ToolInputError("there is no text to look at; give a file that a parser can read, or a text")
        spoken = [await self._languages.detect(passage) for passage in passages]
        shares = {code: round(spoken.count(code) / len(spoken), 2) for code in sorted(set(spoken))}
        first, *others = sorted(shares, key=lambda code: (-shares[code], code))
        return LanguageResult(
            file=args.file,
            language=first,
            language_name=get_language_name(first),
            shares=shares,
            mixed=bool(others) and shares[others[0]] >= MIXED_SHARE,
        )


class PreviewInput(DeferredModel):
    """Which bytes of which file."""

    file: str = Field(max_length=4_000, description="name of a file, as sample_files gives it")
    start: int = Field(default=0, ge=0, le=2**53, description="byte to begin at")
    max_bytes: int = Field(default=2_000, ge=1, le=16_000)


class PreviewOutput(DeferredModel):
    """A piece of a file. Binary data is shown in hexadecimal, the first 64 bytes."""

    file: str
    size_bytes: int
    looks_like: str
    is_binary: bool
    text: str = ""
    hexadecimal: str = ""
    encoding: str = ""
    more: bool = Field(description="whether the file goes on")


class PreviewTool(SourceTool[PreviewInput, PreviewOutput]):
    name = "get_file_content_preview"
    description = "Show the first bytes of a file as they are: text as text, anything else by its kind."

    async def run(self, args: PreviewInput, context: ToolContext) -> PreviewOutput:
        file = await self._files.get_file(args.file)
        data = await self._files.read_bytes(args.file, args.start, args.max_bytes + 1)
        more, data = len(data) > args.max_bytes, data[: args.max_bytes]
        kind = looks_like(data) if data else "nothing"
        text, encoding = ("", "")
        if kind in ("text", "html", "eml"):
            text, encoding = _decode(data, begins=args.start == 0, ends=not more)
        return PreviewOutput(
            file=file.name,
            size_bytes=file.size,
            looks_like=kind,
            is_binary=bool(data) and not encoding,
            text=text,
            hexadecimal="" if encoding else data[:64].hex(" "),
            encoding=encoding,
            more=more,
        )


def _split_passages(text: str) -> list[str]:
    """The paragraphs of a text; long ones in pieces, short ones dropped."""
    passages: list[str] = []
    for paragraph in text.split("\n\n"):
        for start in range(0, len(paragraph), PASSAGE_CHARS):
            piece = paragraph[start : start + PASSAGE_CHARS].strip()
            if sum(letter.isalpha() for letter in piece) >= 40:
                passages.append(piece)
    whole = text.strip()
    return passages[:30] or ([whole[:PASSAGE_CHARS]] if any(letter.isalpha() for letter in whole) else [])


def _decode(data: bytes, *, begins: bool, ends: bool) -> tuple[str, str]:
    """Decodes bytes and returns the encoding. Characters cut at the ends of the piece are dropped."""
    if begins:
        for mark, encoding in ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"), (b"\xef\xbb\xbf", "utf-8-sig")):
            if data.startswith(mark):
                return data.decode(encoding, "replace"), encoding
    first = next((place for place, byte in enumerate(data[:4]) if byte & 0xC0 != 0x80), 0) if not begins else 0
    try:
        return codecs.getincrementaldecoder("utf-8")().decode(data[first:], final=ends), "utf-8"
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace"), "cp1252"
