"""The text that style sheets add before and behind elements (`::before`, `::after`), with their counters.

A browser shows it as text: units behind prices, numbers of sections, labels of cells. Signs of icon fonts mean
something in their font alone, and are left out.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import Any, TypeAlias

import tinycss2  # type: ignore[import-untyped]
from lxml import etree  # type: ignore[import-untyped]

from agent.text.html.lists import find_start, find_step, find_value, format_counter
from agent.text.html.styles import Generated, Side, read_own_style
from agent.text.html.tables import SPACED

Element: TypeAlias = Any
"""An `lxml.html.HtmlElement`; lxml has no types."""

_WITHOUT_BOXES = frozenset({"area", "br", "embed", "hr", "img", "input", "meta", "option", "select", "textarea", "wbr"})
"""Elements that have no content of their own, to which nothing is added."""
_QUOTES = {"open-quote": "\u201c", "close-quote": "\u201d"}
_IN_LINE = frozenset({"", "inline", "contents"})
_ZERO = re.compile(r"[+-]?(?:0++\.?0*+|\.0++)(?:[a-z]+|%)?")
_AWAY = re.compile(r"-\d{3,}(?:\.\d+)?(?:px|r?em|%|vw|vh)")
"""A place that is outside of every screen."""
_NOTHING = re.compile(r"rect\(\s*(?:0(?:px)?[\s,]*|1px[\s,]*){4}\)|inset\(\s*(?:50|100)%\s*\)")
_NO_SIZE = re.compile(r"scale(?:3d|x|y)?\(\s*+0*+\.?0*+\s*+[,)]")
_SIGNS = re.compile("[\u2190-\u21ff\u25a0-\u25ff]")
"""Arrows and shapes."""
_SEPARATORS = re.compile(
    r"[-\s,;.:|/\\*~_\u00a6\u00b7\u00ab\u00bb\u2010-\u2015\u2022-\u2027\u2039\u203a\u2043\u204c\u204d"
    r"\u2190-\u21ff\u25a0-\u25ff\u276e-\u2771\u3001\u30fb]*"
)
"""Bullets and what parts the items of a list. Other signs, such as those of percent, belong to an item."""
_INTEGER = re.compile(r"[-+]?\d{1,9}")
_LIST_ITEM = "list-item"
"""The counter that every list has (CSS Lists 3, 4.6)."""
_LISTS = frozenset({"ol", "ul", "menu"})
_MAX_LENGTH = 500
"""Characters of a text: a sheet may add one to each element of a page."""
_MAX_TOTAL = 200_000


def add_generated(body: Element, generated: Generated) -> None:
    """Puts the text that sheets add to the elements of a page without hidden ones into these."""
    if not generated:
        return
    counters = _Counters()
    counts_items = any(_LIST_ITEM in values.get("content", "") for values in generated.values())
    left = _MAX_TOTAL
    for event, element in list(etree.iterwalk(body, events=("start", "end"))):
        if not isinstance(element.tag, str) or element.tag in _WITHOUT_BOXES:
            continue
        if event == "start" and "counter" in (style := element.get("style", "").lower()):
            counters.enter(element, read_own_style(style))
        if event == "start" and counts_items:
            counters.count_item(element)
        side: Side = "before" if event == "start" else "after"
        if values := generated.get((element, side)):
            counters.enter(element, values)
            text = _write(values, element, counters) if left > 0 else ""
            left -= len(text)
            _insert(element, side, text, values)
        if event == "end":
            counters.leave(element)


@dataclass
class _Counters:
    """The counters of a page (CSS Lists 3, 4.4). Each belongs to the parent of the element that makes it."""

    _stacks: dict[str, list[tuple[Element, int]]] = field(default_factory=dict)

    def enter(self, element: Element, own: Mapping[str, str]) -> None:
        """Changes the counters that an element, or a box of it, names."""
        if not any(name.startswith("counter") for name in own):
            return
        for name, value in _iter_changes(own.get("counter-reset", ""), 0):
            self._make(name, element, value)
        for name, value in _iter_changes(own.get("counter-increment", ""), 1):
            self._change(name, element, value, is_added=True)
        for name, value in _iter_changes(own.get("counter-set", ""), 0):
            self._change(name, element, value, is_added=False)

    def count_item(self, element: Element) -> None:
        """Changes the counter that lists have of themselves."""
        if element.tag in _LISTS:
            self._make(_LIST_ITEM, element, find_start(element) - find_step(element))
        elif element.tag == "li":
            value = find_value(element)
            change = find_step(element.getparent()) if value is None else value
            self._change(_LIST_ITEM, element, change, is_added=value is None)

    def leave(self, element: Element) -> None:
        for stack in self._stacks.values():
            while stack and stack[-1][0] is element:
                stack.pop()

    def list_values(self, name: str) -> list[int]:
        """The values of all counters of a name, the innermost last."""
        return [value for _, value in self._stacks.get(name.lower(), ())] or [0]

    def _make(self, name: str, element: Element, value: int) -> None:
        stack = self._stacks.setdefault(name, [])
        parent = element.getparent()
        if stack and stack[-1][0] is parent:
            stack.pop()
        stack.append((parent, value))

    def _change(self, name: str, element: Element, value: int, *, is_added: bool) -> None:
        stack = self._stacks.get(name)
        if not stack:
            self._make(name, element, value)
            return
        parent, before = stack[-1]
        stack[-1] = (parent, before + value if is_added else value)


def _iter_changes(value: str, default: int) -> Iterator[tuple[str, int]]:
    words = [word for word in value.split() if word != "none"]
    for word, following in pairwise([*words, ""]):
        if not _is_integer(word):
            yield word, int(following) if _is_integer(following) else default


def _is_integer(word: str) -> bool:
    return _INTEGER.fullmatch(word) is not None


def _write(values: Mapping[str, str], element: Element, counters: _Counters) -> str:
    """The text of a box; empty if it shows none, or repeats the element's own for a drawing of it."""
    if _is_unseen(values):
        return ""
    content = values.get("content", "")
    text = "".join(_iter_texts(_parse(content), values, element, counters))[:_MAX_LENGTH]
    text = "".join(letter for letter in text if not "\ue000" <= letter <= "\uf8ff" and letter < "\U000f0000")
    is_repeated = content.startswith("attr(") and text.split() == element.text_content().split()
    return "" if is_repeated else text


