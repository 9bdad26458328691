"""MathML of HTML pages as LaTeX in one line: "10" with a raised "3" is `10^{3}`, one half `\\frac{1}{2}`, not 12."""

from collections.abc import Callable
from typing import Any, TypeAlias

from agent.text.html.tables import BLOCKS

Element: TypeAlias = Any
"""An `lxml.html.HtmlElement`; lxml has no types."""

_SILENT = frozenset({"annotation", "annotation-xml", "none", "mprescripts", "mspace", "mphantom"})
_MAX_DEPTH = 100


def write_equations(root: Element) -> None:
    """Replaces the content of each equation of a page by its text."""
    for equation in list(root.iter("math")):
        if equation.getparent() is None:
            continue
        _remove_drawing(equation)
        text = " ".join(_format_children(equation, 0).split())
        attributes, tail = dict(equation.attrib), equation.tail
        equation.clear()
        equation.attrib.update(attributes)
        equation.text, equation.tail = text, tail


def _remove_drawing(equation: Element) -> None:
    """Removes the drawing of an equation beside it, as KaTeX and MathJax make one: it says the same again, and is
    marked as not for readers who cannot see it."""
    box = equation
    while (parent := box.getparent()).tag not in BLOCKS and _is_wrapper(parent):
        if (box.tail or "").strip():
            return
        box = parent
    before = box.getprevious()
    is_behind = before is not None and not (before.tail or "").strip() and _is_drawing(before)
    for one in (before if is_behind else None, None if (box.tail or "").strip() else box.getnext()):
        if one is not None and _is_drawing(one):
            one.drop_tree()


def _is_wrapper(element: Element) -> bool:
    """Whether an element has nothing but another one, and is part of a page."""
    return len(element) == 1 and not (element.text or "").strip() and element.getparent() is not None


def _is_drawing(element: Element) -> bool:
    return element.get("aria-hidden") == "true" and next(element.iter("math"), None) is None


def _format(element: Element, depth: int) -> str:
    tag = element.tag
    if not isinstance(tag, str) or depth > _MAX_DEPTH:
        return ""
    if tag == "maction":  # the first of its children is shown
        return "".join(_format(child, depth + 1) for child in list(element)[:1])
    return "" if tag in _SILENT else _FORMATS.get(tag, _format_children)(element, depth + 1)


def _format_children(element: Element, depth: int) -> str:
    parts = [element.text or ""]
    for child in element:
        parts += [_format(child, depth), child.tail or ""]
    return "".join(parts)


def _list_parts(element: Element, depth: int, count: int) -> list[str]:
    """The texts of the first `count` children; missing ones are empty."""
    parts = [_format(child, depth).strip() for child in element if isinstance(child.tag, str)]
    return [*parts, *[""] * count][:count]


def _format_fraction(element: Element, depth: int) -> str:
    top, bottom = _list_parts(element, depth, 2)
    return rf"\frac{{{top}}}{{{bottom}}}"


def _format_scripts(element: Element, depth: int) -> str:
    base, *scripts = _list_parts(element, depth, 3)
    below, above = ("", scripts[0]) if element.tag in {"msup", "mover"} else scripts
    return _group(base) + (f"_{{{below}}}" if below else "") + (f"^{{{above}}}" if above else "")


def _format_root(element: Element, depth: int) -> str:
    if element.tag == "msqrt":
        return rf"\sqrt{{{_format_children(element, depth).strip()}}}"
    base, degree = _list_parts(element, depth, 2)
    return rf"\sqrt[{degree}]{{{base}}}"


def _format_rows(element: Element, depth: int) -> str:
    rows = [" & ".join(_list_parts(row, depth, len(row))) for row in element if row.tag in {"mtr", "mlabeledtr"}]
    return r"\begin{matrix}" + r" \\ ".join(rows) + r"\end{matrix}"


def _group(text: str) -> str:
    """The text in braces unless it is a word or a number, so that a script belongs to the whole of it."""
    return text if text.isalnum() or len(text) < 2 else f"{{{text}}}"


_FORMATS: dict[str, Callable[[Element, int], str]] = {
    "mfrac": _format_fraction,
    "msqrt": _format_root,
    "mroot": _format_root,
    "mtable": _format_rows,
    **dict.fromkeys(("msup", "msub", "msubsup", "mover", "munder", "munderover"), _format_scripts),
}
