"""Coloured code: Pygments' short class names, whose colours are in the page's style sheet."""

import html
from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pygments.lexer import Lexer

MAX_CODE_CHARS: Final = 50_000
"""Longest code that is coloured."""


def highlight(code: str, name: str, attributes: str) -> str:
    """The lines of a code block as HTML; uncoloured for an unknown language, or overlong code. The signature
    is the library's."""
    lexer = _find_lexer(name) if name and len(code) <= MAX_CODE_CHARS else None
    if lexer is None:
        return html.escape(code, quote=False)
    from pygments import highlight as colour  # noqa: PLC0415 - loaded with the first code block
    from pygments.formatters.html import HtmlFormatter  # noqa: PLC0415 - as above

    return str(colour(code, lexer, HtmlFormatter(nowrap=True)))


@lru_cache(maxsize=64)
def _find_lexer(name: str) -> "Lexer | None":
    from pygments.lexers import get_lexer_by_name  # noqa: PLC0415 - loaded with the first code block
    from pygments.util import ClassNotFound  # noqa: PLC0415 - as above

    try:
        return get_lexer_by_name(name.lower(), stripnl=False)
    except ClassNotFound:
        return None
