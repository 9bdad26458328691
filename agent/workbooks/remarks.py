"""Parts of a sheet beside its cells: comments of both kinds, messages for people who fill cells in, the headers and
footers of its pages, and the totals of its tables."""

import re
from collections.abc import Iterator

from agent.workbooks.package import Element, get_name

_HEADS = frozenset({"oddHeader", "oddFooter", "evenHeader", "evenFooter", "firstHeader", "firstFooter"})
_AREA = re.compile(r"&[LCR]")
_CODE = re.compile(r'&(?:(&)|"[^"]*"|K[0-9A-Fa-f]{6}|K\d\d[+-]\d{3}|\d{1,3}|[A-Za-z])')
_PAGE = re.compile(r"(?<!&)&[PN]")


def read_comments(root: Element | None) -> dict[str, str]:
    """The comments of a part by the addresses of their cells; replies follow what they reply to."""
    comments: dict[str, list[str]] = {}
    for comment in () if root is None else root.iter("{*}comment", "{*}threadedComment"):
        if get_name(comment) == "comment":
            texts = ["".join(t.text or "" for t in text.iter("{*}t")) for text in comment.iter("{*}text")]
        else:
            texts = [text.text or "" for text in comment.iter("{*}text")]
        comments.setdefault(comment.get("ref", ""), []).append(" ".join(" ".join(texts).split()))
    return {address: " / ".join(filter(None, texts)) for address, texts in comments.items()}


def read_input_message(validation: Element) -> tuple[list[str], str]:
    """What a program shows beside cells that are being filled in: the cells, and the text; it is empty if none is."""
    if validation.get("showInputMessage") not in {"1", "true"}:
        return [], ""
    texts = (" ".join(validation.get(name, "").split()) for name in ("promptTitle", "prompt"))
    places = validation.get("sqref") or validation.findtext("{*}sqref") or ""
    return places.split(), ": ".join(filter(None, texts))


def find_totals_area(root: Element | None) -> str:
    """The area of a table whose last row holds its totals; empty for another."""
    return str(root.get("ref", "")) if root is not None and root.get("totalsRowCount", "0") != "0" else ""


def iter_page_heads(element: Element) -> Iterator[str]:
    """Yields the texts of a sheet's headers and footers. A word or two around the number of the page say nothing."""
    for head in element:
        if get_name(head) in _HEADS:
            for area in _AREA.split(head.text or ""):
                pieces = [_CODE.sub(lambda code: code[1] or "", piece).split() for piece in _PAGE.split(area)]
                if len(pieces) == 1 or any(sum(map(_has_letter, piece)) > 1 for piece in pieces):
                    yield from filter(None, [" ".join(word for piece in pieces for word in piece)])


def _has_letter(word: str) -> bool:
    return any(map(str.isalpha, word))
