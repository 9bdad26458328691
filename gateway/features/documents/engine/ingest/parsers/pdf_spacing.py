"""Letter-spaced text of a PDF's page: liteparse parts "INVOICE" into its letters where they stand far apart.

PDFium takes only the spaces of the file for spaces there, but where the file moves each letter: there it measures gaps.
"""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from gateway.features.documents.engine.ingest.parsers.draft import Block
from gateway.features.documents.engine.ingest.parsers.pdf_turned import get_turn
from gateway.features.documents.engine.ingest.parsers.pdfium_text import PageTextFacts

if TYPE_CHECKING:
    from liteparse import ParsedPage

_PARTED = re.compile(r"(?<!\S)(?:[^\W\d_]\s+){3}[^\W\d_](?!\S)")
"""Four letters in a row that are words each."""
_LONGEST = 2.2
"""Letters of the words of a letter-spaced line, in the mean."""
_MIN_WORDS = 2


def close_letters(blocks: Sequence[Block], page: "ParsedPage", facts: PageTextFacts) -> tuple[list[Block], bool]:
    """The blocks of a page with the words of its letter-spaced lines, and whether none seem to be parted."""
    closed = list(blocks)
    missing = [line for line in facts.closed if not _close_line(closed, line)]
    is_whole = not missing
    whole_lines = "".join("".join(facts.closed).split())
    texts = [" ".join(item.text.split()) for item in page.text_items if not get_turn(item)]
    spaced = [text for text in texts if _is_spaced(text) and text.replace(" ", "") not in whole_lines]
    written = facts.written
    places = [at for at, sign in enumerate(written) if spaced and not sign.isspace()]
    letters = "".join(map(written.__getitem__, places))
    words_by_text = {text: _find_words(text, written, letters, places) for text in set(spaced)}
    for text in spaced:
        words = words_by_text[text]
        is_whole = is_whole and not _PARTED.search(words)
        if words == text:
            continue
        place = next((at for at, block in enumerate(closed) if text in block.text), None)
        is_whole = is_whole and place is not None
        if place is not None:
            closed[place] = closed[place]._replace(text=closed[place].text.replace(text, words, 1))
    return closed, is_whole


def _close_line(blocks: list[Block], line: str) -> bool:
    """Puts the words of a line in the place of its letters; whether a block has them. Signs may differ."""
    signs = (re.escape(sign) if sign.isalnum() else r"[^\w\s]?" for sign in "".join(line.split()))
    pattern = re.compile(r"(?<!\S)" + r"\s*".join(signs) + r"(?!\S)")
    is_there = False
    for at, block in enumerate(blocks):
        for match in pattern.finditer(block.text):
            is_there = True
            if match[0] != line:  # another line has the same words
                blocks[at] = block._replace(text=block.text[: match.start()] + line + block.text[match.end() :])
                return True
    return is_there


def _is_spaced(text: str) -> bool:
    words = text.split(" ")
    return len(words) >= _MIN_WORDS and len(text) - len(words) + 1 <= _LONGEST * len(words)


def _find_words(text: str, written: str, letters: str, places: Sequence[int]) -> str:
    """The words that PDFium has of these letters, from the places of all `letters` in its text; the text itself if it
    parts them in several ways on the page."""
    sought = text.replace(" ", "")
    words = ""
    start = letters.find(sought)
    while start >= 0:
        between = " ".join(written[places[start] : places[start + len(sought) - 1] + 1].split())
        if words and between != words:
            return text
        words = between
        start = letters.find(sought, start + 1)
    return words if words and words.count(" ") < text.count(" ") else text
