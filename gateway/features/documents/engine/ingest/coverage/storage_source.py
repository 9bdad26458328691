"""Pages that are XML, and the storage format of Confluence, as the scanner of pages reads them."""

import re
from html import escape

_BOUND = re.compile(r"<!\[CDATA\[|\]\]>")
"""Where plain text begins or ends in XML; in HTML nobody sees it."""
_IS_XML = re.compile(r"\s*<\?xml\b")
_IS_STORAGE = re.compile(r"<ac:[a-z]")
_UNSEEN = re.compile(r"<ac:(task-id|task-uuid|placeholder|adf-attribute)\b[^<>]*>[^<>]*</ac:\1>")
_PARAMETER = re.compile(r"<ac:parameter\b([^<>]*)>([^<>]*)</ac:parameter>")
_TEXT = re.compile(r"""ac:name=["'](?:title|key|label|name|date|subtle-title)["']""")
_STATUS = re.compile(r"<ac:task-status>\s*(\w*)\s*</ac:task-status>")
_BLOCK = re.compile(
    r"<(/?)ac:(?:structured-macro|task|task-list|(?:plain-text|rich-text)-body|caption|layout-cell|adf-content)\b[^<>]*>"
)
_LINK = re.compile(r"<ac:link\b[^<>]*>\s*(<ri:[^<>]*>)\s*(?:</ri:[a-z-]+>\s*)?</ac:link>")
_PLACE = re.compile(r"""ri:(?:content-title|filename|value|username|account-id|userkey)=["']([^"']*)["']""")
_TIME = re.compile(r"""<time\b[^<>]*\bdatetime=["']([^"']*)["'][^<>]*>\s*(?:</time>)?""")


def rewrite_page(text: str) -> str:
    """The text of a page with plain text, ticks and names as HTML writes them; a page that is HTML is unchanged."""
    is_storage = _IS_STORAGE.search(text) is not None
    if not is_storage and not _IS_XML.match(text):
        return text
    text = _rewrite_sections(text)
    if is_storage:
        text = _STATUS.sub(lambda status: "☒ " if status[1] == "complete" else "☐ ", _UNSEEN.sub("", text))
        text = _PARAMETER.sub(lambda one: f"<p>{one[2]}</p>" if _TEXT.search(one[1]) else "", text)
        text = _LINK.sub(lambda link: place[1] if (place := _PLACE.search(link[1])) else "", text)
        text = _BLOCK.sub(r"<\1div>", _TIME.sub(r"\1", text))
    return text


def _rewrite_sections(text: str) -> str:
    """The text of an XML page without the bounds of its plain text, whose signs are written as in HTML. What begins and
    does not end stays."""
    pieces: list[str] = []
    opened: re.Match[str] | None = None
    place = 0
    for bound in _BOUND.finditer(text):
        if bound[0] != "]]>":
            opened = opened or bound
        elif opened is not None:
            pieces += (text[place : opened.start()], escape(text[opened.end() : bound.start()]))
            place, opened = bound.end(), None
    pieces.append(text[place:])
    return "".join(pieces)
