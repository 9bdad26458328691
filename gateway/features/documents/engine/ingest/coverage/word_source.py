"""The text of a docx by kind: paragraph by paragraph, whatever its runs are wrapped in."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from xml.etree.ElementTree import Element

from gateway.features.documents.engine.ingest.coverage.fractions import part_fractions
from gateway.features.documents.engine.ingest.coverage.office_source import (
    Package,
    add_graphic_parts,
    choose_branch,
    get_attribute,
    get_name,
)
from gateway.features.documents.engine.ingest.coverage.source_text import SourceText
from gateway.features.documents.engine.search.models import FileType

_MATH = "/math}"
_REMOVED = {"del": "deleted text", "moveFrom": "moved text", "cellDel": "deleted text"}
_SPACES = frozenset({"tab", "ptab", "br", "cr", "sym"})
_SILENT = frozenset({"instrText", "delInstrText", "delText", "rPr", "pPr", "sdtPr", "tblPr", "tcPr", "trPr", "sectPr"})
_OFF = frozenset({"0", "false", "off"})
_PAGE_DIGITS = 4
_SHOWN_FIELD = re.compile(r"\s*(?:EQ|QUOTE|(?:MACRO|GOTO)BUTTON\s+\S+)\s(?P<shown>.*)", re.IGNORECASE | re.DOTALL)
"""Instructions of fields whose text is shown where no result is stored."""
_SWITCH = re.compile(r'\\\*\s*(?:"[^"]*"|\S+)|\\[a-z]+\s?-?\d*', re.IGNORECASE)
_DATA = {
    "customXml": "",
    "core-properties": "{6c3c8bc8-f283-45ae-878a-bab7291924a1}",
    "extended-properties": "{6668398d-a668-4e3e-a5eb-62b293d839f1}",
}
"""The parts with data, by the kind of their relationship, and the ids by which controls name them (MS-OE376)."""
_STEP = re.compile(r"(?:([\w.-]+):)?([\w.-]+)(?:\[(\d+)\])?")
_PREFIX = re.compile(r"xmlns:([\w.-]+)\s*=\s*[\"']([^\"']*)")
_MAX_PATH = 1000
"""Characters of a path to data; people write shorter ones."""
_NOTES = {"footnotes": "footnote", "endnotes": "endnote", "comments": "comment"}


class _Data(NamedTuple):
    """A part with data that controls show: its id, and its texts by path, each with the namespaces of its steps."""

    id: str
    texts: Mapping[str, tuple[tuple[str, ...], str]]


def read_source(data: bytes, _file_type: FileType, _encoding: str, _deadline: float) -> SourceText:
    """Counts the words of the body, of notes, comments, headers and footers."""
    package = Package(data)
    main = package.find_main_part()
    root = package.read(main)
    source = SourceText()
    if root is None:
        return source
    stored = _read_data(package, main)
    _fill_controls(root, stored)
    counter = _Counter(source, _list_hidden_styles(package, main))
    counter.count(root, "text")
    add_graphic_parts(source, package, main, root)
    heads = _list_shown_heads(root, package, main)
    for relation_id, relation in package.list_relations(main).items():
        part = package.read(relation.target) if relation.kind in {*_NOTES, "header", "footer"} else None
        if part is None:
            if relation.kind in _NOTES and package.has(relation.target):  # damaged: it has words all the same
                with package.open(relation.target) as stream:
                    words = re.sub(r"<[^<>]*>", " ", stream.read().decode("utf-8", "replace"))
                source.add(_NOTES[relation.kind], words)
            continue
        _fill_controls(part, stored)
        if relation.kind in _NOTES:
            _count_notes(counter, part, root, _NOTES[relation.kind])
        else:
            counter.count_head(part, relation.kind, is_shown=relation_id in heads)
    return source


def _fill_controls(part: Element, data: Sequence[_Data]) -> None:
    """Replaces the placeholders of controls by the data that they show instead."""
    for control in part.iter():
        options = [one for head in control if get_name(head) == "sdtPr" for one in head]
        binding = next((one for one in options if get_name(one) == "dataBinding"), None)
        if binding is not None and any(get_name(one) == "showingPlcHdr" for one in options):
            value = _find_value(binding, data)
            for text in control.iter() if value else ():
                if get_name(text) == "t":
                    text.text, value = value, ""


def _find_value(binding: Element, data: Sequence[_Data]) -> str:
    """The text that a control is bound to; empty if there is none."""
    spaces = dict(_PREFIX.findall(get_attribute(binding, "prefixMappings") or ""))
    steps = _STEP.findall(get_attribute(binding, "xpath") or "")
    path = "".join(f"/{name}" + ("" if number in {"", "1"} else f"[{number}]") for _, name, number in steps)
    wanted = [spaces.get(prefix) for prefix, _, _ in steps]
    named = (get_attribute(binding, "storeItemID") or "").lower()
    for one in [one for one in data if named and one.id == named] or data:
        if (text := one.texts.get(path)) and all(
            want in {None, has} for want, has in zip(wanted, text[0], strict=True)
        ):
            return text[1]
    return ""


def _read_data(package: Package, main: str) -> list[_Data]:
    """The file's own data, a part each."""
    relations = [*package.list_relations(main).values(), *package.list_relations("").values()]
    data = []
    for relation in relations:
        root = package.read(relation.target) if relation.kind in _DATA else None
        if root is None:
            continue
        about = [one.target for one in package.list_relations(relation.target).values() if one.kind == "customXmlProps"]
        properties = package.read(about[0]) if about else None
        own = "" if properties is None else (get_attribute(properties, "itemID") or "")
        data.append(_Data(_DATA[relation.kind] or own.lower(), _list_texts(root)))
    return data


