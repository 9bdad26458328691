"""The visible text of an HTML page, by a scanner of tags of its own."""

import codecs
import re
from collections import Counter
from html import unescape

from gateway.features.documents.engine.ingest.coverage.charsets import decode_text
from gateway.features.documents.engine.ingest.coverage.page_elements import (
    BOUND,
    JOINT,
    SIGNED,
    Opened,
    find_gap,
    find_name,
    resolve_bounds,
)
from gateway.features.documents.engine.ingest.coverage.page_styles import Layout, PageStyles, Tag, read_own_layout
from gateway.features.documents.engine.ingest.coverage.source_text import SourceText, split_words
from gateway.features.documents.engine.ingest.coverage.storage_source import rewrite_page
from gateway.features.documents.engine.search.models import FileType

_VOID = frozenset(
    ("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr")
)
_SILENT_NAMES = "script style head title canvas audio video iframe object svg noframes annotation annotation-xml"
_SILENT = frozenset(_SILENT_NAMES.split())
_OMITTED = {"svg": "drawing", "select": "choices", "datalist": "choices", "noscript": "text without scripts"}
_SHOWN_BY = {"dialog": "open", "template": "shadowrootmode"}
_DECLARED = re.compile(r"(?<![\w-])(display|visibility)\s*:\s*([a-z-]+)(\s*!)?", re.IGNORECASE)
_INVISIBLE = frozenset({"none", "hidden", "collapse"})
_BY_SHEET = "text hidden by style sheets"
_TOKEN = re.compile(
    r"<!--.*?(?:-->|\Z)|<[!?][^>]*+(?:>|\Z)|</(?P<end>[a-zA-Z][^\s/>]*+)[^>]*+(?:>|\Z)"
    r"""|<(?P<start>[a-zA-Z][^\s/>]*+)(?P<attributes>(?:[^>"']++|"[^"]*+"|'[^']*+'){0,20000}+)(?:>|\Z)""",
    re.DOTALL,
)
"""What a tag begins that nothing ends, no browser shows."""
_ATTRIBUTE = re.compile(r"""([^\s=>"'/]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s>"']+)))?""")
_SEPARATE = frozenset({"button", "meter", "progress", "output", "del", "s", "strike"})
"""Elements of a line whose words are apart from those beside them; what is struck out has marks."""
_LINKS = frozenset({"a", "label"})
_DRAWING = re.compile(r"""\baria-hidden\s*=\s*["']?true""")
_TELLING = re.compile("style|role|aria-|title", re.IGNORECASE)
"""What says of an element that it is a box, or which name it has."""
_RAW = frozenset({"script", "style", "textarea", "title", "iframe", "noframes"})
"""Elements whose text may look like tags."""
_PARAGRAPH = frozenset({"p"})
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
    "dialog colgroup title noscript svg foreignobject"
)
_BLOCKS = _BLOCKS_END_P | frozenset(_OTHER_BLOCKS.split())
_CHARSET = re.compile(rb"""<meta[^>]{0,200}?charset\s*+=\s*+["']?+\s*+([A-Za-z0-9_:.-]{2,40})""", re.IGNORECASE)
_NOWHERE = 1_000_000


def read_source(data: bytes, _file_type: FileType, encoding: str, _deadline: float) -> SourceText:
    """Counts the words that a page shows; what is hidden is counted apart."""
    return count_page(_decode(data, encoding))


def count_page(text: str) -> SourceText:
    """Counts the words of a page that is text already. Without any other text, that for browsers without scripts
    counts."""
    text = rewrite_page(text)
    styles = PageStyles(text)
    page = _Page(styles)
    page.scan(text)
    if 2 * page.hidden_by_sheets > page.chars:  # scripts show what the sheets hide
        page = _Page(styles, is_hiding=False)
        page.scan(text)
    source = page.source
    if not source.words and page.without_scripts:
        source.words["text"] = page.without_scripts
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
    if "16" in encoding and b"\0" in data[:4096]:  # a text of zeros is UTF-8 too
        return data.decode(encoding, "replace")
    match = _CHARSET.search(data[:4096])
    declared = match[1].decode("ascii") if match else ""
    is_western = declared.lower() in {"iso-8859-1", "iso-8859-15", "windows-1252", "latin1"}
    for name in ("utf-8", declared) if is_western else (declared, "utf-8", encoding, "cp1252"):
        try:
            return decode_text(data, name)
        except (LookupError, ValueError):
            continue
    return data.decode("utf-8", "replace")


