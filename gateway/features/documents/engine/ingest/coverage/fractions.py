"""Fractions of Office files: readers write "1" with a raised "1", a slash and a lowered "2" as 1 1/2, not as 11/2. They
part the raised mark of a note from a figure behind it."""

import re
from collections.abc import Sequence
from xml.etree.ElementTree import Element

from gateway.features.documents.engine.ingest.coverage.office_source import get_attribute, get_name

_FRACTION = re.compile("(?<=[ux/l])u+/l")
"""By the kinds of the runs of a text: upper and lower figures, slashes and others (`x`)."""
_RAISED = re.compile("(?<!u)u++(?=[x/l])")
_SLASHES = frozenset("/\u2044")
_OTHER = "x"
_KINDS = {"superscript": "u", "subscript": "l"}
_FIFTH = 5
_SIZE = 20
"""Half points of a text whose size is not known; `w:position` counts in them too."""


def part_fractions(text: Element) -> None:
    """Puts a space before each fraction of a paragraph or a rich text that a whole number may stand before, and behind
    each mark before a figure."""
    runs = [[t for t in run if get_name(t) == "t" and t.text] for run in text.iter() if get_name(run) == "r"]
    kinds = [_classify(run) for run in text.iter() if get_name(run) == "r"]
    filled = [(pieces, kind) for pieces, kind in zip(runs, kinds, strict=True) if pieces]
    for match in _RAISED.finditer("".join(kind for _, kind in filled)):
        following = filled[match.end()][0][0].text or ""
        if following[:1].isdigit() and _ends_apart(filled[: match.start()]):
            for pieces, _ in filled[match.start() : match.end()]:
                pieces[-1].text = f"{pieces[-1].text} "
    for match in _FRACTION.finditer("".join(kind for _, kind in filled)):
        before, first = filled[match.start() - 1][0][-1].text or "", filled[match.start()][0][0]
        first.text = first.text if before[-1].isspace() else f" {first.text}"


def _ends_apart(runs: Sequence[tuple[Sequence[Element], str]]) -> bool:
    """Whether runs end with white space, or there are none."""
    return not runs or (runs[-1][0][-1].text or "")[-1].isspace()


def _classify(run: Element) -> str:
    text = "".join(one.text or "" for one in run if get_name(one) == "t").strip()
    if text in _SLASHES:
        return "/"
    return _read_place(run) if text.isdecimal() else _OTHER


def _read_place(run: Element) -> str:
    """Whether a run is raised, lowered or neither, as each of the three formats says it."""
    head = next((one for one in run if get_name(one) == "rPr"), None)
    if head is None:
        return _OTHER
    values = {get_name(one): get_attribute(one, "val") or "" for one in head}
    if "vertAlign" in values:
        return _KINDS.get(values["vertAlign"], _OTHER)
    try:
        rise, size = int(head.get("baseline") or values.get("position") or 0), int(values.get("sz") or _SIZE)
    except ValueError:
        return _OTHER
    return "x" if _FIFTH * abs(rise) < size or not rise else "u" if rise > 0 else "l"
