"""`PartialDownload`: a file that is being downloaded, under a temporary name until it is complete."""

import asyncio
import contextlib
import errno
import hashlib
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import BinaryIO, Self

from agent.core.errors import StoreError, StoreFullError
from agent.net import Answer

_CONTENT_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+|\*)$")
_FULL = (errno.ENOSPC, errno.EDQUOT)


class PartialDownload:
    """The bytes of one body that have arrived, over several responses. `resumed` counts continuations."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self._path = path
        self._file = file
        self._digest = hashlib.sha256()
        self._validator = ""
        self._total_size: int | None = None
        self._began = False
        self._cut_at = 0
        self.size = 0
        self.resumed = 0

    @classmethod
    @asynccontextmanager
    async def open_beside(cls, target: Path) -> AsyncIterator[Self]:
        """Opens an empty file in the folder of `target`; deletes it unless it was finished."""
        path = target.with_name(f"{target.name}.part")
        with _translate_disk_errors():
            file = await asyncio.to_thread(path.open, "wb")
        try:
            yield cls(path, file)
        finally:
            # What is still buffered may not fit on the disk; it is thrown away here in any case.
            with contextlib.suppress(OSError):
                file.close()
            path.unlink(missing_ok=True)

    @property
    def missing_bytes(self) -> int:
        """Bytes that the source announced and has not sent."""
        return 0 if self._total_size is None else max(0, self._total_size - self.size)

    def request_headers(self) -> dict[str, str]:
        """The headers to request the missing bytes; none at the start, or if the download cannot be
        continued."""
        self._began = False
        if not self.size or not self._validator:
            return {}
        # Without coding: the rest of a compressed body is no use without its beginning.
        return {"range": f"bytes={self.size}-", "if-range": self._validator, "accept-encoding": "identity"}

    def is_cut_at_same_place(self) -> bool:
        """Whether the body ended at the same place as before, so that it is cut at its source and retrying is
        useless.

        Call it once for each failed response.
        """
        again = self._began and self.missing_bytes > 0 and self.size == self._cut_at
        self._cut_at = self.size if self._began else 0
        return again

    async def begin_response(self, answer: Answer) -> bool:
        """Prepares for the body of `answer`, from the start or where the last one ended.

        Returns False if it fits neither; everything received is dropped then, and the caller asks again.
        """
        self._began = await self._begin(answer)
        return self._began

    async def _begin(self, answer: Answer) -> bool:
        if answer.status == 206:
            match = _CONTENT_RANGE.match(answer.headers.get("content-range", "").strip())
            if match is None or int(match[1]) != self.size:
                await self._restart()
                return False
            self._total_size = int(match[2]) + 1 if match[3] == "*" else int(match[3])
            self.resumed += 1
            return True
        await self._restart()
        if answer.status == 416:
            return False
        plain = answer.headers.get("content-encoding", "identity").strip().lower() == "identity"
        length = answer.headers.get("content-length", "")
        self._total_size = int(length) if plain and length.isascii() and length.isdigit() else None
        self._validator = _get_validator(answer.headers) if plain else ""
        return True

    async def write(self, piece: bytes) -> None:
        """Appends a piece of the body."""
        with _translate_disk_errors():
            await asyncio.to_thread(self._write, piece)

    async def finish(self, target: Path) -> str:
        """Moves the complete file into place; returns its SHA-256, hex."""
        with _translate_disk_errors():
            await asyncio.to_thread(self._file.close)
            await asyncio.to_thread(self._path.replace, target)
        return self._digest.hexdigest()

    def _write(self, piece: bytes) -> None:
        self._file.write(piece)
        self._digest.update(piece)
        self.size += len(piece)

    async def _restart(self) -> None:
        """Drops what has arrived."""
        if self.size:
            await asyncio.to_thread(self._file.seek, 0)
            await asyncio.to_thread(self._file.truncate)
        self._digest = hashlib.sha256()
        self._validator = ""
        self._total_size = None
        self.size = 0


@contextlib.contextmanager
def _translate_disk_errors() -> Iterator[None]:
    """Raises disk errors as `StoreError`."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise StoreFullError("the disk of the workspace is full: free some space and start again") from error
        raise StoreError(f"the workspace cannot be written: {error.strerror or error}") from error


def _get_validator(headers: Mapping[str, str]) -> str:
    """The strong ETag that a continuation is bound to, or an empty text.

    A date has a resolution of seconds only, and a weak tag does not identify bytes (RFC 9110, 13.1.5).
    """
    etag = headers.get("etag", "").strip()
    return etag if etag.startswith('"') else ""
