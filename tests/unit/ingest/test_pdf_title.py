"""The title in the metadata of a PDF, which its author writes."""

from time import perf_counter

import pytest

from gateway.features.documents.engine.ingest.parsers.pdf import find_xmp_title


@pytest.mark.parametrize(
    ("xmp", "title"),
    [
        ('<dc:title>\n<rdf:Alt><rdf:li xml:lang="x-default">A &amp; B </rdf:li></rdf:Alt></dc:title>', "A & B"),
        ("<dc:title><rdf:Alt></rdf:Alt></dc:title>", None),
        ("<dc:title><rdf:li>A", None),
        ("<rdf:li>A</rdf:li>", None),
        ("<dc:title><rdf:Alt></rdf:Alt></dc:title><dc:creator><rdf:li>Kim</rdf:li></dc:creator>", None),
        ('<dc:title><rdf:li xml:lang="x-default"/></dc:title><dc:creator><rdf:li>Kim</rdf:li></dc:creator>', None),
    ],
)
def test_the_title_is_read(xmp: str, title: str | None) -> None:
    assert find_xmp_title(xmp) == title


@pytest.mark.parametrize("piece", ["<dc:title>", "<dc:title><rdf:li>", "<dc:title><rdf:li ", "<rdf:li>"])
def test_metadata_without_end_takes_no_time(piece: str) -> None:
    started = perf_counter()
    find_xmp_title("<dc:title>" + piece * (1_000_000 // len(piece)))
    assert perf_counter() - started < 2
