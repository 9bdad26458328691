"""Facts about a PDF that PDFium has and liteparse does not pass on: the text of pages, stamps, attached files, layers.

By ctypes on the library that liteparse brings. Where that is missing nothing is found; the pages are read all the same.
"""

import contextlib
import ctypes
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import liteparse

from gateway.features.documents.engine.ingest.parsers import pdfium_objects, pdfium_picture, pdfium_unseen
from gateway.features.documents.engine.ingest.parsers.pdfium_text import (
    MAX_CHARACTERS,
    FloatBox,
    PageText,
    PageTextFacts,
    join_halves,
)
from gateway.features.documents.engine.ingest.parsers.pdfium_unseen import UnseenText, find_unseen

_TEXT_FIELDS = frozenset({20, 21})
"""Kinds of annotations by PDFium's numbers: widgets, which liteparse reads as part of the page, and screens."""
_LINKS = frozenset({2, 16})
"""Links, and popups, which show the text of another annotation."""
_STAMP = 13
_HIDDEN = 2 | 32
"""Flags of annotations that nobody sees: hidden, no view."""

_MAX_ATTACHMENTS = 1000
_MAX_NAME = 2_000
"""Bytes."""


_P, _I, _U = ctypes.c_void_p, ctypes.c_int, ctypes.c_ulong
_D = ctypes.POINTER(ctypes.c_double)
_L = ctypes.POINTER(ctypes.c_ulong)
_FUNCTIONS: Mapping[str, tuple[Any, ...]] = {
    "FPDF_InitLibrary": (None,),
    "FPDF_LoadMemDocument64": (_P, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p),
    "FPDF_CloseDocument": (None, _P),
    "FPDF_LoadPage": (_P, _P, _I),
    "FPDF_ClosePage": (None, _P),
    "FPDFDoc_GetAttachmentCount": (_I, _P),
    "FPDFDoc_GetAttachment": (_P, _P, _I),
    "FPDFAttachment_GetName": (_U, _P, _P, _U),
    "FPDFText_LoadPage": (_P, _P),
    "FPDFText_ClosePage": (None, _P),
    "FPDFText_CountChars": (_I, _P),
    "FPDFText_GetCharIndexFromTextIndex": (_I, _P, _I),
    "FPDFText_GetFontSize": (ctypes.c_double, _P, _I),
    "FPDFText_GetCharOrigin": (_I, _P, _I, _D, _D),
    "FPDFText_GetCharBox": (_I, _P, _I, _D, _D, _D, _D),
    "FPDFText_GetLooseCharBox": (_I, _P, _I, ctypes.POINTER(FloatBox)),
    "FPDFText_GetTextObject": (_P, _P, _I),
    "FPDFText_IsGenerated": (_I, _P, _I),
    "FPDFText_HasUnicodeMapError": (_I, _P, _I),
    "FPDFText_GetText": (_I, _P, _I, _I, _P),
    "FPDFPage_CountObjects": (_I, _P),
    "FPDFPage_GetObject": (_P, _P, _I),
    "FPDFPage_RemoveObject": (_I, _P, _P),
    "FPDFPageObj_Destroy": (None, _P),
    "FPDFPage_GenerateContent": (_I, _P),
    "FPDFPage_Flatten": (_I, _P, _I),
    "FPDFPageObj_CountMarks": (_I, _P),
    "FPDFPageObj_GetMark": (_P, _P, _U),
    "FPDFPageObjMark_GetName": (_I, _P, _P, _U, _L),
    "FPDFPageObjMark_GetParamStringValue": (_I, _P, ctypes.c_char_p, _P, _U, _L),
    "FPDF_GetPageCount": (_I, _P),
    "FPDF_SaveAsCopy": (_I, _P, _P, _U),
    "FPDFPage_GetAnnotCount": (_I, _P),
    "FPDFPage_GetAnnot": (_P, _P, _I),
    "FPDFPage_CloseAnnot": (None, _P),
    "FPDFPage_RemoveAnnot": (_I, _P, _I),
    "FPDFAnnot_GetSubtype": (_I, _P),
    "FPDFAnnot_GetFlags": (_I, _P),
    "FPDFAnnot_GetFileAttachment": (_P, _P),
    "FPDFAnnot_GetAP": (_U, _P, _I, _P, _U),
    "FPDFAnnot_GetStringValue": (_U, _P, ctypes.c_char_p, _P, _U),
    **pdfium_objects.FUNCTIONS,
    **pdfium_picture.FUNCTIONS,
    **pdfium_unseen.FUNCTIONS,
}
"""The functions of PDFium that are called: what they return, and what they take."""


