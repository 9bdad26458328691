"""The file types that are read: ours, and those of the parsers of installed packages.

A type is a short name. Its extensions and media types say which files are of it, wherever documents come from: folders,
uploads, web sites, A2A.
"""

from collections.abc import Sequence

from gateway.features.documents.engine.search.models import FileType

BUILT_IN_TYPES: tuple[FileType, ...] = ("pdf", "html", "docx", "pptx", "xlsx", "csv", "md", "txt", "eml")
"""The types whose bytes are checked, and whose coverage is measured. Parsers of other types check by themselves."""
TYPES: dict[str, FileType] = {
    ".pdf": "pdf", ".html": "html", ".htm": "html", ".docx": "docx", ".pptx": "pptx", ".xlsx": "xlsx", ".csv": "csv",
    ".tsv": "csv", ".md": "md", ".markdown": "md", ".txt": "txt", ".text": "txt", ".log": "txt", ".rst": "txt",
    ".eml": "eml", ".mbox": "eml", ".emlx": "eml", ".mht": "eml",
    ".mhtml": "eml", ".xhtml": "html", ".docm": "docx", ".dotx": "docx", ".dotm": "docx", ".pptm": "pptx",
    ".ppsx": "pptx", ".ppsm": "pptx", ".potx": "pptx", ".potm": "pptx", ".xlsm": "xlsx", ".xltx": "xlsx",
    ".xltm": "xlsx",
}  # fmt: skip
"""The type of each extension."""
_OFFICE = "application/vnd.openxmlformats-officedocument"
MEDIA_TYPES: dict[str, FileType] = {
    "application/pdf": "pdf",
    "application/x-pdf": "pdf",
    "text/html": "html",
    "application/xhtml+xml": "html",
    f"{_OFFICE}.wordprocessingml.document": "docx",
    f"{_OFFICE}.presentationml.presentation": "pptx",
    f"{_OFFICE}.spreadsheetml.sheet": "xlsx",
    f"{_OFFICE}.wordprocessingml.template": "docx",
    f"{_OFFICE}.presentationml.slideshow": "pptx",
    f"{_OFFICE}.presentationml.template": "pptx",
    f"{_OFFICE}.spreadsheetml.template": "xlsx",
    "application/vnd.ms-word.document.macroenabled.12": "docx",
    "application/vnd.ms-powerpoint.presentation.macroenabled.12": "pptx",
    "application/vnd.ms-excel.sheet.macroenabled.12": "xlsx",
    "text/csv": "csv",
    "text/tab-separated-values": "csv",
    "text/markdown": "md",
    "text/x-markdown": "md",
    "message/rfc822": "eml",
    "application/mbox": "eml",
    "application/x-mimearchive": "eml",
    "multipart/related": "eml",
}
"""The type of each media type."""


def list_file_types() -> tuple[FileType, ...]:
    """Lists the types that a parser reads, ours first."""
    return tuple(dict.fromkeys((*BUILT_IN_TYPES, *TYPES.values())))


def register_file_types(names: Sequence[FileType], extensions: Sequence[str], media_types: Sequence[str]) -> None:
    """Adds the new type of a parser, if one of its `names` is new; the same again changes nothing.

    Without extensions the name is the extension: `epub` for `book.epub`. Raises ValueError if two names are new, since
    nothing would distinguish their files, if something is not an extension, and if another type has it already.
    """
    new = [name for name in names if name not in BUILT_IN_TYPES]
    if not new:
        return
    if len(new) > 1:
        raise ValueError(f"a parser adds one file type, not {len(new)}: {', '.join(new)}")
    claims = [(TYPES, extension.lower()) for extension in extensions or (f".{new[0]}",)]
    for _, extension in claims:
        if not extension.startswith(".") or len(extension) < 2 or "/" in extension:
            raise ValueError(f"{extension!r} is not an extension such as .epub")
    claims += [(MEDIA_TYPES, media_type.lower()) for media_type in media_types]
    for known_type, name in claims:
        if known_type.get(name, new[0]) != new[0]:
            raise ValueError(f"files of {name} are of the type {known_type[name]!r} already")
    for known_type, name in claims:
        known_type[name] = new[0]