@lru_cache(maxsize=1000)
def _parse(content: str) -> list[Any]:
    tokens: list[Any] = tinycss2.parse_component_value_list(content, skip_comments=True)
    return tokens


def _is_unseen(values: Mapping[str, str]) -> bool:
    """Whether a box is hidden, transparent, without a size, or outside of the screen."""
    if values.get("display") == "none" or values.get("visibility") in ("hidden", "collapse"):
        return True
    if values.get("color") == "transparent" or any(
        _ZERO.fullmatch(values.get(one, "")) for one in ("opacity", "font-size")
    ):
        return True
    if values.get("overflow") in ("hidden", "clip") and any(
        _ZERO.fullmatch(values.get(one, "")) for one in ("width", "height")
    ):
        return True
    if _NO_SIZE.search(values.get("transform", "")) or _AWAY.fullmatch(values.get("text-indent", "")):
        return True
    is_placed = values.get("position") in ("absolute", "fixed")
    clips = (values.get(one, "") for one in ("clip", "clip-path"))
    places = (values.get(one, "") for one in ("left", "right", "top", "bottom"))
    return is_placed and (any(map(_NOTHING.search, clips)) or any(map(_AWAY.fullmatch, places)))


def _iter_texts(tokens: list[Any], values: Mapping[str, str], element: Element, counters: _Counters) -> Iterator[str]:
    for token in tokens:
        match token.type:
            case "string":
                yield token.value
            case "ident":
                yield _QUOTES.get(token.lower_value, "")
            case "function":
                arguments = [one for one in token.arguments if one.type not in {"whitespace", "comment", "literal"}]
                yield from _call(token.lower_name, arguments, values, element, counters)
            case "literal" if token.value == "/":  # what follows is read to those who do not see
                return


def _call(
    function: str, arguments: list[Any], values: Mapping[str, str], element: Element, counters: _Counters
) -> Iterator[str]:
    if not arguments or arguments[0].type != "ident":
        return
    name, last = arguments[0].value, arguments[-1]
    style = last.lower_value if last.type == "ident" and last is not arguments[0] else ""
    match function:
        case "attr":
            yield element.get(name.lower()) or ""
        case "counter":
            yield format_counter(counters.list_values(name)[-1], style)
        case "counters" if len(arguments) > 1 and arguments[1].type == "string":
            yield arguments[1].value.join(format_counter(one, style) for one in counters.list_values(name))
        case "var" if name in values:
            inner = tinycss2.parse_component_value_list(values[name], skip_comments=True)
            plain = [one for one in inner if one.type == "string"]  # a variable may name itself
            yield from _iter_texts(plain, values, element, counters)
        case "var":
            yield from _iter_texts(arguments[1:], values, element, counters)


def _insert(element: Element, side: Side, text: str, values: Mapping[str, str]) -> None:
    display = values.get("display", "")
    if not text or _is_decoration(element, text):
        return
    is_in_line = display in _IN_LINE and element.tag not in SPACED and not {"float", "position"} & values.keys()
    if not text.strip() and not is_in_line:
        return
    box = element.makeelement("span")
    box.text = _set_apart(element, side, text, values)
    if display not in _IN_LINE:
        box.set("style", f"display: {display}")
    if side == "after":
        element.append(box)
    else:
        box.tail, element.text = element.text, None
        element.insert(0, box)


def _is_decoration(element: Element, text: str) -> bool:
    """Whether a text is a bullet or a separator, where a list has its markers, or the arrow that sorts a table."""
    if element.tag == "li":
        return _SEPARATORS.fullmatch(text) is not None
    return element.tag == "th" and not _SIGNS.sub("", text).strip()


def _set_apart(element: Element, side: Side, text: str, values: Mapping[str, str]) -> str:
    """A box's text with spaces where there is space between it and other words; as a marker if it counts an item."""
    if not (text[:1].isalnum() or text[-1:].isalnum()):
        return text
    is_counter = "counter" in values.get("content", "")
    if is_counter and element.tag == "li" and side == "before" and text[-1:].isalnum():
        return f"{text}. "
    is_box = values.get("display", "").startswith("inline-") or values.get("float", "none") != "none"
    is_apart = is_box or values.get("position") in ("absolute", "fixed")
    before = " " if text[:1].isalnum() and (is_apart or _has_space(values, "left", "start")) else ""
    behind = " " if text[-1:].isalnum() and (is_apart or _has_space(values, "right", "end")) else ""
    return f"{before}{text}{behind}"


def _has_space(values: Mapping[str, str], side: str, end: str) -> bool:
    """Whether a box has a margin or a padding on a side."""
    for name in ("margin", "padding"):
        around, beside = values.get(name, "").split(), values.get(f"{name}-inline", "").split()
        given = [
            *(around[3:] if side == "left" and len(around) > 3 else around[:2][-1:]),
            *(beside[:1] if side == "left" else beside[-1:]),
            values.get(f"{name}-{side}", ""),
            values.get(f"{name}-inline-{end}", ""),
        ]
        if any(one[:1].isdigit() and not _ZERO.fullmatch(one) for one in (one.removeprefix(".") for one in given)):
            return True
    return False
