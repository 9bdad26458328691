"""Paragraphs of Word as they are after tracked changes: where the end of one was removed, it goes on in the next."""

from typing import Any, TypeAlias

from docx.oxml.ns import qn

Element: TypeAlias = Any
"""An lxml element; lxml has no types."""

_REMOVED_ENDS = tuple("/".join(map(qn, ("w:rPr", name))) for name in ("w:del", "w:moveFrom"))


class OpenParagraph:
    """The paragraphs of a text, a cell or a box that go on in the next one, which alone has a number and a level."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._last: Element = None

    def add(self, paragraph: Element, text: str) -> str | None:
        """The whole text of a paragraph, with those that go on in it; None if it goes on in the next one."""
        self._texts.append(text)
        if not _goes_on(paragraph):
            return self._take()
        self._last = paragraph
        return None

    def end(self) -> tuple[Element, str] | None:
        """The last paragraph and its text, if there is any and no other one follows: a table or the end of the text
        does."""
        text = self._take()
        return (self._last, text) if text.strip() else None

    def _take(self) -> str:
        text = "".join(self._texts)
        self._texts.clear()
        return text


def _goes_on(paragraph: Element) -> bool:
    """Whether the next paragraph goes on in this one: its end was deleted or moved away, or it is a large first
    letter."""
    properties = paragraph.find(qn("w:pPr"))
    if properties is None:
        return False
    frame = properties.find(qn("w:framePr"))
    is_first_letter = frame is not None and frame.get(qn("w:dropCap"), "none") != "none"
    return is_first_letter or any(properties.find(path) is not None for path in _REMOVED_ENDS)
