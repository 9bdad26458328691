"""PDFs whose cross-reference table or trailer is missing, as after a cut download: a new one is written behind them.
So it is where the page tree has more pages than it claims.

The objects are found by their heads ("7 0 obj"), those in object streams are unpacked (PDF 1.7, 7.5.7).
"""

import re
import zlib
from collections.abc import Iterator

_HEAD = b"%PDF-"
_HEAD_BYTES = 1024
"""Readers accept the head within the first 1,024 bytes (PDF 1.7, appendix H.3.4.1)."""
_OBJECT = re.compile(rb"(?<![0-9])([0-9]{1,8})[ \t\r\n]+([0-9]{1,5})[ \t\r\n]+obj\b")
_CATALOG = re.compile(rb"/Type\s*/Catalog\b")
_STREAMED = re.compile(rb"/Type\s*/ObjStm\b")
_NUMBER = re.compile(rb"/(N|First)\s+([0-9]{1,8})\b")
_STREAM = re.compile(rb"stream\r?\n")
_PAGE = re.compile(rb"/Type\s*/Page\b")
_ROOT = re.compile(rb"/Pages\s+(\d+)\s+\d+\s+R\b")
_UNIT = re.compile(rb"/UserUnit\s+\d{1,6}(?:\.\d{1,6})?(?=\s*(?:/|>>))")
_KIDS = re.compile(rb"/Kids\s*\[([^\]]*)\]")
_COUNT = re.compile(rb"/Count\s*-?\d+")
_REFERENCE = re.compile(rb"(\d+)\s+\d+\s+R\b")
_MAX_DEPTH = 50
"""Levels of a page tree; a deeper one is circular."""
_MAX_OBJECTS = 500_000
_MAX_UNPACKED = 64 * 2**20


def strip_head(data: bytes) -> bytes:
    """The file without what stands before its head: addresses count from there."""
    start = data[:_HEAD_BYTES].find(_HEAD)
    return data[start:] if start > 0 else data


def drop_units(data: bytes) -> bytes:
    """The file without the scales of its pages (UserUnit), by which the gaps between words are misread. Places stay."""
    return _UNIT.sub(lambda match: b" " * len(match[0]), data) if b"/UserUnit" in data else data


def repair_trailer(data: bytes) -> bytes | None:
    """The file with a new table of its objects; None if it has no catalog, or is encrypted."""
    if b"/Encrypt" in data:
        return None
    body = data.rstrip()
    if not body.endswith((b"endobj", b"%%EOF")):
        body += b"\nendstream\nendobj"
    objects = list(_OBJECT.finditer(body))[:_MAX_OBJECTS]
    places: dict[int, int] = {}
    catalog = None
    extra: list[bytes] = []
    for match, following in zip(objects, [*objects[1:], None], strict=False):
        number = int(match[1])
        places[number] = match.start()
        end = following.start() if following is not None else len(body)
        content = body[match.end() : end]
        if _CATALOG.search(content[:4096]):
            catalog = number
        if _STREAMED.search(content[:4096]):
            extra += _unpack(content)
    body += b"\n"
    for one in extra:
        number = int(one.split(b" ", 1)[0])
        places[number] = len(body)
        body += one
        if _CATALOG.search(one):
            catalog = number
    if catalog is None:
        return None
    return body + _make_table(places, catalog, len(body))


def mend_page_count(data: bytes, pages: int) -> bytes | None:
    """The file with the number of pages that its page tree has; None if that is not more than the `pages` it claims."""
    if len(_PAGE.findall(data)) <= pages:
        return None
    objects = dict(iter_objects(data))
    counts: dict[int, int] = {}
    catalogs = [match for content in objects.values() if _CATALOG.search(content) and (match := _ROOT.search(content))]
    if not catalogs or _count_pages(int(catalogs[-1][1]), objects, counts, 0) <= pages:
        return None
    added = [
        b"%d 0 obj%b endobj\n" % (number, _COUNT.sub(b"/Count %d" % count, objects[number].partition(b"endobj")[0]))
        for number, count in counts.items()
    ]
    return repair_trailer(data.rstrip() + b"\n" + b"".join(added))


def _count_pages(number: int, objects: dict[int, bytes], counts: dict[int, int], depth: int) -> int:
    """Counts the pages below a node of the page tree, and notes the counts of all nodes in `counts`."""
    content = objects.get(number, b"")
    kids = _KIDS.search(content)
    if kids is None or depth > _MAX_DEPTH or number in counts:
        return int(kids is None and _PAGE.search(content) is not None)
    counts[number] = 0
    listed = [int(kid) for kid in _REFERENCE.findall(kids[1])]
    counts[number] = sum(_count_pages(kid, objects, counts, depth + 1) for kid in listed)
    return counts[number]


def iter_objects(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yields the number and the content of each object, later versions after earlier ones, without what is
    encrypted."""
    if b"/Encrypt" in data:
        return
    objects = list(_OBJECT.finditer(data))[:_MAX_OBJECTS]
    for match, following in zip(objects, [*objects[1:], None], strict=False):
        content = data[match.end() : following.start() if following is not None else len(data)]
        yield int(match[1]), content
        if _STREAMED.search(content[:4096]):
            for one in _unpack(content):
                number, _, inner = one.partition(b" 0 obj\n")
                yield int(number), inner


def _unpack(content: bytes) -> Iterator[bytes]:
    """Yields the objects of an object stream, each with a head of its own."""
    start = _STREAM.search(content)
    given = {name: int(value) for name, value in _NUMBER.findall(content[: start.start() if start else 0])}
    if start is None or b"N" not in given or b"First" not in given:
        return
    unpacker = zlib.decompressobj()
    try:
        data = unpacker.decompress(content[start.end() :], _MAX_UNPACKED)
    except zlib.error:
        return
    numbers = [int(word) for word in data[: given[b"First"]].split() if word.isdigit()]
    heads = list(zip(numbers[::2], numbers[1::2], strict=False))[: given[b"N"]]
    for (number, offset), following in zip(heads, [*heads[1:], None], strict=False):
        end = given[b"First"] + following[1] if following is not None else len(data)
        yield b"%d 0 obj\n" % number + data[given[b"First"] + offset : end] + b"\nendobj\n"


def _make_table(places: dict[int, int], catalog: int, offset: int) -> bytes:
    lines = [b"xref\n0 1\n0000000000 65535 f \n"]
    run: list[int] = []
    for number in [*sorted(number for number in places if number), None]:
        if run and (number is None or number != run[-1] + 1):
            lines.append(b"%d %d\n" % (run[0], len(run)))
            lines += [b"%010d 00000 n \n" % places[one] for one in run]
            run = []
        if number is not None:
            run.append(number)
    size = max(places, default=0) + 1
    trailer = b"trailer\n<</Size %d/Root %d 0 R>>\nstartxref\n%d\n%%%%EOF\n" % (size, catalog, offset)
    return b"".join(lines) + trailer
