"""The visible text of an HTML page, by the standard library's parser."""

import codecs
import re
from collections import Counter
from html.parser import HTMLParser

from agent.ingest.coverage.source_text import SourceText
from agent.search.models import FileType

_VOID = frozenset(
    ("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr")
)
_SILENT = frozenset(
    ("script", "style", "template", "head", "title", "canvas", "audio", "video", "iframe", "object", "svg", "noframes")
)
_OMITTED = {"svg": "drawing", "select": "choices", "datalist": "choices", "noscript": "text without scripts"}
_HIDDEN = re.compile(r"display\s*:\s*none|visibility\s*:\s*(hidden|collapse)", re.IGNORECASE)
_CLOSES = {
    "li": {"li"},
    "dt": {"dt", "dd"},
    "dd": {"dt", "dd"},
    "p": {"p"},
    "tr": {"tr", "td", "th"},
    "td": {"td", "th"},
    "th": {"td", "th"},
    "option": {"option"},
    "tbody": {"tr", "td", "th", "thead", "tbody"},
}
"""Elements that the start of another one ends."""
_SCOPE = {"li": {"ul", "ol", "menu"}, "dt": {"dl"}, "dd": {"dl"}}
_TABLE_SCOPE = frozenset({"table"})
_END_PARAGRAPH = (
    "address article aside blockquote div dl fieldset figure footer form h1 h2 h3 h4 h5 h6 header hr main nav ol p pre "
    "section table ul"
)
_BLOCKS_END_P = frozenset(_END_PARAGRAPH.split())
_OTHER_BLOCKS = (
    "body html thead tfoot caption figcaption details summary legend select textarea center dir menu search hgroup "
    "dialog colgroup title noscript svg"
)
_BLOCKS = _BLOCKS_END_P | frozenset(_OTHER_BLOCKS.split())
_CHARSET = re.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([A-Za-z0-9_:.-]{2,40})""", re.IGNORECASE)
_LATIN = frozenset({"iso8859-1", "latin-1", "ascii", "latin_1"})


def read_source(data: bytes, _file_type: FileType, encoding: str) -> SourceText:
    """Counts the words that a page shows; what is hidden is counted apart."""
    return count_page(_decode(data, encoding))


def count_page(text: str) -> SourceText:
    """Counts the words of a page that is text already. Without any other text, that for browsers without scripts
    counts."""
    parser = _Visible()
    parser.feed(text)
    parser.close()
    parser.flush()
    source = parser.source
    if not source.words and parser.without_scripts:
        source.words["text"] = parser.without_scripts
        source.omitted.pop(_OMITTED["noscript"], None)
    return source


def _decode(data: bytes, encoding: str) -> str:
    for mark, name in (
        (codecs.BOM_UTF8, "utf-8-sig"),
        (codecs.BOM_UTF16_LE, "utf-16"),
        (codecs.BOM_UTF16_BE, "utf-16"),
    ):
        if data.startswith(mark):
            return data.decode(name, "replace")
    declared = _CHARSET.search(data[:4096])
    for name in (declared[1].decode("ascii") if declared else "", "utf-8", encoding, "cp1252"):
        try:
            known = codecs.lookup(name).name
            return data.decode("cp1252" if known in _LATIN else known)
        except (LookupError, ValueError):
            continue
    return data.decode("utf-8", "replace")


class _Visible(HTMLParser):
    """Collects inline text until a block begins or ends, and knows why an element is not shown."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.source = SourceText()
        self.without_scripts: Counter[str] = Counter()
        self._open: list[tuple[str, str]] = []
        """Open elements, and why their text is not shown; empty if it is."""
        self._parts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Opens an element."""
        self._close_implied(tag)
        if not _is_inline(tag):
            self.flush()
        given = dict(attrs)
        if tag in _VOID:
            if tag == "br":
                self._parts.append(" ")
            return
        self._open.append((tag, self._reason or _find_reason(tag, given)))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """A slash at the end means nothing in HTML, but in a drawing."""
        self.handle_starttag(tag, attrs)
        if self._reason == _OMITTED["svg"] and tag not in _VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        """Closes an element and those left open in it; an end without a start is ignored."""
        if not _is_inline(tag):
            self.flush()
        for place in range(len(self._open) - 1, -1, -1):
            if self._open[place][0] == tag:
                if self._reason:
                    self.flush()
                del self._open[place:]
                return

    def handle_data(self, data: str) -> None:
        """Takes text."""
        reason = self._reason
        if not reason:
            self._parts.append(data)
        elif reason != "silent":
            self.source.omit(reason, data)
            if reason == _OMITTED["noscript"]:
                inner = count_page(data) if "<" in data else None
                if inner is None:
                    hidden = SourceText()
                    hidden.add("text", data)
                    inner = hidden
                self.without_scripts.update(inner.words.get("text", Counter()))

    def flush(self) -> None:
        """Counts the inline text so far."""
        self.source.add("text", "".join(self._parts))
        self._parts.clear()

    @property
    def _reason(self) -> str:
        return self._open[-1][1] if self._open else ""

    def _close_implied(self, tag: str) -> None:
        closes = set(_CLOSES.get(tag, ()))
        if tag in _BLOCKS_END_P:
            closes.add("p")
        scope = _SCOPE.get(tag, _TABLE_SCOPE)
        place = len(self._open) - 1
        last = None
        while place >= 0 and self._open[place][0] not in scope:
            if self._open[place][0] in closes:
                last = place
                if tag not in {"tr", "tbody"}:
                    break
            elif not _is_inline(self._open[place][0]) and tag not in {"tr", "tbody", "td", "th"}:
                break
            place -= 1
        if last is not None:
            self.flush()
            del self._open[last:]


def _is_inline(tag: str) -> bool:
    return tag not in _BLOCKS and tag not in _CLOSES


def _find_reason(tag: str, given: dict[str, str | None]) -> str:
    if tag in _OMITTED:
        return _OMITTED[tag]
    if tag in _SILENT:
        return "silent"
    if "hidden" in given or _HIDDEN.search(given.get("style") or ""):
        return "hidden text"
    return ""
