"""OCR by the tesseract program, where it is installed: a page's picture in, blocks with boxes and doubts out."""

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple

from agent.knowledge.parsers.draft import Block

_DOUBTFUL = 70
"""Percent; below a mean word confidence of this, tesseract's own users find about one word in five wrong."""

_PAGE_SECONDS = 60
_TURNING = "osd"
"""The data by which tesseract sees which way up a page is. Always asked, it turns short texts upside down; so it is
asked where the words make no sense."""

_WORD_LEVEL = "5"
_COLUMNS = 12


class Picture(NamedTuple):
    """A page as PNG, and the dots an inch it was drawn with."""

    png: bytes
    dpi: float


@dataclass
class Words:
    """What was read on one page."""

    blocks: list[Block] = field(default_factory=list)
    confidence: float | None = None
    """Percent, the mean of the words'; None where no word was read."""
    problem: str = ""
    """Why the page was not read."""


class _Word(NamedTuple):
    paragraph: tuple[str, str]
    line: str
    box: tuple[int, int, int, int]
    confidence: float
    text: str


@dataclass(frozen=True)
class Tesseract:
    """The installed program with the languages to look for (`eng+deu`); `turns` says that it sees which way up is."""

    program: str
    languages: str
    turns: bool = False

    def read(self, picture: Picture, page: int) -> Words:
        """The page's paragraphs. A page that tesseract fails on is an uncertainty, never a failure of the file."""
        words = self._read(picture, page)
        if not self.turns or words.confidence is None or words.confidence >= _DOUBTFUL:
            return words
        turned = self._read(picture, page, "--psm", "1", "-c", "min_orientation_margin=0")  # the words decide, not OSD
        return turned if (turned.confidence or 0) > words.confidence else words

    def _read(self, picture: Picture, page: int, *options: str) -> Words:
        dpi = str(int(picture.dpi))
        command = [self.program, "stdin", "stdout", "-l", self.languages, "--dpi", dpi, *options, "tsv"]
        environment = {**os.environ, "OMP_THREAD_LIMIT": "1"}  # its threads slow each other down
        try:
            done = subprocess.run(  # noqa: S603 - a fixed program, no shell
                command, input=picture.png, capture_output=True, timeout=_PAGE_SECONDS, check=True, env=environment
            )
        except subprocess.TimeoutExpired:
            return Words(problem=f"page {page} was not read: OCR took more than {_PAGE_SECONDS} s")
        except subprocess.CalledProcessError as error:
            reason = error.stderr.decode(errors="replace").strip().splitlines()[-1:] or ["no reason given"]
            return Words(problem=f"page {page} was not read: tesseract says {reason[0]}")
        words = list(_words(done.stdout.decode(errors="replace")))
        if not words:
            return Words(problem=f"page {page}: OCR found no text")
        mean = sum(word.confidence for word in words) / len(words)
        return Words(list(_paragraphs(words, page, 72 / picture.dpi)), mean)


def find(languages: str) -> Tesseract | None:
    """The tesseract of this machine, if it has one with all these languages."""
    program = shutil.which("tesseract")
    if program is None or not set(languages.split("+")) <= (installed := _installed(program)):
        return None
    return Tesseract(program, languages, turns=_TURNING in installed)


def installed() -> frozenset[str]:
    """The languages that scanned pages can be read in here; none without tesseract."""
    program = shutil.which("tesseract")
    return frozenset() if program is None else frozenset(_installed(program) - {_TURNING})


def missing(languages: str) -> str:
    """What to install, in words."""
    packages = " ".join(f"tesseract-ocr-{language.replace('_', '-').lower()}" for language in languages.split("+"))
    return (
        f"install tesseract with the languages {languages} to have them read (on Debian: apt-get install "
        f"tesseract-ocr {packages})"
    )


def doubts(read: Mapping[int, Words]) -> Iterator[str]:
    """What a reader should know of the pages that were given to OCR: one line for all it is sure of, one for each of
    the others."""
    sure = {page: words.confidence for page, words in read.items() if (words.confidence or 0) >= _DOUBTFUL}
    for page, words in read.items():
        if words.problem:
            yield words.problem
        elif page not in sure:
            yield f"page {page}: OCR is unsure of its words (mean confidence {words.confidence:.0f} %)"
    if sure:
        mean = sum(confidence or 0 for confidence in sure.values()) / len(sure)
        yield f"{listed(list(sure))} read by OCR (mean confidence {mean:.0f} %)"


def listed(pages: Sequence[int]) -> str:
    """`page 2 was`, `pages 2, 5-9 were`; the pages in order."""
    runs: list[list[int]] = []
    for page in pages:
        if runs and page == runs[-1][-1] + 1:
            runs[-1].append(page)
        else:
            runs.append([page])
    shown = ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
    return f"page {shown} was" if len(pages) == 1 else f"pages {shown} were"


def _installed(program: str) -> set[str]:
    done = subprocess.run(  # noqa: S603 - a fixed program, no shell
        [program, "--list-langs"], capture_output=True, timeout=_PAGE_SECONDS, check=False
    )
    # The first line is a title.
    return set(done.stdout.decode(errors="replace").partition("\n")[2].split())


def _words(table: str) -> Iterator[_Word]:
    for line in table.splitlines():
        fields = line.split("\t")
        if len(fields) != _COLUMNS or fields[0] != _WORD_LEVEL or not fields[11].strip():
            continue
        left, top, width, height = (int(number) for number in fields[6:10])
        box = (left, top, left + width, top + height)
        yield _Word((fields[2], fields[3]), fields[4], box, float(fields[10]), fields[11])


def _paragraphs(words: list[_Word], page: int, scale: float) -> Iterator[Block]:
    for _, group in groupby(words, key=lambda word: word.paragraph):
        members = list(group)
        lefts, tops, rights, bottoms = zip(*(word.box for word in members), strict=True)
        corners = (min(lefts), min(tops), max(rights), max(bottoms))
        left, top, right, bottom = (round(corner * scale, 2) for corner in corners)
        lines = groupby(members, key=lambda word: word.line)
        text = "\n".join(" ".join(word.text for word in line) for _, line in lines)
        yield Block(text, "text", page, (left, top, right, bottom))
