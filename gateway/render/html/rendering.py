"""`render_markdown`: a whole text as clean HTML."""

import html
import re
from collections.abc import Iterator
from typing import Any, Final

from agent.core.surrogates import replace_surrogates
from gateway.render.html.blocks import split_finished
from gateway.render.html.cleaning import clean_html
from gateway.render.html.formulas import put_formulas
from gateway.render.html.limits import PLAIN_PIECE_CHARS, RenderBudget, cut_plain_piece
from gateway.render.html.parser import get_parser

_PLAIN_NOTE: Final = "<p><em>This text is too long to format. The rest is shown as plain text.</em></p>\n"


def render_markdown(text: str, prefix: str = "text") -> str:
    """A text as HTML that holds nothing but an allow-list of elements (`cleaning.py`). Ids of its footnotes
    begin with `prefix`, so that those of several texts on one page differ.

    Of an overlong text (`limits.py`), the last blocks are plain paragraphs.
    """
    text = replace_surrogates(text).replace("\x00", "\ufffd")
    fits = RenderBudget().measure(text)
    if fits == len(text):
        return _render(text, prefix)
    whole = "".join(split_finished(text[:fits])[0])
    return _render(whole, prefix) + _PLAIN_NOTE + "".join(_write_plain(text[len(whole) :]))


def _render(text: str, prefix: str) -> str:
    env: dict[str, Any] = {"docId": re.sub(r"[^\w.-]", "", prefix)[:60] or "text"}
    return put_formulas(clean_html(get_parser().render(text, env)), env)


def _write_plain(text: str) -> Iterator[str]:
    at = 0
    while at < len(text):
        piece = cut_plain_piece(text[at : at + PLAIN_PIECE_CHARS + 1])
        yield f'<p class="plaintext">{html.escape(piece, quote=False)}</p>\n'
        at += len(piece)
