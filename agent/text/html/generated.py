"""The text that style sheets add before and behind elements (`::before`, `::after`), with their counters.

A browser shows it as text: units behind prices, numbers of sections, labels of cells. Signs of icon fonts mean
something in their font alone, and are left out.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, TypeAlias

import tinycss2  # type: ignore[import-untyped]
from lxml import etree  # type: ignore[import-untyped]

from agent.text.html.lists import format_counter
from agent.text.html.styles import Generated, Side, read_own_style

Element: TypeAlias = Any
"""An `lxml.html.HtmlElement`; lxml has no types."""

_WITHOUT_BOXES = frozenset({"area", "br", "embed", "hr", "img", "input", "meta", "option", "select", "textarea", "wbr"})
"""Elements that have no content of their own, to which nothing is added."""
_QUOTES = {"open-quote": "\u201c", "close-quote": "\u201d"}
_IN_LINE = frozenset({"", "inline", "contents"})
_MAX_LENGTH = 500
"""Characters of a text: a sheet may add one to each element of a page."""
_MAX_TOTAL = 200_000


def add_generated(body: Element, generated: Generated) -> None:
    """Puts the text that sheets add to the elements of a page without hidden ones into these."""
    if not generated:
        return
    counters = _Counters()
    left = _MAX_TOTAL
    for event, element in list(etree.iterwalk(body, events=("start", "end"))):
        if not isinstance(element.tag, str) or element.tag in _WITHOUT_BOXES:
            continue
        if event == "start":
            counters.enter(element, read_own_style(element.get("style", "")))
        side: Side = "before" if event == "start" else "after"
        if values := generated.get((element, side)):
            counters.enter(element, values)
            text = _write(values, element, counters) if left > 0 else ""
            left -= len(text)
            _insert(element, side, text, values.get("display", ""))
        if event == "end":
            counters.leave(element)


@dataclass
class _Counters:
    """The counters of a page (CSS Lists 3, 4.4). Each belongs to the parent of the element that makes it."""

    _stacks: dict[str, list[tuple[Element, int]]] = field(default_factory=dict)

    def enter(self, element: Element, own: Mapping[str, str]) -> None:
        """Changes the counters that an element, or a box of it, names."""
        for name, value in _iter_changes(own.get("counter-reset", ""), 0):
            self._make(name, element, value)
        for name, value in _iter_changes(own.get("counter-increment", ""), 1):
            self._change(name, element, value, is_added=True)
        for name, value in _iter_changes(own.get("counter-set", ""), 0):
            self._change(name, element, value, is_added=False)

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
    return word.lstrip("+-").isdecimal() and len(word) < 10


def _write(values: Mapping[str, str], element: Element, counters: _Counters) -> str:
    """The text of a box; empty if it shows none."""
    is_hidden = values.get("display") == "none" or values.get("visibility") in ("hidden", "collapse")
    if is_hidden or values.get("opacity") in ("0", "0%", "0.0", "0.00"):
        return ""
    tokens = tinycss2.parse_component_value_list(values.get("content", ""), skip_comments=True)
    text = "".join(_iter_texts(tokens, values, element, counters))[:_MAX_LENGTH]
    return "".join(letter for letter in text if not "\ue000" <= letter <= "\uf8ff" and letter < "\U000f0000")


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


def _insert(element: Element, side: Side, text: str, display: str) -> None:
    if not text or not (text.strip() or element.text_content()):
        return
    box = element.makeelement("span")
    box.text = text
    if display not in _IN_LINE:
        box.set("style", f"display: {display}")
    if side == "after":
        element.append(box)
    else:
        box.tail, element.text = element.text, None
        element.insert(0, box)
