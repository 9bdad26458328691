"""Prices of web pages whose cents are raised: "$12" with a raised "99" is $12.99. On a page with notes or powers,
"EUR 500" with a raised "12" is the amount with its note."""

import re
from collections.abc import Iterator
from typing import Any, TypeAlias

from lxml import etree  # type: ignore[import-untyped]

from agent.text.html.tables import BLOCKS
from agent.text.numbers import find_numbers
from agent.text.superscripts import RAISED_SIGNS
from agent.text.units import is_currency, is_unit

Element: TypeAlias = Any
"""An `lxml.html.HtmlElement`; lxml has no types."""

_MAX_BEFORE = 40
"""Characters before a raised figure that may have its amount and currency."""
_MAX_BEHIND = 16
_THOUSANDS_BY_POINT = re.compile(r"\.\d{3}$")
_CENT_DIGITS = 2
_MAX_POWER = 30
_NOTE = re.compile(r"\s*[\[(]?(?P<number>\d{2})[\])]?[.:]?\s+[^\W\d_]")
"""The beginning of a block that may be the text of a note."""


def write_cents(body: Element) -> None:
    """Makes raised cents plain text behind their decimal mark, if all raised figures of a page are cents or units."""
    if next(body.iter("sup"), None) is None:
        return
    cents: list[tuple[Element, str]] = []
    notes: set[str] = set()
    for element, before in _iter_beginnings(body):
        if element.tag != "sup":
            note = _NOTE.match(element.text)
            notes.update((note["number"],) if note is not None else ())
        elif (text := element.text_content().strip()) and RAISED_SIGNS.issuperset(text):
            if _is_power_of_unit(before, text):
                continue
            mark = _find_decimal_mark(before, text, _read_behind(element))
            if mark is None or element.find(".//a") is not None or element.getparent().tag == "a":
                return
            cents.append((element, mark))
    if notes.isdisjoint(element.text_content().strip() for element, _ in cents):
        for element, mark in cents:
            element.text = f"{mark}{element.text_content().strip()}"
            for child in list(element):
                element.remove(child)
            element.drop_tag()


def _iter_beginnings(body: Element) -> Iterator[tuple[Element, str]]:
    """Yields the blocks of text and the raised elements of a page, with what stands before these in their line."""
    before = ""
    for event, element in etree.iterwalk(body, events=("start", "end")):
        is_block = element.tag in BLOCKS or element.tag == "br"
        before = "" if is_block else before
        if event == "start":
            if element.tag == "sup" or (is_block and element.text and element.text.strip()):
                yield element, before
            before += element.text or ""
        else:
            before += element.tail or ""
        before = before[-_MAX_BEFORE:]


def _is_power_of_unit(before: str, raised: str) -> bool:
    word = re.search(r"[^\W\d_]+$", before)
    return word is not None and is_unit(f"{word[0]}{raised}")


def _read_behind(element: Element) -> str:
    following = element.getnext()
    behind = element.tail or ""
    if following is not None and following.tag not in BLOCKS:
        behind += following.text or ""
    return behind[:_MAX_BEHIND]


def _find_decimal_mark(before: str, cents: str, behind: str) -> str | None:
    """What parts a whole amount of money from its raised cents, "" if a mark stands there; None if they are none."""
    figure = before.rstrip(".,") if before[-1:] in (".", ",") else before
    if len(cents) != _CENT_DIGITS or not cents.isdecimal() or not figure[-1:].isdigit():
        return None
    amount = next((one for one in find_numbers(figure + behind) if one.start < len(figure) <= one.end), None)
    if amount is None or amount.unit is None or not is_currency(amount.unit) or amount.unscaled is not None:
        return None
    if amount.value % 1 or (amount.value == 10 and int(cents) <= _MAX_POWER):  # 10 to the power of 12
        return None
    if figure != before:
        return ""
    return "," if _THOUSANDS_BY_POINT.search(figure) else "."
