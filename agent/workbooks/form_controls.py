"""The captions of buttons, check boxes and group boxes that lie on a sheet (VML, ECMA-376 part 4, 14)."""

import re
from collections.abc import Iterator

from lxml import etree  # type: ignore[import-untyped]

from agent.workbooks.package import WorkbookPackage

_OPEN_BREAK = re.compile(rb"<br\s*>", re.IGNORECASE)
_COMMENT = "Note"
"""The kind of the shapes that only frame a comment, whose text is in a part of its own."""


def iter_control_texts(package: WorkbookPackage, path: str) -> Iterator[str]:
    """Yields the text of each control of a part; a path of nothing has none. Programs write tags there that nothing
    closes, so that the part is read as far as it goes."""
    if not package.has(path):
        return
    with package.open(path) as stream:
        parser = etree.XMLParser(recover=True, resolve_entities=False, no_network=True)
        root = etree.fromstring(_OPEN_BREAK.sub(b"<br/>", stream.read()), parser)
    for shape in () if root is None else root.iter("{urn:schemas-microsoft-com:vml}shape"):
        kinds = [data.get("ObjectType") for data in shape.iter("{*}ClientData")]
        text = " ".join("".join(one.itertext()) for one in shape.iter("{urn:schemas-microsoft-com:vml}textbox"))
        if text.strip() and _COMMENT not in kinds:
            yield " ".join(text.split())
