"""Coverage: over words, the sum of min(count in the source, count in the document) over the count in the source."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from math import inf
from typing import cast

from gateway.features.documents.engine.ingest.coverage.cells import count_lost_cells
from gateway.features.documents.engine.ingest.coverage.source_text import SourceText, count_letters, split_words
from gateway.features.documents.engine.search.models import Coverage, FileType

_SOURCES: Mapping[FileType, str] = {
    "docx": "word_source",
    "pptx": "slides_source",
    "xlsx": "sheets_source",
    "html": "html_source",
    "eml": "mail_source",
    "pdf": "pdf_source",
    "md": "text_source",
    "txt": "text_source",
    "csv": "text_source",
}
"""The module that reads the source of each type; only worker processes import them."""

_FEW = 3
"""Characters that may be written otherwise, for which no page is drawn."""

NATIVE_MEASURES: frozenset[FileType] = frozenset({"pdf"})
"""The types whose source is read by native code, which a file may bring down although its reader reads it."""

ReadSource = Callable[[bytes, FileType, str, float], SourceText]


def load_source(file_type: FileType) -> ReadSource:
    """The function that reads the source of a type: bytes, type, encoding (empty if unknown) and deadline."""
    return cast(
        "ReadSource",
        import_module(f"gateway.features.documents.engine.ingest.coverage.{_SOURCES[file_type]}").read_source,
    )


def measure_coverage(
    data: bytes, file_type: FileType, texts: Iterable[str], *, encoding: str = "", deadline: float = inf
) -> Coverage | None:
    """Measures how much of a file's text is in the texts of its document; None if the file has no text to count, or
    an extension reads its type.

    `encoding` is that of a plain text file as the reader found it; `deadline` is on `time.monotonic`. Raises what
    damaged files make the standard library raise, and TimeoutError at the deadline.
    """
    if file_type not in _SOURCES:
        return None  # the type of an extension's parser
    source = load_source(file_type)(data, file_type, encoding, deadline)
    return compare_texts(source, texts)


def compare_texts(source: SourceText, texts: Iterable[str]) -> Coverage | None:
    """Compares what a file shows with the texts of its document."""
    texts = list(texts)
    total = 0
    missing: Counter[str] = Counter()
    for compare in (_compare_words, _compare_characters, count_lost_cells):
        counted, lost = compare(source, texts)
        total += counted
        missing.update(lost)
    if total == 0:
        return None
    return Coverage(
        share=round(1 - missing.total() / total, 4),
        unit=source.unit,
        total=total,
        missing={kind: count for kind, count in missing.items() if count},
        omitted={kind: count for kind, count in source.omitted.items() if count},
    )


def _compare_words(source: SourceText, texts: Sequence[str]) -> tuple[int, dict[str, int]]:
    if not source.words and not source.loose:
        return 0, {}
    left: Counter[str] = Counter()
    for text in texts:
        left.update(split_words(text))
    lost: dict[str, int] = {}
    for kind, words in source.words.items():
        lost[kind] = (words - left).total()
        left -= words
    for kind, words in source.loose.items():
        lost[kind] = lost.get(kind, 0) + _count_lost(words, left)
        left -= words
    for kind, words in source.optional.items():
        source.omitted[kind] += (words - left).total()
        left -= words
    return sum(words.total() for words in (*source.words.values(), *source.loose.values())), lost


def _count_lost(words: Counter[str], left: Counter[str]) -> int:
    """Measures how many words are missing, as their share of the characters that are nowhere in the words left."""
    lost = words - left
    wanted = count_letters("".join(lost.elements()))
    if not wanted:
        return 0
    letters = count_letters("".join((left - words).elements()))
    return round(lost.total() * (wanted - letters).total() / wanted.total())


def _compare_characters(source: SourceText, texts: Sequence[str]) -> tuple[int, dict[str, int]]:
    if not source.characters:
        return 0, {}
    left: Counter[str] = Counter()
    for text in texts:
        left.update(count_letters(text))
    lost: dict[str, Counter[str]] = {}
    for kind, letters in source.characters.items():
        lost[kind] = letters - left
        left -= letters
    total = sum(letters.total() for letters in source.characters.values())
    if source.list_unseen is not None and sum(letters.total() for letters in lost.values()) > _FEW:
        unseen = count_letters("".join(source.list_unseen()))
        for kind, letters in lost.items():
            hidden = letters & unseen
            unseen -= hidden
            lost[kind] = letters - hidden
            source.omitted["characters that nobody sees"] += hidden.total()
            total -= hidden.total()
    return total, {kind: letters.total() for kind, letters in lost.items()}
