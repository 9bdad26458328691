"""Office Math (ECMA-376 part 1, 22.1) as LaTeX in one line. Letters and operators stay as they are."""

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

Element: TypeAlias = Any
"""An lxml element; lxml has no types."""

MATH = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_VALUE = f"{MATH}val"
_FUNCTIONS = frozenset({"sin", "cos", "tan", "cot", "log", "ln", "exp", "lim", "min", "max", "det", "gcd", "arg"})
_SUMS = {
    "∑": r"\sum",
    "∏": r"\prod",
    "∫": r"\int",
    "∬": r"\iint",
    "∮": r"\oint",
    "\u22c3": r"\bigcup",
    "\u22c2": r"\bigcap",
}
_ACCENTS = {"\u0302": r"\hat", "\u0303": r"\tilde", "\u0304": r"\bar", "\u0305": r"\overline", "\u20d7": r"\vec"}
_LEFT_OUT = frozenset({"del", "moveFrom", "delText", "instrText"})
"""Text that tracked changes have removed. Elements whose name ends in `Pr` hold properties."""


def format_equation(element: Element) -> str:
    """An `m:oMath` or `m:oMathPara` as LaTeX."""
    return " ".join(_format(element).split())


def _format(element: Element) -> str:
    name = element.tag.rpartition("}")[2]
    return _FORMATS.get(name, _format_children)(element)


def _format_children(element: Element) -> str:
    return "".join(_format(child) for child in _iter_content(element))


def _iter_content(element: Element) -> Iterator[Element]:
    for child in element:
        if isinstance(child.tag, str):
            name = child.tag.rpartition("}")[2]
            if name not in _LEFT_OUT and not name.endswith("Pr"):
                yield child


def _format_text(element: Element) -> str:
    return element.text or ""


def _read_part(element: Element, name: str) -> str:
    part = element.find(f"{MATH}{name}")
    return "" if part is None else _format_children(part)


def _read_property(element: Element, name: str, default: str) -> str:
    """A property of the element, which is in its `...Pr`; an empty value stays empty."""
    for properties in element:
        if isinstance(properties.tag, str) and properties.tag.endswith("Pr"):
            child = properties.find(f"{MATH}{name}")
            if child is not None:
                return str(child.get(_VALUE, default))
    return default


def _format_fraction(element: Element) -> str:
    top, bottom = _read_part(element, "num"), _read_part(element, "den")
    if _read_property(element, "type", "bar") in {"lin", "skw"}:
        return f"{_group(top)}/{_group(bottom)}"
    return rf"\frac{{{top}}}{{{bottom}}}"


def _format_script(element: Element) -> str:
    below, above = _read_part(element, "sub"), _read_part(element, "sup")
    base = _group(_read_part(element, "e"))
    return base + (f"_{{{below}}}" if below else "") + (f"^{{{above}}}" if above else "")


def _format_prescript(element: Element) -> str:
    return f"{{}}_{{{_read_part(element, 'sub')}}}^{{{_read_part(element, 'sup')}}}{_read_part(element, 'e')}"


def _format_root(element: Element) -> str:
    degree = _read_part(element, "deg")
    return r"\sqrt" + (f"[{degree}]" if degree else "") + f"{{{_read_part(element, 'e')}}}"


def _format_sum(element: Element) -> str:
    sign = _read_property(element, "chr", "∫")
    below, above = _read_part(element, "sub"), _read_part(element, "sup")
    limits = (f"_{{{below}}}" if below else "") + (f"^{{{above}}}" if above else "")
    return f"{_SUMS.get(sign, sign)}{limits} {_read_part(element, 'e')}"


def _format_brackets(element: Element) -> str:
    left, right = _read_property(element, "begChr", "("), _read_property(element, "endChr", ")")
    between = _read_property(element, "sepChr", "|")
    inner = [_format_children(part) for part in element.findall(f"{MATH}e")]
    return f"{_escape(left)}{between.join(inner)}{_escape(right)}"


def _format_function(element: Element) -> str:
    name = _read_part(element, "fName").strip()
    return f"{_name(name)} {_group(_read_part(element, 'e'))}"


def _format_limit(element: Element) -> str:
    sign = "_" if element.tag == f"{MATH}limLow" else "^"
    base = _read_part(element, "e").strip()
    return f"{_name(base)}{sign}{{{_read_part(element, 'lim')}}}"


def _format_matrix(element: Element) -> str:
    rows = [
        " & ".join(_format_children(cell) for cell in row.findall(f"{MATH}e")) for row in element.findall(f"{MATH}mr")
    ]
    return r"\begin{matrix}" + r" \\ ".join(rows) + r"\end{matrix}"


def _format_lines(element: Element) -> str:
    return r" \\ ".join(_format_children(part) for part in element.findall(f"{MATH}e"))


def _format_accent(element: Element) -> str:
    sign = _read_property(element, "chr", "\u0302")
    accent = _ACCENTS.get(sign) or rf"\overset{{{sign}}}"
    return f"{accent}{{{_read_part(element, 'e')}}}"


def _format_bar(element: Element) -> str:
    line = r"\overline" if _read_property(element, "pos", "bot") == "top" else r"\underline"
    return f"{line}{{{_read_part(element, 'e')}}}"


def _group(text: str) -> str:
    """The text in braces unless it is one character, so that a script belongs to the whole of it."""
    return text if len(text) < 2 else f"{{{text}}}"


def _name(text: str) -> str:
    """The LaTeX name of a function; any other text as a group."""
    return f"\\{text}" if text in _FUNCTIONS else _group(text)


def _escape(bracket: str) -> str:
    return f"\\{bracket}" if bracket in {"{", "}"} else bracket


_FORMATS: dict[str, Callable[[Element], str]] = {
    "t": _format_text,
    "f": _format_fraction,
    "sSup": _format_script,
    "sSub": _format_script,
    "sSubSup": _format_script,
    "sPre": _format_prescript,
    "rad": _format_root,
    "nary": _format_sum,
    "d": _format_brackets,
    "func": _format_function,
    "limLow": _format_limit,
    "limUpp": _format_limit,
    "m": _format_matrix,
    "eqArr": _format_lines,
    "acc": _format_accent,
    "bar": _format_bar,
}
