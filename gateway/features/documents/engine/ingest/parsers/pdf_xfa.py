"""The values of a PDF form that XFA draws: its pages hold a note that another program is needed."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from lxml import etree  # type: ignore[import-untyped]

from gateway.features.documents.engine.ingest.parsers.graphics import parse_xml

if TYPE_CHECKING:
    from liteparse import XfaPacket

_DATA = "{http://www.xfa.org/schema/xfa-data/1.0/}data"


def list_values(packets: "Sequence[XfaPacket]") -> list[str]:
    """The filled fields, as `Rent: 1240`, in the order of the form's data."""
    lines: list[str] = []
    for packet in packets:
        try:
            root = parse_xml((packet.content or "").encode())
        except (etree.XMLSyntaxError, ValueError):
            continue
        for data in root.iter(_DATA):
            lines += _iter_leaves(data)
    return lines


def _iter_leaves(data: etree._Element) -> Iterator[str]:
    for element in data.iter(etree.Element):
        value = " ".join((element.text or "").split())
        if value and not len(element):
            yield f"{etree.QName(element).localname.replace('_', ' ')}: {value}"
