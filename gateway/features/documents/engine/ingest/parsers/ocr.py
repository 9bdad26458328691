"""OCR by the installed tesseract program: reads a page's picture into blocks with boxes and a confidence."""

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple

from gateway.features.documents.engine.ingest.parsers.draft import Block

_UNSURE_BELOW = 70
"""Percent. Below this mean word confidence about one word in five is wrong, by tesseract users' experience."""

_WORD_CHARS = 3
"""A paragraph of shorter words only adds nothing to a page's own text: edges in a photograph pass for letters."""

_PAGE_SECONDS = 60
_ORIENTATION_DATA = "osd"
"""The tesseract data that detects page orientation. It turns short texts upside down, so it is used only after the
words came out badly."""

_WORD_LEVEL = "5"
_COLUMNS = 12


class Picture(NamedTuple):
    """A page as PNG, and its resolution in dots per inch."""

    png: bytes
    dpi: float


@dataclass
class OcrPage:
    """The text of one page."""

    blocks: list[Block] = field(default_factory=list)
    confidence: float | None = None
    """Percent, the mean of the words; None if no word was read."""
    problem: str = ""
    """Why OCR gave no answer, as `OCR took more than 60 s`."""


class _Word(NamedTuple):
    paragraph: tuple[str, str]
    line: str
    box: tuple[int, int, int, int]
    confidence: float
    text: str


@dataclass(frozen=True)
class Tesseract:
    """The installed program and its languages (`eng+deu`). `detects_orientation`: orientation data is installed."""

    program: str
    languages: str
    detects_orientation: bool = False

    def read(self, picture: Picture, page: int) -> OcrPage:
        """Reads a page's paragraphs. A page that fails is an uncertainty, not a failure of the file."""
        words = self._read(picture, page, seconds=_PAGE_SECONDS)
        if not self.detects_orientation or words.confidence is None or words.confidence >= _UNSURE_BELOW:
            return words
        options = ("--psm", "1", "-c", "min_orientation_margin=0")  # the words decide, not OSD
        turned = self._read(picture, page, *options, seconds=_PAGE_SECONDS)
        return turned if (turned.confidence or 0) > words.confidence else words

    def read_sure(self, picture: Picture, page: int, seconds: float) -> OcrPage:
        """Reads in so many seconds, upright, only the paragraphs that are surely text: a photograph has words too."""
        return self._read(picture, page, seconds=seconds, is_strict=True)

    def _read(self, picture: Picture, page: int, *options: str, seconds: float, is_strict: bool = False) -> OcrPage:
        dpi = str(int(picture.dpi))
        command = [self.program, "stdin", "stdout", "-l", self.languages, "--dpi", dpi, *options, "tsv"]
        environment = {**os.environ, "OMP_THREAD_LIMIT": "1"}  # its threads slow each other down
        try:
            done = subprocess.run(  # noqa: S603 - a fixed program, no shell
                command, input=picture.png, capture_output=True, timeout=seconds, check=True, env=environment
            )
        except subprocess.TimeoutExpired:
            return OcrPage(problem=f"OCR took more than {seconds:.0f} s")
        except subprocess.CalledProcessError as error:
            reason = error.stderr.decode(errors="replace").strip().splitlines()[-1:] or ["no reason given"]
            return OcrPage(problem=f"tesseract says {reason[0]}")
        words = list(_iter_words(done.stdout.decode(errors="replace")))
        if is_strict:
            words = list(_iter_sure(words))
        if not words:
            return OcrPage()
        mean = sum(word.confidence for word in words) / len(words)
        return OcrPage(list(_iter_paragraphs(words, page, 72 / picture.dpi)), mean)


def find_tesseract(languages: str) -> Tesseract | None:
    """This machine's tesseract if it has all these languages, else None."""
    program = shutil.which("tesseract")
    if program is None or not set(languages.split("+")) <= (installed := _list_installed(program)):
        return None
    return Tesseract(program, languages, detects_orientation=_ORIENTATION_DATA in installed)


def list_installed_languages() -> frozenset[str]:
    """The OCR languages installed here; none without tesseract."""
    program = shutil.which("tesseract")
    return frozenset() if program is None else frozenset(_list_installed(program) - {_ORIENTATION_DATA})


def install_hint(languages: str) -> str:
    """The sentence that says how to install tesseract with these languages."""
    packages = " ".join(f"tesseract-ocr-{language.replace('_', '-').lower()}" for language in languages.split("+"))
    return (
        f"install tesseract with the languages {languages} to have them read (on Debian: apt-get install "
        f"tesseract-ocr {packages})"
    )


def describe_results(read: Mapping[int, OcrPage]) -> Iterator[str]:
    """Yields notes on pages read by OCR: one for all confident pages, one for each of the others."""
    sure = {page: words.confidence for page, words in read.items() if (words.confidence or 0) >= _UNSURE_BELOW}
    for page, words in read.items():
        if words.problem:
            yield f"page {page} was not read: {words.problem}"
        elif words.confidence is None:
            yield f"page {page}: OCR found no text"
        elif page not in sure:
            yield f"page {page}: OCR is unsure of its words (mean confidence {words.confidence:.0f} %)"
    if sure:
        mean = sum(confidence or 0 for confidence in sure.values()) / len(sure)
        yield f"{format_pages(list(sure))} read by OCR (mean confidence {mean:.0f} %)"


def format_pages(pages: Sequence[int]) -> str:
    """Formats pages as `page 2 was` or `pages 2, 5-9 were`. Pages must be in order."""
    runs: list[list[int]] = []
    for page in pages:
        if runs and page == runs[-1][-1] + 1:
            runs[-1].append(page)
        else:
            runs.append([page])
    page_list = ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
    return f"page {page_list} was" if len(pages) == 1 else f"pages {page_list} were"


def _list_installed(program: str) -> set[str]:
    done = subprocess.run(  # noqa: S603 - a fixed program, no shell
        [program, "--list-langs"], capture_output=True, timeout=_PAGE_SECONDS, check=False
    )
    # The first line is a title.
    return set(done.stdout.decode(errors="replace").partition("\n")[2].split())


def _iter_words(table: str) -> Iterator[_Word]:
    for line in table.splitlines():
        fields = line.split("\t")
        if len(fields) != _COLUMNS or fields[0] != _WORD_LEVEL or not fields[11].strip():
            continue
        left, top, width, height = (int(number) for number in fields[6:10])
        box = (left, top, left + width, top + height)
        yield _Word((fields[2], fields[3]), fields[4], box, float(fields[10]), fields[11])


def _iter_sure(words: list[_Word]) -> Iterator[_Word]:
    """Yields the words of the paragraphs with confident words."""
    for _, group in groupby(words, key=lambda word: word.paragraph):
        members = list(group)
        mean = sum(word.confidence for word in members) / len(members)
        if mean >= _UNSURE_BELOW and any(sum(map(str.isalnum, word.text)) >= _WORD_CHARS for word in members):
            yield from members


def _iter_paragraphs(words: list[_Word], page: int, scale: float) -> Iterator[Block]:
    for _, group in groupby(words, key=lambda word: word.paragraph):
        members = list(group)
        lefts, tops, rights, bottoms = zip(*(word.box for word in members), strict=True)
        corners = (min(lefts), min(tops), max(rights), max(bottoms))
        left, top, right, bottom = (round(corner * scale, 2) for corner in corners)
        lines = groupby(members, key=lambda word: word.line)
        text = "\n".join(" ".join(word.text for word in line) for _, line in lines)
        yield Block(text, "text", page, (left, top, right, bottom))