class _Writer(ctypes.Structure):
    """What PDFium writes a file to, one block after another."""

    _fields_ = (
        ("version", ctypes.c_int),
        ("write_block", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_ulong)),
    )


class Pdfium:
    """An open file."""

    def __init__(self, library: ctypes.CDLL, document: Any) -> None:
        self._library = library
        self._document = document

    def list_attachments(self) -> list[str]:
        """The names of the files in this file."""
        count = min(self._library.FPDFDoc_GetAttachmentCount(self._document), _MAX_ATTACHMENTS)
        handles = (self._library.FPDFDoc_GetAttachment(self._document, index) for index in range(max(count, 0)))
        return [self._read_text(self._library.FPDFAttachment_GetName, one) or "unnamed" for one in handles if one]

    def read_text_facts(self, page: int) -> tuple[PageTextFacts, UnseenText]:
        """What stands out of the text of a page (from 1), and what nobody sees of it."""
        with self._open_text(page) as (handle, text):
            if not text:
                return PageTextFacts(), UnseenText()
            return PageText(self._library, text).read_facts(), find_unseen(self._library, handle, text)

    def remove_layers(self, names: Collection[str]) -> bytes | None:
        """The file without what its pages draw in layers of these names; None if they draw nothing in them. The empty
        name stands for groups of layers.

        The pages of this object lose it too.
        """
        library = self._library
        removed = 0
        for number in range(library.FPDF_GetPageCount(self._document)):
            page = library.FPDF_LoadPage(self._document, number)
            if not page:
                continue
            parts = [library.FPDFPage_GetObject(page, at) for at in range(library.FPDFPage_CountObjects(page))]
            hidden = [part for part in parts if self._is_in_layer(part, names)]
            for part in hidden:
                if library.FPDFPage_RemoveObject(page, part):
                    library.FPDFPageObj_Destroy(part)
            if hidden:
                library.FPDFPage_GenerateContent(page)
            removed += len(hidden)
            library.FPDF_ClosePage(page)
        return self._save() if removed else None

    def _is_in_layer(self, part: Any, names: Collection[str]) -> bool:
        marks = range(max(self._library.FPDFPageObj_CountMarks(part), 0))
        return any(self._read_layer(self._library.FPDFPageObj_GetMark(part, at)) in names for at in marks)

    def _read_layer(self, mark: Any) -> str | None:
        """The name of the layer that a mark begins, empty for a group of layers; None if it is another mark."""
        if self._read_mark(self._library.FPDFPageObjMark_GetName, mark) != "OC":
            return None
        return " ".join(self._read_mark(self._library.FPDFPageObjMark_GetParamStringValue, mark, b"Name").split())

    def _read_mark(self, function: Any, *arguments: Any) -> str:
        size = ctypes.c_ulong()
        if not function(*arguments, None, 0, ctypes.byref(size)) or not 2 < size.value < _MAX_NAME:
            return ""
        buffer = ctypes.create_string_buffer(size.value)
        function(*arguments, buffer, size.value, ctypes.byref(size))
        return buffer.raw.decode("utf-16-le", "replace").partition("\0")[0]

    def _save(self) -> bytes | None:
        written = bytearray()

        def write(_writer: int, data: int, size: int) -> int:
            written.extend(ctypes.string_at(data, size))
            return 1

        writer = _Writer(1, type(_Writer().write_block)(write))
        return bytes(written) if self._library.FPDF_SaveAsCopy(self._document, ctypes.byref(writer), 0) else None

    def list_hidden_notes(self, page: int) -> list[str]:
        """The texts of the annotations of a page (from 1) that nobody sees."""
        hidden = (note for note in self._iter_notes(page) if self._library.FPDFAnnot_GetFlags(note) & _HIDDEN)
        return [self._read_value(note, b"Contents").strip() for note in hidden]

    def list_pinned_files(self, page: int) -> list[str]:
        """The names of the files that annotations of a page (from 1) hold."""
        files = map(self._library.FPDFAnnot_GetFileAttachment, self._iter_notes(page))
        return [self._read_text(self._library.FPDFAttachment_GetName, one) or "unnamed" for one in files if one]

    def _iter_notes(self, page: int) -> Iterator[Any]:
        library = self._library
        handle = library.FPDF_LoadPage(self._document, page - 1)
        try:
            for index in range(library.FPDFPage_GetAnnotCount(handle) if handle else 0):
                if note := library.FPDFPage_GetAnnot(handle, index):
                    yield note
                    library.FPDFPage_CloseAnnot(note)
        finally:
            if handle:
                library.FPDF_ClosePage(handle)

    def list_drawn_notes(self, page: int) -> list[str]:
        """The words that stamps and other annotations draw on a page (from 1), and the names of stamps without any.

        The page is empty in this object afterwards.
        """
        library = self._library
        handle = library.FPDF_LoadPage(self._document, page - 1)
        if not handle:
            return []
        try:
            names, drawn = self._keep_drawn_notes(handle)
            if drawn:
                for index in reversed(range(library.FPDFPage_CountObjects(handle))):
                    one = library.FPDFPage_GetObject(handle, index)
                    if library.FPDFPage_RemoveObject(handle, one):
                        library.FPDFPageObj_Destroy(one)
                library.FPDFPage_GenerateContent(handle)
                library.FPDFPage_Flatten(handle, 0)
        finally:
            library.FPDF_ClosePage(handle)
        if drawn:
            with self._open_text(page) as (_, text):
                written = PageText(self._library, text).written if text else ""
            words = " ".join(join_halves(written).split())
            names += [words] if words else []
        return names

    def _keep_drawn_notes(self, page: Any) -> tuple[list[str], int]:
        """Removes all annotations but those with a drawing and without words of their own; the names of stamps that
        have neither, and how many are left."""
        library = self._library
        names: list[str] = []
        drawn = 0
        for index in reversed(range(library.FPDFPage_GetAnnotCount(page))):
            note = library.FPDFPage_GetAnnot(page, index)
            if not note:
                continue
            kind = library.FPDFAnnot_GetSubtype(note)
            is_seen = kind not in _TEXT_FIELDS | _LINKS and not library.FPDFAnnot_GetFlags(note) & _HIDDEN
            has_words = kind != _STAMP and bool(self._read_value(note, b"Contents").strip())
            has_drawing = bool(library.FPDFAnnot_GetAP(note, 0, None, 0) > 2)
            is_drawn = is_seen and has_drawing and not has_words
            if kind == _STAMP and is_seen and not has_drawing and (name := self._read_value(note, b"Name")):
                names.append(f"Stamp: {name}")
            library.FPDFPage_CloseAnnot(note)
            if is_drawn:
                drawn += 1
            else:
                library.FPDFPage_RemoveAnnot(page, index)
        return names[::-1], drawn

    def _read_value(self, note: Any, name: bytes) -> str:
        return self._read_text(self._library.FPDFAnnot_GetStringValue, note, name)

    def _read_text(self, function: Any, *arguments: Any) -> str:
        """A text that PDFium writes into a buffer in UTF-16, once its length in bytes is known."""
        length = function(*arguments, None, 0)
        if not 2 < length < 2 * MAX_CHARACTERS:
            return ""
        buffer = ctypes.create_string_buffer(length)
        function(*arguments, buffer, length)
        return buffer.raw.decode("utf-16-le", "replace").partition("\0")[0]

    @contextlib.contextmanager
    def _open_text(self, page: int) -> Iterator[tuple[Any, Any]]:
        """A page (from 1) and its text; None if they cannot be read."""
        handle = self._library.FPDF_LoadPage(self._document, page - 1)
        text = self._library.FPDFText_LoadPage(handle) if handle else None
        try:
            yield handle, text
        finally:
            if text:
                self._library.FPDFText_ClosePage(text)
            if handle:
                self._library.FPDF_ClosePage(handle)


@contextlib.contextmanager
def open_pdfium(data: bytes, password: str | None) -> Iterator[Pdfium | None]:
    """The file as PDFium opens it; None if it does not, or if the library is not where liteparse has it."""
    library = _load_library()
    document = library and library.FPDF_LoadMemDocument64(data, len(data), password.encode() if password else None)
    if not library or not document:
        yield None
        return
    try:
        yield Pdfium(library, document)
    finally:
        library.FPDF_CloseDocument(document)


@cache
def _load_library() -> ctypes.CDLL | None:
    place = next((one for one in sorted(Path(liteparse.__file__).parent.glob("*pdfium.*")) if one.is_file()), None)
    if place is None:
        return None
    try:
        library = ctypes.CDLL(str(place))
        for name, (result, *arguments) in _FUNCTIONS.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
    except (OSError, AttributeError):  # another version
        return None
    library.FPDF_InitLibrary()
    return library
