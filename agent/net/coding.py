"""Decodes gzip and deflate bodies piece by piece, so that a decompression bomb grows no faster than it is read."""

import zlib
from collections.abc import AsyncGenerator, AsyncIterator

from agent.core.errors import ToolError, ToolInputError

CODINGS = frozenset({"identity", "gzip", "deflate"})
"""One layer. Two layers of gzip make gigabytes of one piece."""
PIECE = 256 * 1024
_GZIP, _ZLIB, _RAW = 31, 15, -15
_MAGIC = b"\x1f\x8b"
_HEAD = 2


def parse_content_encoding(header: str | None, url: str) -> str:
    """The one coding of a `content-encoding` header; `ToolInputError` for others and for layers."""
    coding = (header or "identity").strip().lower()
    if coding not in CODINGS:
        raise ToolInputError(f"{url} is compressed as {coding!r}; only gzip and deflate can be read")
    return coding


async def iter_decoded(raw: AsyncIterator[bytes], header: str | None, url: str) -> AsyncGenerator[bytes, None]:
    """The body itself, in pieces of at most `PIECE` bytes. `ToolError` when it is damaged or ends too early, and what
    `parse_content_encoding` raises for its header.
    """
    coding = parse_content_encoding(header, url)
    if coding == "identity":
        async for piece in raw:
            yield piece
        return
    inflater = _Inflater(coding)
    try:
        async for piece in raw:
            inflater.feed(piece)
            while out := inflater.take():
                yield out
    except zlib.error as error:
        raise ToolError(f"{url} cannot be fetched: its {coding} body is damaged ({error})") from error
    if not inflater.is_complete:
        raise ToolError(f"{url} cannot be fetched: its {coding} body ends too early")


class _Inflater:
    """Decodes one body. gzip may have several members (RFC 1952, 2.2). deflate may have a zlib header or not (RFC 9110,
    8.4.1.2); the first two bytes decide.
    """

    def __init__(self, coding: str) -> None:
        self._gzip = coding == "gzip"
        self._stream = zlib.decompressobj(_GZIP)
        self._left = b""
        self._begun = False

    @property
    def is_complete(self) -> bool:
        """Whether the body may end here."""
        return self._stream.eof or not (self._begun or self._left)

    def feed(self, piece: bytes) -> None:
        """Adds compressed bytes."""
        self._left += piece
        if not self._begun and len(self._left) >= _HEAD:
            self._begun = True
            if not self._gzip:
                self._stream = zlib.decompressobj(_ZLIB if _has_zlib_header(self._left) else _RAW)

    def take(self) -> bytes:
        """The next decoded piece, or nothing when all that was fed is decoded."""
        while self._begun and self._left:
            if self._stream.eof:
                if not self._gzip or not self._left.startswith(_MAGIC[: len(self._left)]):
                    self._left = b""  # padding behind the end
                    break
                self._stream = zlib.decompressobj(_GZIP)
            if out := self._inflate():
                return out
        # What is buffered inside comes out without more to feed.
        return b"" if self._stream.eof or not self._begun else self._stream.decompress(b"", PIECE)

    def _inflate(self) -> bytes:
        out = self._stream.decompress(self._left, PIECE)
        self._left = self._stream.unused_data if self._stream.eof else self._stream.unconsumed_tail
        return out


def _has_zlib_header(data: bytes) -> bool:
    """Whether it begins with a zlib header (RFC 1950, 2.2)."""
    return data[0] & 0x0F == 8 and int.from_bytes(data[:2], "big") % 31 == 0