class _Page:
    """Collects inline text until a block begins or ends, and knows why an element is not shown."""

    def __init__(self, styles: PageStyles | None, *, is_hiding: bool = True) -> None:
        self.source = SourceText()
        self.chars = 0
        self.hidden_by_sheets = 0
        """Characters that only style sheets hide, of `chars` in all."""
        self._styles = styles or None
        self._is_hiding = is_hiding
        self._path: list[Tag] = []
        """The open elements, where there are style sheets."""
        self.without_scripts: Counter[str] = Counter()
        self._open: list[Opened] = []
        self._parts: list[str] = []
        self._equation = _NOWHERE
        """How many elements were open where an equation began."""
        self._endless: set[str] = set()
        """Elements with text like tags whose end the rest of the page does not have."""
        self._shown = 0
        """Pieces of text and pictures so far."""
        self._ended = ""
        """The element that has just ended, if nothing followed."""
        self._ahead = "", 0
        """The page, and where what follows the last tag begins."""
        self._is_after_equation = False
        """The same of an equation, which may have a drawing of itself beside it."""

    def scan(self, text: str) -> None:
        """Counts the text between the tags."""
        place = 0
        while (match := _TOKEN.search(text, place)) is not None:
            if match.start() > place:
                self._take(text[place : match.start()])
            place = match.end()
            self._ahead = text, place
            if match["end"]:
                self._close(match["end"].lower())
            elif match["start"]:
                tag = match["start"].lower()
                self._start(tag, match["attributes"])
                if tag in _RAW and (end := self._find_end(text, tag, place)) is not None:
                    if tag == "textarea":
                        self._take(text[place:end])
                    elif tag == "title":
                        self._name_drawing(text[place:end])
                    place = end
        self._take(text[place:])
        self.flush()

    def _find_end(self, text: str, tag: str, place: int) -> int | None:
        if tag in self._endless:
            return None
        match = re.compile(f"</{tag}[\\s>]", re.IGNORECASE).search(text, place)
        if match is None:
            self._endless.add(tag)
        return None if match is None else match.start()

    def _start(self, tag: str, attributes: str) -> None:
        self._close_implied(tag)
        if not _is_inline(tag):
            self.flush()
        elif tag in _SEPARATE or tag in {"br", "input", "img"} or ("-" in tag and "-" in self._ended):
            self._parts.append(" ")
        elif tag in _LINKS and tag == self._ended:
            self._parts.append(JOINT)
        ended, self._ended = self._ended, ""
        if tag == "iframe" and not self._reason and not _find_hiding(attributes):
            self._count_frame(attributes)
        is_drawing = self._is_after_equation and _DRAWING.search(attributes) is not None
        self._is_after_equation = False
        self._shown += tag in {"img", "input", "math"}
        if tag == "math":
            self._equation = min(self._equation, len(self._open))
        if tag not in _VOID:
            above = "" if tag == "foreignobject" and self._reason == _OMITTED["svg"] else self._reason
            reason = "drawing of an equation" if is_drawing else _find_reason(tag, attributes)
            given = self._read_attributes(attributes)
            layout = self._find_layout(tag, given)
            hidden = _BY_SHEET if layout.is_hidden and self._is_hiding and self._styles else ""
            parent = self._open[-1] if self._open else None
            gap = find_gap(tag, layout, given.get("role", ""), parent) if _is_inline(tag) else ""
            self._add_gap(JOINT if gap == BOUND and not ended else gap)
            is_preformatted = tag == "pre" or (parent is not None and parent.is_preformatted)
            has_boxes = layout.has_boxes or (layout.is_skipped and parent is not None and parent.has_boxes)
            is_silent = bool(above or hidden) or (parent is not None and parent.is_silent)
            if attributes and not is_silent and (given or tag == "svg"):
                is_silent = _DRAWING.search(attributes) is not None or bool(_find_hiding(attributes))
            name = find_name(tag, given, is_inline=_is_inline(tag)) if given and not is_silent else ""
            is_silent = is_silent or tag in SIGNED
            why = above or reason or hidden
            before, after = self._find_added(given) if not why else ("", "")
            self._add_gap(before)
            self._open.append(Opened(tag, why, gap, has_boxes, name, is_silent, self._shown, is_preformatted, after))
            if attributes.endswith("/") and self._reason == _OMITTED["svg"]:
                self._close(tag)

    def _find_added(self, given: dict[str, str]) -> tuple[str, str]:
        """What style sheets add before and behind the element that starts; it may be part of a word."""
        if not self._styles or not self._styles.adds_text:
            return "", ""
        before, after = self._styles.find_added(self._path, given, JOINT)
        if before or after:
            text, start = self._ahead
            own = unescape(text[start : text.find("<", start)]).split()
            before, after = (
                "" if own and added.split() == own else added for added in (before, after)
            )  # a drawing of it
        return before and f"{before}{JOINT}", after and f"{JOINT}{after}"

    def _count_frame(self, attributes: str) -> None:
        """Counts the page that a frame holds in itself."""
        for name, double, single, bare in _ATTRIBUTE.findall(attributes):
            if name.lower() == "srcdoc":
                inner = _Page(None)
                inner.scan(unescape(double or single or bare))
                for kind, words in inner.source.words.items():
                    self.source.words.setdefault(kind, Counter()).update(words)
                self.source.omitted.update(inner.source.omitted)

    def _read_attributes(self, attributes: str) -> dict[str, str]:
        """The attributes of a tag, if they may matter."""
        if not attributes or (self._styles is None and not _TELLING.search(attributes)):
            return {}
        return {
            name.lower(): unescape(double or single or bare)
            for name, double, single, bare in _ATTRIBUTE.findall(attributes)
        }

    def _find_layout(self, tag: str, given: dict[str, str]) -> Layout:
        style = given.get("style", "")
        if self._styles is None:
            return read_own_layout(style)
        del self._path[len(self._open) :]
        ids, classes = frozenset(given.get("id", "").split()), frozenset(given.get("class", "").split())
        self._path.append(Tag(tag, ids, classes))
        return self._styles.find_layout(self._path, style)

    def _name_drawing(self, title: str) -> None:
        """Takes the title of a drawing as its name."""
        if len(self._open) > 1 and (drawing := self._open[-2]).tag == "svg" and not (drawing.name or drawing.is_silent):
            self._open[-2] = drawing._replace(name=unescape(title))

    def _close(self, tag: str) -> None:
        """Closes an element and those left open in it; an end without a start is ignored."""
        place = next((at for at in range(len(self._open) - 1, -1, -1) if self._open[at].tag == tag), len(self._open))
        self._add_text_behind(place)
        if not _is_inline(tag):
            self.flush()
        elif tag in _SEPARATE:
            self._parts.append(" ")
        self._loosen()
        self._ended = tag
        self._is_after_equation = tag == "math" or (self._is_after_equation and _is_inline(tag))
        for ended in self._open[place : place + 1]:
            self._add_gap(ended.gap)
            del self._open[place:]
            if ended.name.strip() and ended.before == self._shown:
                self.source.add("names of pictures", ended.name)
                self._shown += 1

    def _add_text_behind(self, place: int) -> None:
        """Adds what style sheets put at the end of the open elements from a place on."""
        for one in reversed(self._open[place:]):
            self._add_gap(one.added)

    def _add_gap(self, gap: str) -> None:
        if gap:
            self._parts.append(gap)

    def _loosen(self) -> None:
        """Makes a piece of a word possible of a box that ended, if no element follows it."""
        if self._ended and self._parts and self._parts[-1] == BOUND:
            self._parts[-1] = JOINT

    def _take(self, data: str) -> None:
        reason = self._reason
        self._loosen()
        self._ended = ""
        self._is_after_equation = self._is_after_equation and not data.strip()
        if reason != "silent":
            self.chars += len(data)
        if reason == _BY_SHEET:
            self.hidden_by_sheets += len(data)
        if not reason and self._is_in_equation():  # read as LaTeX, in other words
            self.source.add_loose("equation", unescape(data))
        elif not reason:
            self._parts.append(unescape(data))
            self._shown += bool(data.strip())
        elif reason != "silent":
            self.source.omit(reason, unescape(data))
            if reason == _OMITTED["noscript"]:
                self.without_scripts.update(split_words(unescape(data)))

    def _is_in_equation(self) -> bool:
        if len(self._open) <= self._equation:
            self._equation = _NOWHERE
        return self._equation != _NOWHERE

    def flush(self) -> None:
        """Counts the inline text so far."""
        text = "".join(self._parts)
        self._parts.clear()
        text = resolve_bounds(text)
        if JOINT in text:
            joined = [word for word in text.split() if JOINT in word]
            self.source.add_loose("text", " ".join(joined).replace(JOINT, ""))
            text = " ".join(word for word in text.split() if JOINT not in word)
        self.source.add("text", text)

    @property
    def _reason(self) -> str:
        return self._open[-1].reason if self._open else ""

    def _close_implied(self, tag: str) -> None:
        closes = _CLOSES.get(tag) or (_PARAGRAPH if tag in _BLOCKS_END_P else None)
        if closes is None or not self._open:
            return
        scope = _SCOPE.get(tag, _TABLE_SCOPE)
        place = len(self._open) - 1
        last = None
        while place >= 0 and self._open[place].tag not in scope:
            if self._open[place].tag in closes:
                last = place
                if tag not in {"tr", "tbody"}:
                    break
            elif not _is_inline(self._open[place].tag) and tag not in {"tr", "tbody", "td", "th"}:
                break
            place -= 1
        if last is not None:
            self._add_text_behind(last)
            self.flush()
            del self._open[last:]


def _is_inline(tag: str) -> bool:
    return tag not in _BLOCKS and tag not in _CLOSES


def _find_reason(tag: str, attributes: str) -> str:
    if tag in _OMITTED:
        return _OMITTED[tag]
    if tag in _SILENT:
        return "silent"
    if tag in _SHOWN_BY and _SHOWN_BY[tag] not in {name.lower() for name, *_ in _ATTRIBUTE.findall(attributes)}:
        return "hidden text"
    return _find_hiding(attributes)


def _find_hiding(attributes: str) -> str:
    """Why an element is hidden by its own attributes; empty if it is not."""
    given = attributes.lower()
    if "hidden" in given or "none" in given or "collapse" in given:
        for name, double, single, bare in _ATTRIBUTE.findall(attributes):
            value = double or single or bare
            if name.lower() == "hidden" and value.strip().lower() != "until-found":
                return "hidden text"
            declared = sorted(_DECLARED.findall(unescape(value)), key=lambda one: bool(one[2]))  # important ones last
            values = {of.lower(): last.lower() for of, last, _ in declared}
            if name.lower() == "style" and not _INVISIBLE.isdisjoint(values.values()):
                return "hidden text"
    return ""
