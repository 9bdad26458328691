"""File types are open: the parser of a package adds one, and none takes files of another."""

from collections.abc import Iterator

import pytest

from gateway.features.documents.engine.ingest.connectors.content_types import detect_file_type
from gateway.features.documents.engine.ingest.file_types import (
    BUILT_IN_TYPES,
    MEDIA_TYPES,
    TYPES,
    list_file_types,
    register_file_types,
)


@pytest.fixture(autouse=True)
def _restore() -> Iterator[None]:
    """What a test registers is gone after it."""
    kept = dict(TYPES), dict(MEDIA_TYPES)
    yield
    for known, before in zip((TYPES, MEDIA_TYPES), kept, strict=True):
        known.clear()
        known.update(before)


def test_a_new_type_has_its_extension_and_media_type() -> None:
    assert detect_file_type("application/epub+zip", "book.epub") is None
    register_file_types(("epub",), (), ("application/epub+zip",))
    register_file_types(("epub",), (), ("application/epub+zip",))
    assert list_file_types() == (*BUILT_IN_TYPES, "epub")
    assert detect_file_type("application/epub+zip", "b") == "epub"
    assert detect_file_type("application/octet-stream", "https://books.example/Book.EPUB?x=1") == "epub"


@pytest.mark.parametrize(
    ("names", "extensions", "media_types", "message"),
    [
        (("epub", "mobi"), (), (), "a parser adds one file type, not 2: epub, mobi"),
        (("epub",), (".md",), (), "files of .md are of the type 'md' already"),
        (("epub",), (".epub",), ("text/html",), "files of text/html are of the type 'html' already"),
        (("epub",), ("epub",), (), "'epub' is not an extension such as .epub"),
    ],
)
def test_a_claim_that_cannot_hold_changes_nothing(
    names: tuple[str, ...], extensions: tuple[str, ...], media_types: tuple[str, ...], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        register_file_types(names, extensions, media_types)
    assert list_file_types() == BUILT_IN_TYPES


def test_a_parser_of_our_types_adds_none() -> None:
    register_file_types(("txt", "md"), (), ())
    assert list_file_types() == BUILT_IN_TYPES
