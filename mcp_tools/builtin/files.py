"""`read_file`, `list_files`, `search_files`: text files below the configured roots (`file_roots.py`)."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Literal, TypeVar

from pydantic import Field

from agent.core.errors import ToolError
from agent.core.models import DeferredModel, Source
from agent.core.safe_files import open_beneath
from agent.text.terms import extract_terms, fold, map_query_terms
from agent.tools import PlanHints, ToolContext
from mcp_tools.builtin.file_roots import MAX_WALKED_ENTRIES, FilePath, FileTool, WalkLimit, read_text
from mcp_tools.builtin.request_commands import FILE_LISTING, FILE_READING, FILE_SEARCH

MAX_LINE_CHARS = 400
MAX_COLLECTED = 20
"""Matches that a search collects before it stops, as a multiple of its limit."""
_PREFIX_CHARS = 3
"""Characters that a word and its stem have in common."""

T = TypeVar("T")


async def _run_in_thread(work: Callable[[], T]) -> T:
    try:
        return await asyncio.to_thread(work)
    except OSError as error:
        raise ToolError(f"the file cannot be read: {error.strerror}") from error


class ReadFileInput(DeferredModel):
    """Arguments of `read_file`."""

    path: str = Field(min_length=1, description="path of a text file, relative to a readable folder")
    start_line: int = Field(default=1, ge=1, description="first line to read")
    max_lines: int = Field(default=400, ge=1, le=5000, description="how many lines to read")
    line_numbers: bool = Field(default=False, description="true: number the lines; needed to cite lines")


class ReadFileOutput(DeferredModel):
    """The lines. `text` is the file's own text, without line numbers."""

    path: str
    text: str
    start_line: int
    total_lines: int
    truncated: bool
    line_numbers: bool = Field(default=False, description="whether the text result numbers the lines")


class ReadFileTool(FileTool[ReadFileInput, ReadFileOutput]):
    name = "read_file"
    description = (
        "Read a text file from the user's folders, completely or by lines; with line numbers if lines are cited."
    )
    tainted = True
    keywords = ("file", "document", "read", "open", "notes", "txt", "md", "csv", "local", "folder")
    hints = PlanHints(commands=FILE_READING, source="files", file_input="path")

    async def run(self, args: ReadFileInput, context: ToolContext) -> ReadFileOutput:
        """Opens the file below a root, decodes it, and selects the lines."""

        def work() -> ReadFileOutput:
            place, descriptor = self._roots.open(args.path)
            lines = read_text(descriptor, place.display_path).splitlines()
            end = args.start_line - 1 + args.max_lines
            return ReadFileOutput(
                path=place.display_path,
                text="\n".join(lines[args.start_line - 1 : end]),
                start_line=args.start_line,
                total_lines=len(lines),
                truncated=end < len(lines),
                line_numbers=args.line_numbers,
            )

        return await _run_in_thread(work)

    def format_text(self, output: ReadFileOutput) -> str:
        """The text, with line numbers if they were requested, and where to continue."""
        lines = output.text.split("\n") if output.text else []
        text = output.text
        if output.line_numbers:
            text = "\n".join(f"{number}: {line}" for number, line in enumerate(lines, output.start_line))
        if not output.truncated:
            return text
        return f"{text}\n[{output.total_lines} lines; continue with start_line={output.start_line + len(lines)}]"

    def list_sources(self, output: ReadFileOutput) -> tuple[Source, ...]:
        return (Source(id=1, name=output.path, quotes=(output.text[:300],)),)


class ListFilesInput(DeferredModel):
    """Arguments of `list_files`."""

    path: str = Field(default="", description="folder, relative to a readable folder; empty for everything")
    pattern: str = Field(default="*", description="file name pattern, e.g. *.md", max_length=200)
    recursive: bool = Field(default=True, description="also folders below")
    limit: int = Field(default=200, ge=1, le=2000, description="most files returned")


class FileEntry(DeferredModel):
    """A file."""

    path: str
    bytes: int


class ListFilesOutput(DeferredModel):
    """The files."""

    files: list[FileEntry]
    truncated: bool
    hint: str = Field(default="", description="what helps if there are no files, or if the path is a file")


class ListFilesTool(FileTool[ListFilesInput, ListFilesOutput]):
    name = "list_files"
    description = "List the files in the user's folders, by folder and name pattern. Use it if a path is unknown."
    tainted = True
    keywords = ("files", "folder", "directory", "list", "which", "documents")
    hints = PlanHints(commands=FILE_LISTING, source="files")

    async def run(self, args: ListFilesInput, context: ToolContext) -> ListFilesOutput:

        def work() -> ListFilesOutput:
            files: list[FileEntry] = []
            limit = WalkLimit()
            for place, info in self._roots.walk(args.path, args.pattern, recursive=args.recursive, limit=limit):
                if len(files) >= args.limit:
                    return ListFilesOutput(files=files, truncated=True)
                files.append(FileEntry(path=place.display_path, bytes=info.st_size))
            hint = "" if files else self._explain_none(args, context, is_cut=limit.is_reached)
            if [entry.path for entry in files] == [args.path]:  # a small model lists a file to see what is in it
                hint = f"{args.path} is a file: read_file returns its text."
            return ListFilesOutput(files=files, truncated=limit.is_reached, hint=hint)

        return await _run_in_thread(work)

    def format_text(self, output: ListFilesOutput) -> str:
        if not output.files:
            return f"No files. {output.hint}".strip()
        lines = [f"{entry.path} ({entry.bytes:,} bytes)" for entry in output.files]
        notes = ["[more files; narrow the pattern]"] if output.truncated else [output.hint] if output.hint else []
        return "\n".join([*lines, *notes])

    def _explain_none(self, args: ListFilesInput, context: ToolContext, *, is_cut: bool) -> str:
        if is_cut:
            return f"None of the first {MAX_WALKED_ENTRIES:,} entries fits; name a folder with fewer."
        if args.path or args.pattern != "*":
            return "Nothing fits this folder and pattern; leave them out to see every file."
        if context.scopes is not None and "admin" not in context.scopes:  # paths of the machine are its owner's
            return "The operator can put some into the folders that are read here (AGENT_FILE_ROOTS)."
        folders = ", ".join(map(str, self._roots.roots))
        return f"Put some into {folders}, or set AGENT_FILE_ROOTS to folders of yours."


