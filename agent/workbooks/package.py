"""The parts of a workbook's file: which sheets there are, shared strings, formats of styles, comments."""

import io
import posixpath
import re
import zipfile
from collections.abc import Iterator, Sequence
from typing import IO, Any, NamedTuple, TypeAlias

from lxml import etree  # type: ignore[import-untyped]

from agent.text.struck import join_pieces, strike_out
from agent.text.superscripts import RISES, write_fractions, write_moved
from agent.workbooks.number_formats import BUILTIN_FORMATS, GENERAL

Element: TypeAlias = Any
"""An lxml element; lxml has no types."""

_RELATIONS = (
    "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id",
    "{http://purl.oclc.org/ooxml/officeDocument/relationships}id",
)

_SHEETS = frozenset({"worksheet", "chartsheet"})
"""Kinds of sheets. One that is a chart has no cells."""
_ESCAPE = re.compile("_x([0-9A-Fa-f]{4})_")


class SheetPart(NamedTuple):
    """A sheet: its name, the path of its part, and whether it is shown."""

    name: str
    path: str
    is_shown: bool


class Relation(NamedTuple):
    """A relationship of a part: the last word of its type, and the path of its target."""

    kind: str
    target: str


class CellStyle(NamedTuple):
    """How cells look that have a style: the code of their format, and whether they are struck out."""

    format: str
    is_struck: bool = False


class WorkbookPackage:
    """An open xlsx. Raises `zipfile.BadZipFile` and KeyError for other files."""

    def __init__(self, file: bytes | IO[bytes]) -> None:
        self._archive = zipfile.ZipFile(io.BytesIO(file) if isinstance(file, bytes) else file)
        self._names = {_get_key(name): name for name in self._archive.namelist()}
        relations = self.list_relations("")
        main = next((one.target for one in relations.values() if one.kind == "officeDocument"), "xl/workbook.xml")
        root = self.read(main)
        if root is None:
            raise KeyError(main)
        self._relations = self.list_relations(main)
        settings = next((one for one in root if get_name(one) == "workbookPr"), None)
        self.date1904 = settings is not None and settings.get("date1904") in {"1", "true"}
        calculation = next((one for one in root if get_name(one) == "calcPr"), None)
        self.recalculates = calculation is not None and calculation.get("fullCalcOnLoad") in {"1", "true"}
        """Whether programs compute every formula when they open the file: zeros beside formulas then mean nothing."""
        self.sheets = tuple(self._iter_sheets(root))

    def _iter_sheets(self, root: Element) -> Iterator[SheetPart]:
        for sheet in root.iter("{*}sheet"):
            relation = self._relations.get(next((v for name in _RELATIONS if (v := sheet.get(name))), ""))
            if relation is not None and relation.kind in _SHEETS:
                yield SheetPart(sheet.get("name", ""), relation.target, sheet.get("state", "visible") == "visible")

    def read(self, path: str) -> Element | None:
        """The element of a part; None if it is missing."""
        if not self.has(path):
            return None
        return etree.fromstring(
            self._archive.read(self._names[_get_key(path)]), etree.XMLParser(resolve_entities=False, no_network=True)
        )

    def has(self, path: str) -> bool:
        """Whether a part is in the file."""
        return _get_key(path) in self._names

    def open(self, path: str) -> IO[bytes]:
        """Opens a part as a stream. Raises KeyError if it is not in the file."""
        return self._archive.open(self._names[_get_key(path)])

    def list_relations(self, path: str) -> dict[str, Relation]:
        """The relationships of a part by their ids."""
        folder, name = posixpath.split(path)
        root = self.read(posixpath.join(folder, "_rels", f"{name}.rels"))
        relations = {}
        for one in () if root is None else root.iter("{*}Relationship"):
            target = one.get("Target", "")
            full = target[1:] if target.startswith("/") else posixpath.normpath(posixpath.join(folder, target))
            if one.get("TargetMode") != "External":
                relations[one.get("Id", "")] = Relation(one.get("Type", "").rpartition("/")[2], full)
        return relations

    def read_strings(self, *, is_struck: bool = False) -> list[str]:
        """The shared strings, as cells show them that are struck out or not."""
        path = next((one.target for one in self._relations.values() if one.kind == "sharedStrings"), "")
        root = self.read(path)
        return (
            []
            if root is None
            else [collect_string(item, is_struck=is_struck) for item in root if get_name(item) == "si"]
        )

    def read_styles(self) -> list[CellStyle]:
        """The style of each number that cells have for theirs."""
        path = next((one.target for one in self._relations.values() if one.kind == "styles"), "")
        root = self.read(path)
        if root is None:
            return []
        own = {one.get("numFmtId", ""): one.get("formatCode", "") for one in root.iter("{*}numFmt")}
        fonts = {str(index) for index, font in enumerate(root.iterfind("{*}fonts/{*}font")) if _is_struck(font)}
        return [
            CellStyle(_find_format(style.get("numFmtId", "0"), own), style.get("fontId", "0") in fonts)
            for style in root.iterfind("{*}cellXfs/{*}xf")
        ]