def _list_texts(root: Element) -> dict[str, tuple[tuple[str, ...], str]]:
    """The texts of the elements by their paths (`/contract/party[2]/name`), each with the namespaces of its steps."""
    texts: dict[str, tuple[tuple[str, ...], str]] = {}
    open_elements: list[tuple[str, tuple[str, ...], Element]] = [(f"/{get_name(root)}", (_get_space(root),), root)]
    while open_elements:
        path, spaces, element = open_elements.pop()
        texts.setdefault(path, (spaces, "" if len(element) else (element.text or "").strip()))
        counts: Counter[str] = Counter()
        for child in element if len(path) < _MAX_PATH else ():
            counts[name := get_name(child)] += 1
            number = f"[{counts[name]}]" if counts[name] > 1 else ""
            open_elements.append((f"{path}/{name}{number}", (*spaces, _get_space(child)), child))
    return texts


def _get_space(element: Element) -> str:
    return element.tag.rpartition("}")[0].removeprefix("{")


def _count_notes(counter: "_Counter", part: Element, root: Element, kind: str) -> None:
    referred = {get_attribute(one, "id") for one in root.iter() if get_name(one) == f"{kind}Reference"}
    for note in part:
        is_shown = kind == "comment" or get_attribute(note, "id") in referred
        if get_name(note) == kind and get_attribute(note, "type") in {None, "normal"} and is_shown:
            counter.count(note, kind)


def _list_shown_heads(root: Element, package: Package, main: str) -> set[str]:
    """The relationships of the headers and footers that a section uses: those of the sections before it serve the
    sections that name none."""
    settings = next((r.target for r in package.list_relations(main).values() if r.kind == "settings"), "")
    options = package.read(settings)
    has_even = options is not None and any(get_name(o) == "evenAndOddHeaders" and _is_on(o) for o in options)
    heads = set()
    needed = {"default"} | ({"even"} if has_even else set())
    wanted = {(name, kind) for name in ("headerReference", "footerReference") for kind in needed}
    open_first: set[tuple[str, str]] = set()
    for section in reversed([one for one in root.iter() if get_name(one) == "sectPr"]):  # from the last section up
        if any(get_name(one) == "titlePg" and _is_on(one) for one in section):
            open_first = {("headerReference", "first"), ("footerReference", "first")}
        for one in section:
            key = (get_name(one), get_attribute(one, "type") or "default")
            if key in wanted | open_first:
                heads.add(get_attribute(one, "id") or "")
                open_first.discard(key)
    return heads


def _list_hidden_styles(package: Package, main: str) -> set[str]:
    """The styles that hide their text themselves."""
    path = next((r.target for r in package.list_relations(main).values() if r.kind == "styles"), "")
    root = package.read(path) if package.holds(path, b"vanish") else None  # styles are the largest part of most files
    hidden = set()
    for style in () if root is None else root:
        for properties in style:
            if get_name(properties) == "rPr" and any(get_name(o) == "vanish" and _is_on(o) for o in properties):
                hidden.add(get_attribute(style, "styleId") or "")
    return hidden


