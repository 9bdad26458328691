"""White space where style sheets part what has none between it in the page: boxes of a line, such as prices in rows.

A space is set only where two words would be one without it.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

from lxml import etree  # type: ignore[import-untyped]

from agent.text.html.styles import read_own_style
from agent.text.html.tables import SPACED
from agent.text.superscripts import RAISED
from agent.text.terms import is_space_separated

Element: TypeAlias = Any
"""An `lxml.html.HtmlElement`; lxml has no types."""

_IN_LINE = frozenset({"", "inline", "contents", "none", "initial", "inherit", "unset", "revert", "revert-layer"})
_CONTAINERS = ("flex", "grid", "-box", "flexbox")
"""Ends of the values of `display` that make a box of each child (CSS Display 3, 2.7)."""
_CELL = "table-cell"
_TAKEN_OUT = {"float": ("left", "right", "inline-start", "inline-end"), "position": ("absolute", "fixed")}
"""Values by which an element leaves its line, and is a box of its own."""
_SPACING = re.compile(r"(?:^|;)\s*(margin|padding)(-inline)?(?:-(left|start)|-(right|end))?\s*:([^;!]*)")
_LENGTH = re.compile(r"(\d++(?:\.\d++)?|\.\d++)(px|pt|r?em|%|ch|mm|cm)")
_EMS = {"px": 0.0625, "pt": 0.083, "em": 1, "rem": 1, "%": 0.3, "ch": 0.5, "mm": 0.24, "cm": 2.4}
"""Widths of an element's letters by unit of a length, for letters of 16 pixels."""
_WIDE = 0.3
"""Ems from which space beside an element parts it from a word: the narrowest space of a font has about as much."""
_BOX_ROLES = frozenset(
    {"row", "cell", "gridcell", "columnheader", "rowheader", "listitem", "treeitem", "option", "tab", "heading"}
    | {"menuitem", "paragraph", "table", "list", "rowgroup"}
)
"""Roles of WAI-ARIA 1.2 whose elements are never parts of one word."""
_INLINE_ROLES = frozenset({"button", "term", "definition"})
_LINKS = frozenset({"a", "label"})
_PARTS = frozenset({"sup", "sub", "wbr", "rt", "rp"})
"""Elements that belong to the word before them, wherever a sheet puts them."""
_ENDS = frozenset(")]}%!?;»”")
"""What ends words and figures; other punctuation may stand within a figure."""
_CAPITALISED = re.compile(r"[^\W\d_][^\W\d_]")
_WORD_BEFORE = re.compile(r"[^\W_]{2}$|\d$")

_SURE = "box"
_TAKEN = "taken out"
_INLINE = "inline box"
_COMPONENT = "component"
_EDGE = "edge"
_LINE = "line"


class _Layout(NamedTuple):
    kind: str = ""
    is_container: bool = False
    is_transparent: bool = False
    has_space: tuple[bool, bool] = (False, False)
    """Whether the element has space before its beginning, and behind its end."""


class _Gap(NamedTuple):
    """An edge of an element that may part the words beside it."""

    element: Element
    is_end: bool
    kind: str
    is_between: bool
    """Whether an element stands on either side of it, not loose text."""
    has_space: bool
    """Whether the element has space there."""