class SearchFilesInput(DeferredModel):
    """Arguments of `search_files`."""

    query: str = Field(min_length=1, max_length=200, description="words or a phrase; case and word forms do not matter")
    path: str = Field(default="", description="folder or file to search; empty for everything")
    pattern: str = Field(default="*", description="file name pattern, e.g. *.md", max_length=200)
    limit: int = Field(default=50, ge=1, le=500, description="most matches returned")


class Match(DeferredModel):
    """A matching line."""

    path: str
    line: int
    text: str


class SearchFilesOutput(DeferredModel):
    """The matching lines: those with the exact phrase first."""

    query: str
    matches: list[Match]
    truncated: bool


class SearchFilesTool(FileTool[SearchFilesInput, SearchFilesOutput]):
    """Searches text files for lines with the phrase, then for lines with every word in any form."""

    name = "search_files"
    description = (
        "Search the text of the user's files on disk (notes, code, logs) for words or a phrase; returns the lines that "
        "contain all of them, in any form and order. Not for documents that were read in: use search_knowledge."
    )
    tainted = True
    keywords = ("search", "find", "files", "grep", "contains", "mention", "look", "where", "documents", "notes")
    hints = PlanHints(commands=FILE_SEARCH, source="files", is_search=True)

    async def run(self, args: SearchFilesInput, context: ToolContext) -> SearchFilesOutput:
        return await _run_in_thread(lambda: self._search(args))

    def format_text(self, output: SearchFilesOutput) -> str:
        if not output.matches and output.truncated:
            return f"No file of the first {MAX_WALKED_ENTRIES:,} entries contains {output.query!r}; name a folder."
        if not output.matches:
            return f"No file contains {output.query!r}."
        lines = [f"{match.path}:{match.line}: {match.text}" for match in output.matches]
        return "\n".join([*lines, "[more matches; narrow the search]"] if output.truncated else lines)

    def list_sources(self, output: SearchFilesOutput) -> tuple[Source, ...]:
        """Each file once, with its lines."""
        quotes: dict[str, list[str]] = {}
        for match in output.matches:
            quotes.setdefault(match.path, []).append(match.text)
        return tuple(Source(id=n, name=path, quotes=tuple(q[:10])) for n, (path, q) in enumerate(quotes.items(), 1))

    def _search(self, args: SearchFilesInput) -> SearchFilesOutput:
        matcher = _LineMatcher(args.query)
        phrase: list[Match] = []
        words: list[Match] = []
        is_full, limit = False, WalkLimit()
        for place, _ in self._roots.walk(args.path, args.pattern, limit=limit):
            # A search for common words must not collect every line of every file.
            is_full = len(phrase) > args.limit or len(phrase) + len(words) > MAX_COLLECTED * args.limit
            if is_full:
                break
            for line_number, line in _read_lines(place):
                kind = matcher.match(line)
                if kind is not None:
                    hit = Match(path=place.display_path, line=line_number, text=line.strip()[:MAX_LINE_CHARS])
                    (phrase if kind == "phrase" else words).append(hit)
        matches = [*phrase, *words]
        truncated = is_full or limit.is_reached or len(matches) > args.limit
        return SearchFilesOutput(query=args.query, matches=matches[: args.limit], truncated=truncated)


class _LineMatcher:
    """Compares lines with a query: as a phrase, else by all its words, each as written or by its stem."""

    def __init__(self, query: str) -> None:
        self._phrase = " ".join(query.casefold().split())
        self._terms = {term: word for term, word in map_query_terms(query).items() if word}

    def match(self, line: str) -> Literal["phrase", "words"] | None:
        """Describes how the line matches; None if it does not."""
        if self._phrase in " ".join(line.casefold().split()):
            return "phrase"
        if not self._terms:
            return None
        folded = fold(line)
        # Stemming every line is slow, so the starts of the words are compared first.
        if not all(word in folded or term[:_PREFIX_CHARS] in folded for term, word in self._terms.items()):
            return None
        stems = frozenset(extract_terms(line))
        return "words" if all(word in folded or term in stems for term, word in self._terms.items()) else None


def _read_lines(place: FilePath) -> Iterator[tuple[int, str]]:
    """Yields a file's lines with their numbers; none if it is not a readable text file."""
    try:
        text = read_text(open_beneath(place.root, place.parts), place.display_path)
    except (ToolError, OSError):
        return
    yield from enumerate(text.splitlines(), start=1)
