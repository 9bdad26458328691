"""`render_markdown`: a whole text as clean HTML."""

import re
from typing import Any

from agent.core.surrogates import replace_surrogates
from gateway.render.html.cleaning import clean_html
from gateway.render.html.formulas import put_formulas
from gateway.render.html.parser import get_parser


def render_markdown(text: str, prefix: str = "text") -> str:
    """A text as HTML that holds nothing but an allow-list of elements (`cleaning.py`). Ids of its footnotes
    begin with `prefix`, so that those of several texts on one page differ.
    """
    text = replace_surrogates(text).replace("\x00", "\ufffd")
    env: dict[str, Any] = {"docId": re.sub(r"[^\w.-]", "", prefix)[:60] or "text"}
    return put_formulas(clean_html(get_parser().render(text, env)), env)