def _is_on(element: Element) -> bool:
    return get_attribute(element, "val") not in _OFF


class _Counter:
    """Counts the words of parts. The state of fields goes on from paragraph to paragraph."""

    def __init__(self, source: SourceText, hidden_styles: set[str]) -> None:
        self._source = source
        self._hidden_styles = hidden_styles
        self._fields: list[bool] = []
        self._instruction = ""
        self._default = ""
        """What the field of a form that began last shows before it is filled in."""
        self._chosen = ""
        """The entry that a drop-down list shows; some programs store it as the field's result too."""
        self._has_result_text = False
        self._carried: list[str] = []

    def count(self, element: Element, kind: str) -> None:
        """Counts everything below an element that is shown."""
        for child in element:
            self._count_child(child, kind)
        self._end_carried(kind)

    def _end_carried(self, kind: str) -> None:
        """Counts the text of paragraphs that go on in the next one, where none follows."""
        self._source.add(kind, "".join(self._carried))
        self._carried = []

    def count_head(self, part: Element, kind: str, *, is_shown: bool) -> None:
        """Counts a header or footer once: it repeats on every page."""
        inner = _Counter(SourceText(), self._hidden_styles)
        inner.count(part, kind)
        words = [word for counter in inner._source.words.values() for word in counter.elements()]
        if not is_shown:
            self._source.omit(f"unused {kind}", " ".join(words))
        elif not any(letter.isalpha() for word in words for letter in word) and (
            _counts_pages(part) or sum(map(len, words)) <= _PAGE_DIGITS
        ):
            self._source.omit("page number", " ".join(words))
        else:
            self._source.add(kind, " ".join(words))

    def _count_child(self, child: Element, kind: str) -> None:
        name = get_name(child)
        if name == "tbl":
            self._end_carried(kind)
        if name == "p":
            self._count_paragraph(child, kind)
        elif name == "AlternateContent":
            self.count(choose_branch(child), kind)
        elif name in _REMOVED:
            self._source.omit(_REMOVED[name], _collect(child))
        elif (name == "tr" and _is_removed(child, "trPr", "del")) or (
            name == "tc" and _is_removed(child, "tcPr", "cellDel")
        ):
            self._source.omit("deleted text", _collect(child))
        elif name == "altChunk":
            self._end_carried(kind)
            self._source.omitted["embedded document"] += 1
        elif name == "oMathPara":
            self._count_equation(child)
        elif name not in _SILENT:
            self.count(child, kind)

    def _count_paragraph(self, paragraph: Element, kind: str) -> None:
        parts: list[str] = []
        part_fractions(paragraph)
        self._count_inline(paragraph, kind, parts)
        self._carried += parts
        parts, self._carried = self._carried, []
        self._fields = [has_result for has_result in self._fields if has_result]
        if _has_style(paragraph, self._hidden_styles):
            runs = [one for one in paragraph.iter() if get_name(one) == "r" and _is_shown_anyway(one)]
            self._source.add(kind, "".join(map(_collect, runs)))
            self._source.omit("hidden text", "".join(parts))
        elif any(
            get_name(o) in {"del", "moveFrom"} or (get_name(r) == "framePr" and get_attribute(r, "dropCap"))
            for p in paragraph
            if get_name(p) == "pPr"
            for r in p
            for o in (*r, r)
        ):
            self._carried = parts
        else:
            self._source.add(kind, "".join(parts))

    def _count_inline(self, element: Element, kind: str, parts: list[str]) -> None:
        for child in element:
            name = get_name(child)
            if name == "instrText":
                self._instruction += child.text or ""
            if name in _SILENT:
                continue
            if name in _REMOVED:
                self._source.omit(_REMOVED[name], _collect(child))
            elif name == "r" and self._is_hidden(child):
                self._source.omit("hidden text", _collect(child))
            elif name in {"t", "fldChar", "noBreakHyphen", *_SPACES}:
                self._count_character(child, name, parts)
            elif name in {"oMath", "oMathPara", "rt"}:
                self._count_beside(child, name, kind, parts)
            elif name == "AlternateContent":
                self._count_inline(choose_branch(child), kind, parts)
            elif name == "txbxContent":
                around, self._carried = self._carried, []
                self.count(child, "text box")
                self._carried = around
            else:
                self._count_inline(child, kind, parts)

    def _count_character(self, element: Element, name: str, parts: list[str]) -> None:
        if name == "fldChar":
            self._follow_field(element)
        elif name == "t" and all(self._fields):
            parts.append(element.text or "")
            self._has_result_text = self._has_result_text or bool(element.text)
        elif name != "t":
            parts.append("-" if name == "noBreakHyphen" else " ")

    def _count_beside(self, element: Element, name: str, kind: str, parts: list[str]) -> None:
        """Counts an equation, or the reading of a ruby text, which are shown in another form than they are stored."""
        if name == "rt":
            self._source.add(kind, _collect(element))
        else:
            self._count_equation(element)
            parts.append(" ")

    def _count_equation(self, equation: Element) -> None:
        """Counts an equation without what tracked changes have removed from it."""
        removed = [one for one in equation.iter() if get_name(one) in _REMOVED]
        for one in removed:
            self._source.omit(_REMOVED[get_name(one)], _collect(one))
        gone = {id(inner) for one in removed for inner in one.iter()}
        texts = [one.text or "" for one in equation.iter() if get_name(one) == "t" and id(one) not in gone]
        self._source.add_loose("equation", " ".join(texts))

    def _follow_field(self, mark: Element) -> None:
        match get_attribute(mark, "fldCharType"):
            case "begin":
                self._fields.append(False)
                self._instruction = ""
                texts = [one for one in mark.iter() if get_name(one) == "textInput"]
                defaults = [one for text in texts for one in text if get_name(one) == "default"]
                self._default = " ".join(get_attribute(one, "val") or "" for one in defaults)
                self._chosen, self._has_result_text = _find_chosen_entry(mark), False
            case "separate" if self._fields:
                self._fields[-1] = True
            case "end" if self._fields:
                has_result = self._fields.pop()
                if self._chosen and not self._has_result_text:
                    self._source.add_loose("field", self._chosen)
                elif not has_result and not self._chosen:
                    self._count_instruction()
                self._chosen = ""

    def _count_instruction(self) -> None:
        match = _SHOWN_FIELD.match(self._instruction)
        text = self._default or (_SWITCH.sub(" ", match["shown"]) if match else "")
        self._source.add_loose("field", text)

    def _is_hidden(self, run: Element) -> bool:
        for properties in run:
            if get_name(properties) == "rPr":
                for one in properties:
                    if get_name(one) == "vanish":
                        return _is_on(one)
                return any(
                    get_name(o) == "rStyle" and get_attribute(o, "val") in self._hidden_styles for o in properties
                )
        return False