class _Run:
    """The text of a line between two gaps."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.is_moved = False
        """Whether it begins in a raised or lowered text."""
        self.gaps: list[_Gap] = []
        """The gaps before it."""


def part_boxes(body: Element) -> None:
    """Puts a space between words that are laid out as boxes. In preformatted text a block is a line."""
    for is_preformatted, runs in list(_iter_lines(body)):
        for before, run in pairwise(runs):
            left, right = "".join(before.pieces), "".join(run.pieces)
            if gap := _find_line(run, left, right) if is_preformatted else _find_word(run, left, right):
                _set_apart(gap, "\n" if is_preformatted else " ")


def is_in_line(element: Element) -> bool:
    """Whether an element is part of a line, which its style may raise or lower."""
    parent = element.getparent()
    while parent is not None and _read_layout(parent.get("style", "")).is_transparent:
        parent = parent.getparent()
    if element.tag in SPACED or (parent is not None and _read_layout(parent.get("style", "")).is_container):
        return False
    return _read_layout(element.get("style", "")).kind in ("", _INLINE)


def _iter_lines(body: Element) -> Iterator[tuple[bool, list[_Run]]]:
    """Yields the runs of each line, and whether it is preformatted."""
    runs = [_Run()]
    is_in_container = [False]
    moved = preformatted = 0
    for event, element in etree.iterwalk(body, events=("start", "end", "comment", "pi")):
        tag = element.tag
        is_break = element is body or tag in SPACED
        is_start = event == "start"
        if event in ("start", "end"):
            if is_break:
                yield preformatted > 0, runs
                runs = [_Run()]
            change = 1 if is_start else -1
            moved += change * (tag in _PARTS)
            preformatted += change * (tag == "pre")
            if is_start:
                layout = _read_layout(element.get("style", ""))
                is_item = is_in_container[-1]
                is_in_container.append(layout.is_container or (layout.is_transparent and is_item))
            else:
                is_in_container.pop()
            if not is_break and tag not in _PARTS:
                _add_gap(runs, element, is_end=not is_start, is_item=is_in_container[-2 if is_start else -1])
        text = element.text if is_start else element.tail
        _add_text(runs[-1], text, is_moved=moved > 0)
    yield preformatted > 0, runs


def _add_text(run: _Run, text: str | None, *, is_moved: bool) -> None:
    if text:
        run.is_moved = is_moved if not run.pieces else run.is_moved
        run.pieces.append(text)


def _add_gap(runs: list[_Run], element: Element, *, is_end: bool, is_item: bool) -> None:
    kind = _find_kind(element, is_end=is_end, is_item=is_item)
    has_space = _read_layout(element.get("style", "")).has_space[is_end]
    if not kind and not has_space:
        return
    if runs[-1].pieces:
        runs.append(_Run())
    neighbour = element.getnext() if is_end else element.getprevious()
    is_loose = neighbour is None or bool(element.tail if is_end else neighbour.tail)
    runs[-1].gaps.append(_Gap(element, is_end, kind, not is_loose, has_space))


def _find_kind(element: Element, *, is_end: bool, is_item: bool) -> str:
    layout = _read_layout(element.get("style", ""))
    role = element.get("role", "")
    if layout.kind in (_LINE, _SURE, _TAKEN):
        return layout.kind
    if role in _BOX_ROLES or is_item:
        return _SURE
    if layout.kind or role in _INLINE_ROLES:
        return _INLINE
    if element.tag in _LINKS or "-" in element.tag:
        return _EDGE if is_end else _find_like(element)
    return ""


def _find_like(element: Element) -> str:
    """What parts a custom element or a link from another one directly before it.

    Pages give them the layout of boxes. A link that is in pieces leads to one place.
    """
    before = element.getprevious()
    if before is None or before.tail or not isinstance(before.tag, str):
        return _EDGE
    if element.tag in _LINKS:
        is_one = element.get("href") and element.get("href") == before.get("href")
        return _INLINE if before.tag == element.tag and not is_one else _EDGE
    return _COMPONENT if "-" in before.tag else _EDGE


@lru_cache(maxsize=2_000)
def _read_layout(style: str) -> _Layout:
    if not style:
        return _Layout()
    own = read_own_style(style)
    display = own.get("display", "")
    kind = ""
    if any(own.get(name) in values for name, values in _TAKEN_OUT.items()):
        kind = _TAKEN
    elif display.startswith("inline-"):
        kind = _INLINE
    elif not _IN_LINE.issuperset(display.split()):
        kind = _SURE if display == _CELL else _LINE
    return _Layout(kind, display.endswith(_CONTAINERS), display == "contents", _read_spaces(style))


def _read_spaces(style: str) -> tuple[bool, bool]:
    """Whether an element of a line has a margin or a padding before its beginning, and behind its end."""
    before: dict[str, str] = {}
    behind: dict[str, str] = {}
    for name, inline, is_before, is_behind, value in _SPACING.findall(style.lower()):
        sides = value.split() or [""]
        right = sides[-1] if inline else sides[:2][-1]
        left = sides[0] if inline else sides[3] if len(sides) > 3 else right
        before[name] = before.get(name, "") if is_behind else left
        behind[name] = behind.get(name, "") if is_before else right
    return any(map(_is_wide, before.values())), any(map(_is_wide, behind.values()))


def _is_wide(length: str) -> bool:
    match = _LENGTH.fullmatch(length)
    return match is not None and float(match[1]) * _EMS[match[2]] >= _WIDE


def _find_line(run: _Run, left: str, right: str) -> _Gap | None:
    """The gap before a run of preformatted text that is a line of its own, if no line begins there yet."""
    is_apart = left.rstrip(" \t").endswith("\n") or right.lstrip(" \t").startswith("\n")
    return None if is_apart else next((gap for gap in run.gaps if gap.kind == _LINE and left and right), None)


def _find_word(run: _Run, left: str, right: str) -> _Gap | None:
    """The gap before a run that begins a word, if the run before it would go on in it."""
    if not left or not right or run.is_moved or left[-1].isspace() or right[0].isspace():
        return None
    if not (is_space_separated(left[-1]) and is_space_separated(right[0])) or right[0] in RAISED:
        return None
    kinds = {gap.kind for gap in run.gaps}
    if _COMPONENT in kinds:
        return next(gap for gap in run.gaps if gap.kind == _COMPONENT)
    if sure := next((gap for gap in run.gaps if gap.kind in (_SURE, _LINE, _TAKEN)), None):
        is_initial = any(gap.kind == _TAKEN and gap.is_end for gap in run.gaps) and _is_initial(left, right)
        return sure if _are_words(left, right) and not is_initial else None
    boxes = [gap for gap in run.gaps if gap.kind == _INLINE]
    is_parted = any(gap.is_between for gap in boxes) and left[-1].isalnum() and right[0].isalnum()
    if is_parted and (_has_words(left, right) or (len(run.gaps) > 1 and _begins_anew(left, right))):
        return boxes[0]
    spaced = next((gap for gap in run.gaps if gap.has_space), None)
    is_one = left[-1].isalnum() and right[0].isalnum() and not _begins_anew(left, right)
    return None if is_one or not _are_words(left, right) else spaced


def _is_initial(left: str, right: str) -> bool:
    """Whether a box is the letter with which a word begins, as chapters have them."""
    letters = [letter for letter in left if letter.isalnum()]
    return len(letters) == 1 and letters[0].isalpha() and right[0].isalpha()


def _are_words(left: str, right: str) -> bool:
    """Whether two boxes end and begin with words or amounts."""
    is_amount = unicodedata.category(right[0]) == "Sc" and right[1:2].isdigit()
    if left[-1].isalnum() or left[-1] in _ENDS:
        return right[0].isalnum() or is_amount
    return left[-1] in ".,:" and right[0].isupper()


def _has_words(left: str, right: str) -> bool:
    """Whether both sides are more than one word, and so no pieces of one."""
    return len(left.split()) > 1 and len(right.split()) > 1


def _begins_anew(left: str, right: str) -> bool:
    """Whether two boxes beside each other are two words by their letters: "Home" and "About", "Room" and "80"."""
    if not _WORD_BEFORE.search(left) or left[-1].isupper():
        return False
    if right[0].isdigit():
        return left[-1].isalpha()
    return _CAPITALISED.match(right) is not None and (right[0].isupper() or left[-1].isdigit())


def _set_apart(gap: _Gap, space: str) -> None:
    element, parent = gap.element, gap.element.getparent()
    before = element.getprevious()
    if gap.is_end:
        element.tail = f"{space}{element.tail or ''}"
    elif before is not None:
        before.tail = f"{before.tail or ''}{space}"
    elif parent is not None:
        parent.text = f"{parent.text or ''}{space}"
