"""Office files that libraries refuse and programs open: strict namespaces, relationships to parts that are missing, and
templates, shows and files with macros, whose content type alone is another than a document's.

They are mended in memory before a reader opens them.
"""

import io
import posixpath
import re
import zipfile
from typing import Any

from lxml import etree  # type: ignore[import-untyped]

_STRICT = b"http://purl.oclc.org/ooxml/"
_OFFICE = b"http://schemas.openxmlformats.org/"
_STRICT_NAMES = re.compile(rb"http://purl\.oclc\.org/ooxml/([A-Za-z]+)/([A-Za-z/]+)")
"""ISO 29500-1 writes `.../ooxml/wordprocessingml/main` for what ECMA-376 calls `.../wordprocessingml/2006/main`."""

_TYPES = "[Content_Types].xml"
_PLAIN_TYPES = (
    (
        re.compile(
            rb"application/(?:vnd\.ms-word|vnd\.openxmlformats-officedocument\.wordprocessingml)\.[A-Za-z.]+\.main\+xml"
        ),
        b"application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml",
    ),
    (
        re.compile(
            rb"application/(?:vnd\.ms-powerpoint|vnd\.openxmlformats-officedocument\.presentationml)\.[A-Za-z.]+\.main\+xml"
        ),
        b"application/vnd.openxmlformats-officedocument.presentationml.presentation.main+xml",
    ),
)
"""What a main part may call itself, and the name under which the libraries open it."""

_ROOT = "_rels/.rels"
_CORE = b"/core-properties"


def prepare_package(data: bytes) -> bytes:
    """The package, mended where that is needed."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        names = set(archive.namelist())
        relations = [name for name in names if name.endswith(".rels")]
        roots = {name: archive.read(name) for name in relations}
        is_strict = any(_STRICT in root for root in roots.values())
        mended = {name: _drop_dangling(name, root, names) for name, root in roots.items()}
        if _TYPES in names:
            roots[_TYPES] = archive.read(_TYPES)
            mended[_TYPES] = _name_plainly(roots[_TYPES])
        if not is_strict and mended == roots:
            return data
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as copy:
            for name in names:
                part = mended.get(name) or archive.read(name)
                if is_strict and name.endswith((".xml", ".rels")):
                    part = _STRICT_NAMES.sub(_make_transitional, part)
                copy.writestr(name, part)
    return buffer.getvalue()


def has_core_properties(data: bytes) -> bool:
    """Whether a package has core properties. Libraries invent some where it has none."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return _ROOT in archive.namelist() and _CORE in archive.read(_ROOT)


def _name_plainly(types: bytes) -> bytes:
    for pattern, plain in _PLAIN_TYPES:
        types = pattern.sub(plain, types)
    return types


def _make_transitional(match: re.Match[bytes]) -> bytes:
    return _OFFICE + match[1] + b"/2006/" + match[2]


def _drop_dangling(name: str, data: bytes, names: set[str]) -> bytes:
    """The relationships whose targets are in the package, or outside of it."""
    try:
        root = etree.fromstring(data)
    except etree.XMLSyntaxError:
        return data
    folder = posixpath.dirname(posixpath.dirname(name))
    dangling = [one for one in root if isinstance(one.tag, str) and not _has_target(one, folder, names)]
    if not dangling:
        return data
    for one in dangling:
        root.remove(one)
    return bytes(etree.tostring(root, xml_declaration=True, encoding="UTF-8", standalone=True))


def _has_target(relation: Any, folder: str, names: set[str]) -> bool:
    target = relation.get("Target", "")
    if relation.get("TargetMode") == "External" or target.startswith("#"):
        return True
    path = target.lstrip("/") if target.startswith("/") else posixpath.normpath(posixpath.join(folder, target))
    return path in names
