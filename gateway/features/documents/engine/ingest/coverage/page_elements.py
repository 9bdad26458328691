"""The open elements of a page: whether the words in one and beside it are visible, apart, or named."""

import re
from itertools import pairwise
from typing import NamedTuple

from gateway.features.documents.engine.ingest.coverage.page_styles import Layout

JOINT = "\ue000"
"""Where a word may go on or another may begin: at raised and lowered figures, and at pieces of links. These words are
compared by their characters."""
BOUND = "\ue001"
"""Where a box that may be a piece of a word begins or ends beside another element."""
_EDGE = "\ue002"
"""Where a box that is apart begins or ends."""
_MARKS = re.compile(f"[{JOINT}{BOUND}{_EDGE}]")
_BEFORE_JOINT = re.compile(f"(?<![{BOUND}{_EDGE}])[{BOUND}{_EDGE}]++(?={JOINT})")
_LETTER = re.compile(f"({_EDGE}[^\\w\\s{JOINT}{BOUND}{_EDGE}]*\\w){_EDGE}")
"""A box with one letter, with which a word may begin."""
_PARTED = re.compile(f"(?<=[^\\W\\d_])\\s+{JOINT}|{JOINT}\\s+(?=[^\\W\\d_])")
"""White space at a raised or lowered text that is not a figure."""
_ROLE_NAMES = (
    "row cell gridcell columnheader rowheader listitem treeitem option tab menuitem heading paragraph table list "
    "rowgroup"
)
_BOX_ROLES = frozenset(_ROLE_NAMES.split())
_INLINE_ROLES = frozenset({"button", "term", "definition"})
_CONTROLS = frozenset({"a", "button", "label", "textarea", "select", "option", "meter", "progress"})
"""Their names say what they do, not what they show."""
_HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
SIGNED = _CONTROLS | _HEADINGS
"""Elements in which pictures are signs without a name of their own."""


class Opened(NamedTuple):
    """An open element."""

    tag: str
    reason: str
    """Why its text is not shown; empty if it is."""
    gap: str = ""
    """What parts it from the words beside it."""
    has_boxes: bool = False
    """Whether its children are boxes."""
    name: str = ""
    """What it is for those who do not see it, if that counts where it has no text."""
    is_silent: bool = False
    """Whether it has no name for anybody, nor what is in it."""
    before: int = 0
    """How much was shown before it."""
    is_preformatted: bool = False
    added: str = ""
    """The text that style sheets add behind its own."""


def find_gap(tag: str, layout: Layout, role: str, above: Opened | None) -> str:
    """What parts an element of a line from the words beside it."""
    if tag in {"sup", "sub"} or layout.is_moved:
        return JOINT
    if tag in {"wbr", "rt", "rp"}:
        return ""
    is_apart = layout.is_box and not layout.is_inline_box
    if above is not None and above.is_preformatted:
        return _EDGE if layout.is_line else JOINT if layout.is_box else ""
    if is_apart or role in _BOX_ROLES or (above is not None and above.has_boxes):
        return _EDGE
    if layout.is_inline_box or role in _INLINE_ROLES:
        return BOUND
    return JOINT if layout.is_spaced else ""


def resolve_bounds(text: str) -> str:
    """The text of a line with its boxes as words, where they are."""
    text = _BEFORE_JOINT.sub("", _PARTED.sub(" ", text))
    pieces = text.split(BOUND)
    for place, (before, after) in enumerate(pairwise(pieces)):
        sides = _MARKS.split(before)[-1], _MARKS.split(after, maxsplit=1)[0]
        pieces[place] = before + (" " if all(len(side.split()) > 1 for side in sides) else JOINT)
    return _LETTER.sub(rf"\1{JOINT}", "".join(pieces)).replace(_EDGE, " ")


def find_name(tag: str, given: dict[str, str], *, is_inline: bool) -> str:
    """The name of an element that is a picture if it has no text."""
    has_role = given.get("role", "").lower() == "img"
    if not has_role and tag != "svg" and (not is_inline or tag in _CONTROLS):
        return ""
    return given.get("aria-label", "").strip() or (given.get("title", "").strip() if has_role else "")
