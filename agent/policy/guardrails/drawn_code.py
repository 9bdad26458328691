"""Labels the code blocks of an answer so that no chat page draws or runs them by itself.

Open WebUI and others render blocks of some languages as soon as they are written, with every address in them, and a
program can put an address together. Such a block becomes a block of plain text. A diagram stays one if nothing in it
can name an address.
"""

import html
import re
from typing import Final

_LANGUAGES: Final = """
    html htm xhtml html5 svg xml css js javascript mjs jsx tsx vue svelte react iframe artifact mermaid vega vegalite
    plantuml puml uml kroki echarts chart chartjs plotly geojson topojson markmap
"""
DRAWN_LANGUAGES: Final = frozenset(_LANGUAGES.split())
"""Languages that chat pages draw or run without a click, alone or together with a page."""
DIAGRAM_CHARS: Final = 8_000
"""A longer diagram becomes text: a stream holds it back until it ends."""
_FENCE: Final = re.compile(r"(?<!`)(`{3,})([^`\n]*)|(?<!~)(~{3,})([^~\n]*)")
_DIAGRAM: Final = "mermaid"
_NAMES_ADDRESS: Final = re.compile(
    r"//|\\|<(?!br\b)[a-z/!?]|&[#\w]+;|#\w+;|\bclick\b|\burl\s*\(|@import|\bimg\b|\bicon\b", re.IGNORECASE
)
"""What an address in a diagram needs: slashes, escapes, tags other than `<br>`, and the words that load something."""


def label_fence(text: str, at: int, length: int, fence: str, *, final: bool) -> str | None:
    """The first line of a code block, `text[at:at + length]`, with a language that is safe to show.

    None if more text is needed to decide: of a diagram, its end.
    """
    line = text[at : at + length]
    if _list_words(line.strip().lstrip(fence[0])) != [_DIAGRAM]:
        return relabel_fences(line)
    limit = at + DIAGRAM_CHARS
    close = re.compile(rf"^ {{0,3}}{re.escape(fence)}{re.escape(fence[0])}*[ \t]*\n", re.MULTILINE)
    end = close.search(text, at + length, limit)
    if end is None and not final and len(text) < limit:
        return None
    body = text[at + length : end.start() if end else limit]
    is_whole = end is not None or (final and len(text) < limit)
    return line if is_whole and not _NAMES_ADDRESS.search(body) else relabel_fences(line)


def relabel_fences(line: str) -> str:
    """A line with the language `text` behind each fence that names a drawn one."""
    return _FENCE.sub(_relabel, line)


def _relabel(fence: re.Match[str]) -> str:
    marks, label = (fence[1], fence[2]) if fence[1] else (fence[3], fence[4])
    return f"{marks}text" if DRAWN_LANGUAGES.intersection(_list_words(label)) else fence[0]


def _list_words(label: str) -> list[str]:
    """The words of a block's label in lower case, as renderers read them: with entities and escapes decoded."""
    return re.findall(r"[a-z0-9]+", html.unescape(label).replace("\\", "").lower())