def _is_shown_anyway(run: Element) -> bool:
    """Whether a run says that it is not hidden, as its style would have it."""
    return any(get_name(one) == "vanish" and not _is_on(one) for head in run if get_name(head) == "rPr" for one in head)


def _find_chosen_entry(mark: Element) -> str:
    """The entry that a drop-down list of a form shows: the chosen one, the default one or the first."""
    choices = [one for lists in mark.iter() if get_name(lists) == "ddList" for one in lists]
    values = {get_name(one): get_attribute(one, "val") or "" for one in choices}
    entries = [get_attribute(one, "val") or "" for one in choices if get_name(one) == "listEntry"]
    number = values.get("result", values.get("default", "0"))
    chosen = entries[int(number) :] if number.isdecimal() else []
    return next(iter(chosen or entries), "")


def _has_style(paragraph: Element, styles: set[str]) -> bool:
    return any(
        get_name(one) == "pStyle" and get_attribute(one, "val") in styles
        for properties in paragraph
        if get_name(properties) == "pPr"
        for one in properties
    )


def _counts_pages(part: Element) -> bool:
    """Whether a field of a header or footer shows the number of the page."""
    texts = [one.text or get_attribute(one, "instr") or "" for one in part.iter()]
    return any("PAGE" in text.upper() for text in texts)


def _is_removed(element: Element, properties: str, mark: str) -> bool:
    """Whether a row or a cell is marked as deleted in its properties."""
    return any(get_name(o) == mark for p in element if get_name(p) == properties for o in p)


def _collect(element: Element) -> str:
    """All text of an element, its paragraphs apart."""
    parts = []
    for one in element.iter():
        if get_name(one) in {"t", "delText"}:
            parts.append(one.text or "")
            if _MATH in one.tag:
                parts.append(" ")
        elif get_name(one) == "p":
            parts.append(" ")
    return "".join(parts)