def _get_key(path: str) -> str:
    """A path as parts are compared: without regard to case, and some programs write the separators of Windows."""
    return path.replace("\\", "/").casefold()


def _find_format(number: str, own: dict[str, str]) -> str:
    if own.get(number):
        return own[number]
    return BUILTIN_FORMATS.get(int(number), GENERAL) if number.isdecimal() else GENERAL


def get_name(element: Element) -> str:
    """An element's name without its namespace."""
    return str(element.tag).rpartition("}")[2]


def collect_string(item: Element, *, is_struck: bool = False) -> str:
    """The runs of a string in order, without its phonetic reading, with marks around what is struck out: runs, or all
    that has no font of its own in a cell that is. Characters that XML forbids are decoded."""
    runs = [(_read_run(one), one.find("{*}rPr")) for one in item if get_name(one) in {"r", "t"}]
    if len(runs) == 1 and runs[0][1] is None:  # most strings
        return decode_string(strike_out(runs[0][0]) if is_struck else runs[0][0])
    parts: list[str] = []
    rises = [0 if font is None else _read_rise(font) for _, font in runs]
    before = before_raised = ""
    for (stored, font), rise, after in zip(runs, rises, _list_behind(runs, rises), strict=True):
        before = write_moved(rise, before_raised if rise > 0 else before, stored, after)
        before_raised = before_raised if rise > 0 else before
        parts.append(strike_out(before) if (is_struck if font is None else _is_struck(font)) else before)
    return decode_string(write_fractions(join_pieces(parts)))


def _list_behind(runs: Sequence[tuple[str, Element | None]], rises: Sequence[float]) -> list[str]:
    """The text behind each run, behind the whole of a text that is raised in several runs."""
    texts = [""][: len(runs)]
    for at in range(len(runs) - 1, 0, -1):
        texts.append(texts[-1] if rises[at - 1] > 0 and rises[at] > 0 else runs[at][0])
    return texts[::-1]


def _read_run(run: Element) -> str:
    """The text of a run, or of a string without runs."""
    if get_name(run) == "t":
        return run.text or ""
    return "".join(inner.text or "" for inner in run if get_name(inner) == "t")


def _read_rise(font: Element) -> int:
    align = font.find("{*}vertAlign")
    return 0 if align is None else RISES.get(align.get("val", ""), 0)


def _is_struck(font: Element) -> bool:
    strike = font.find("{*}strike")
    return strike is not None and strike.get("val", "1") in {"1", "true"}


def decode_string(text: str) -> str:
    """A text without the escapes of ECMA-376 part 1, 22.9.2.19: `_x000D_` is a line break, `_x005F_` an underscore.

    Two escapes may be the halves of one character; a half alone becomes U+FFFD.
    """
    if "_x" not in text:
        return text
    decoded = _ESCAPE.sub(lambda match: chr(int(match[1], 16)), text)
    return decoded.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
