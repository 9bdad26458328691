"""The tools that look into files of a source: what parsers make of one, its language, its bytes."""

import codecs

from pydantic import BaseModel, Field

from agent.core.errors import ToolInputError
from agent.core.language import LanguageDetector, name_of
from agent.knowledge.errors import ParserError
from agent.knowledge.parsers.sniff import found as looks_like
from agent.knowledge.plugins import AUTO, readable_types
from agent.subagents.characteristics import CODE, code_share, document_types
from agent.subagents.readings import Readings
from agent.subagents.source_files import SourceFiles
from agent.tools import READ_ONLY, ToolContext, TypedTool

PARSER_SECONDS = 150.0
"""A parser may take 60 s, and waits for its turn behind others of the same moment."""
EXCERPT_CHARS = 400
PASSAGE_CHARS = 600
MIXED_SHARE = 0.2
"""Of a document's passages, from which a second language is no quotation any more."""


class TryParserInput(BaseModel):
    """Which file, and who is to read it."""

    file: str = Field(max_length=4_000, description="name of a file, as sample_files gives it")
    parser: str = Field(default=AUTO, max_length=100, description="name of a parser; auto takes the best of the type")
    force_ocr: bool = Field(default=False, description="read every page of a PDF by OCR")


class ParserTrial(BaseModel):
    """What a parser made of a file. Where it failed, `error` says why."""

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
    seconds: float = 0.0
    excerpt: str = ""


class TryParserTool(TypedTool[TryParserInput, ParserTrial]):
    """Parses a file, and tells how that went."""

    name = "try_parser"
    description = "Parse one file with a parser and report success, figures and an excerpt; a failure is a result too."
    annotations = READ_ONLY
    tainted = True
    timeout_s = PARSER_SECONDS
    Input = TryParserInput
    Output = ParserTrial

    def __init__(self, files: SourceFiles, readings: Readings) -> None:
        super().__init__()
        self._files = files
        self._readings = readings

    async def run(self, args: TryParserInput, context: ToolContext) -> ParserTrial:
        """One trial. `ToolInputError` for a file or parser that there is not."""
        file = await self._files.file(args.file)
        if not readable_types(args.parser):
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
            document_types=document_types(read.samples, file.file_type, file.extension),
            code_share=round(code_share("\n".join(read.samples)), 2),
            uncertainties=list(read.uncertainties[:5]),
            seconds=round(read.seconds, 3),
            excerpt=read.samples[0][:EXCERPT_CHARS] if read.samples else "",
        )


class DetectLanguageInput(BaseModel):
    """A file, or a text."""

    file: str = Field(default="", max_length=4_000, description="name of a file, as sample_files gives it")
    text: str = Field(default="", max_length=20_000, description="a text instead")


class LanguageFound(BaseModel):
    """The language of a text. `shares` has the part of its passages in each language, from 0 to 1."""

    file: str = ""
    language: str
    language_name: str
    shares: dict[str, float]
    mixed: bool = Field(description="whether a second language has at least a fifth of the passages")


class DetectLanguageTool(TypedTool[DetectLanguageInput, LanguageFound]):
    """Tells the language of each passage."""

    name = "detect_language"
    description = "Detect which language a file or a text is written in, and whether it mixes several."
    annotations = READ_ONLY
    tainted = True
    timeout_s = PARSER_SECONDS
    Input = DetectLanguageInput
    Output = LanguageFound

    def __init__(self, readings: Readings, languages: LanguageDetector) -> None:
        super().__init__()
        self._readings = readings
        self._languages = languages

    async def run(self, args: DetectLanguageInput, context: ToolContext) -> LanguageFound:
        """Passage by passage. `ToolInputError` where there is no text."""
        samples = [args.text]
        if args.file:
            try:
                samples = list((await self._readings.read(args.file)).samples)
            except ParserError as error:
                raise ToolInputError(f"{args.file} has no text to look at: {error.message}") from error
        passages = [passage for sample in samples for passage in _passages(sample)]
        if not passages:
            raise ToolInputError("there is no text to look at; give a file that a parser can read, or a text")
        spoken = [await self._languages.detect(passage) for passage in passages]
        shares = {code: round(spoken.count(code) / len(spoken), 2) for code in sorted(set(spoken))}
        first, *others = sorted(shares, key=lambda code: (-shares[code], code))
        return LanguageFound(
            file=args.file,
            language=first,
            language_name=name_of(first),
            shares=shares,
            mixed=bool(others) and shares[others[0]] >= MIXED_SHARE,
        )


class PreviewInput(BaseModel):
    """Which bytes of which file."""

    file: str = Field(max_length=4_000, description="name of a file, as sample_files gives it")
    start: int = Field(default=0, ge=0, description="byte to begin at")
    max_bytes: int = Field(default=2_000, ge=1, le=16_000)


class PreviewOutput(BaseModel):
    """Some of a file. Binary data are shown as hexadecimal digits, of the first 64 bytes."""

    file: str
    size_bytes: int
    looks_like: str
    is_binary: bool
    text: str = ""
    hexadecimal: str = ""
    encoding: str = ""
    more: bool = Field(description="whether the file goes on")


class PreviewTool(TypedTool[PreviewInput, PreviewOutput]):
    """Shows the bytes of a file, whatever they are."""

    name = "get_file_content_preview"
    description = "Show the first bytes of a file as they are: text as text, anything else by its kind."
    annotations = READ_ONLY
    tainted = True
    Input = PreviewInput
    Output = PreviewOutput

    def __init__(self, files: SourceFiles) -> None:
        super().__init__()
        self._files = files

    async def run(self, args: PreviewInput, context: ToolContext) -> PreviewOutput:
        """Read and show."""
        file = await self._files.file(args.file)
        data = await self._files.head(args.file, args.start, args.max_bytes + 1)
        more, data = len(data) > args.max_bytes, data[: args.max_bytes]
        kind = looks_like(data) if data else "nothing"
        text, encoding = ("", "")
        if kind in ("text", "html"):
            text, encoding = _as_text(data, begins=args.start == 0, ends=not more)
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


def _passages(text: str) -> list[str]:
    """The paragraphs of a text, short ones together, long ones in pieces."""
    passages: list[str] = []
    for paragraph in text.split("\n\n"):
        for start in range(0, len(paragraph), PASSAGE_CHARS):
            piece = paragraph[start : start + PASSAGE_CHARS].strip()
            if sum(letter.isalpha() for letter in piece) >= 40:
                passages.append(piece)
    whole = text.strip()
    return passages[:30] or ([whole[:PASSAGE_CHARS]] if any(letter.isalpha() for letter in whole) else [])


def _as_text(data: bytes, *, begins: bool, ends: bool) -> tuple[str, str]:
    """Bytes as text, and their encoding. Characters that the piece cuts in two at its ends are left out."""
    if begins:
        for mark, encoding in ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"), (b"\xef\xbb\xbf", "utf-8-sig")):
            if data.startswith(mark):
                return data.decode(encoding, "replace"), encoding
    first = next((place for place, byte in enumerate(data[:4]) if byte & 0xC0 != 0x80), 0) if not begins else 0
    try:
        return codecs.getincrementaldecoder("utf-8")().decode(data[first:], final=ends), "utf-8"
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace"), "cp1252"
