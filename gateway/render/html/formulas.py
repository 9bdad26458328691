"""Formulas in LaTeX as MathML. They replace their placeholders after the HTML has been cleaned.

The converter copies the content of a formula, markup and addresses too. Its tree is therefore written out here: known
elements and attributes only, all text escaped.
"""

import contextlib
import html
import re
import secrets
from functools import lru_cache
from typing import Any, Final
from xml.etree.ElementTree import Element

MAX_FORMULA_CHARS: Final = 2_000
MAX_FORMULA_NESTING: Final = 40
"""Deepest braces of a formula. The converter calls itself for each."""
_KEY = "formulas"
_ENVIRONMENTS: Final = {
    "aligned": "align*", "alignedat": "align*", "dcases": "cases", "equation": "align*", "equation*": "align*",
    "gather": "align*", "gather*": "align*", "gathered": "align*", "multline": "align*", "multline*": "align*",
}  # fmt: skip
"""Environments that look like another one, which the converter knows."""
_ENVIRONMENT = re.compile(
    rf"\\(?P<side>begin|end)\{{(?P<name>{'|'.join(map(re.escape, sorted(_ENVIRONMENTS, reverse=True)))})\}}"
)
_ELEMENTS: Final = frozenset(
    {
        "math", "menclose", "mfrac", "mi", "mmultiscripts", "mn", "mo", "mover", "mpadded", "mphantom", "mprescripts",
        "mroot", "mrow", "mspace", "msqrt", "mstyle", "msub", "msubsup", "msup", "mtable", "mtd", "mtext", "mtr",
        "munder", "munderover", "none",
    }
)  # fmt: skip
_ATTRIBUTES: Final = frozenset(
    {
        "accent", "accentunder", "columnalign", "columnlines", "columnspacing", "depth", "display", "displaystyle",
        "fence", "form", "height", "linethickness", "lspace", "mathvariant", "maxsize", "minsize", "movablelimits",
        "notation", "rowlines", "rowspacing", "rspace", "scriptlevel", "separator", "stretchy", "symmetric", "voffset",
        "width",
    }
)  # fmt: skip
"""None that loads, links, runs or colours anything."""


def keep_formula(latex: str, env: dict[str, Any], *, block: bool, is_alone: bool = False) -> str:
    """Notes a formula in the environment of a rendering, and returns its placeholder: a text that no one can guess.

    `block` is for a formula on lines of its own, `is_alone` for one that no paragraph holds."""
    formulas = env.setdefault(_KEY, {})
    mark = f"formula{secrets.token_hex(8)}x"
    formulas[mark] = (latex.strip(), block)
    return f"<p>{mark}</p>\n" if is_alone else mark


def put_formulas(cleaned: str, env: dict[str, Any]) -> str:
    """Clean HTML with the formulas in place of their placeholders."""
    formulas: dict[str, tuple[str, bool]] = env.get(_KEY, {})
    if not formulas:
        return cleaned
    marks = re.compile("|".join(formulas))
    return marks.sub(lambda found: _convert(*formulas[found[0]]), cleaned)


@lru_cache(maxsize=500)
def _convert(latex: str, block: bool) -> str:
    """A formula as MathML; one that cannot be read as its source."""
    from latex2mathml.converter import convert_to_element  # noqa: PLC0415 - loaded with the first formula

    if len(latex) <= MAX_FORMULA_CHARS and _measure_nesting(latex) <= MAX_FORMULA_NESTING:
        # Whatever the converter cannot read, for whichever reason, is shown as it was written.
        with contextlib.suppress(Exception):
            element = convert_to_element(_rename_environments(latex), display="block" if block else "inline")
            if _is_understood(element):
                return _write_element(element)
    return f'<code class="formula">{html.escape(latex)}</code>'


def _rename_environments(latex: str) -> str:
    """A formula with environments that the converter knows in place of those that look the same."""
    renamed = _ENVIRONMENT.sub(lambda mark: f"\\{mark['side']}{{{_ENVIRONMENTS[mark['name']]}}}", latex)
    return renamed.replace("\\operatorname*", "\\operatorname")


def _is_understood(element: Element) -> bool:
    """Whether the converter knew all of a formula: it writes a command that it does not know as a name, and drops the
    columns and the ends of lines that are in no table."""
    texts = (html.unescape(one.text or "").strip() for one in element.iter() if one.tag in ("mi", "mo", "mtext"))
    breaks = (one.get("linebreak") for one in element.iter("mspace"))
    return not any(text.startswith("\\") or text == "&" for text in texts) and not any(breaks)


def _write_element(element: Element) -> str:
    """An element of a formula as HTML; of an unknown one only what it holds. Texts have entities in them."""
    inner = _escape(element.text) + "".join(_write_element(child) + _escape(child.tail) for child in element)
    if element.tag not in _ELEMENTS:
        return inner
    given = "".join(f' {name}="{_escape(value)}"' for name, value in element.attrib.items() if name in _ATTRIBUTES)
    return f"<{element.tag}{given}>{inner}</{element.tag}>"


def _escape(text: str | None) -> str:
    return html.escape(html.unescape(text or ""))


def _measure_nesting(latex: str) -> int:
    depth = deepest = 0
    for sign in latex:
        depth += (sign == "{") - (sign == "}")
        deepest = max(deepest, depth)
    return deepest
