"""OCR by the tesseract program, where it is installed: a page's picture in, blocks with boxes and doubts out."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple

from agent.knowledge.parsers.draft import Block

_DOUBTFUL = 70
"""Percent; below a mean word confidence of this, tesseract's own users find about one word in five wrong."""

_PAGE_SECONDS = 60
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
    uncertainties: list[str] = field(default_factory=list)


class _Word(NamedTuple):
    paragraph: tuple[str, str]
    line: str
    box: tuple[int, int, int, int]
    confidence: float
    text: str


@dataclass(frozen=True)
class Tesseract:
    """The installed program with the languages to look for (`eng+deu`)."""

    program: str
    languages: str

    def read(self, picture: Picture, page: int) -> Words:
        """The page's paragraphs. A page that tesseract fails on is an uncertainty, never a failure of the file."""
        command = [self.program, "stdin", "stdout", "-l", self.languages, "--dpi", str(int(picture.dpi)), "tsv"]
        environment = {**os.environ, "OMP_THREAD_LIMIT": "1"}  # its threads slow each other down
        try:
            done = subprocess.run(  # noqa: S603 - a fixed program, no shell
                command, input=picture.png, capture_output=True, timeout=_PAGE_SECONDS, check=True, env=environment
            )
        except subprocess.TimeoutExpired:
            return Words(uncertainties=[f"page {page} was not read: OCR took more than {_PAGE_SECONDS} s"])
        except subprocess.CalledProcessError as error:
            reason = error.stderr.decode(errors="replace").strip().splitlines()[-1:] or ["no reason given"]
            return Words(uncertainties=[f"page {page} was not read: tesseract says {reason[0]}"])
        words = list(_words(done.stdout.decode(errors="replace")))
        return Words(list(_paragraphs(words, page, 72 / picture.dpi)), list(_doubts(words, page)))


def find(languages: str) -> Tesseract | None:
    """The tesseract of this machine, if it has one with all these languages."""
    program = shutil.which("tesseract")
    if program is None or not set(languages.split("+")) <= _installed(program):
        return None
    return Tesseract(program, languages)


def missing(languages: str) -> str:
    """What to install, in words."""
    return f"install tesseract with the languages {languages} to have them read"


def _installed(program: str) -> set[str]:
    done = subprocess.run(  # noqa: S603 - a fixed program, no shell
        [program, "--list-langs"], capture_output=True, timeout=_PAGE_SECONDS, check=False
    )
    return set(done.stdout.decode(errors="replace").split())


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


def _doubts(words: list[_Word], page: int) -> Iterator[str]:
    if not words:
        yield f"page {page}: OCR found no text"
    elif (mean := sum(word.confidence for word in words) / len(words)) < _DOUBTFUL:
        yield f"page {page}: OCR is unsure of its words (mean confidence {mean:.0f} %)"
    else:
        yield f"page {page} was read by OCR (mean confidence {mean:.0f} %)"
