"""`Partial`: a file on its way, beside its place under a temporary name until it is whole."""

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
from agent.core.net import Answer

_CONTENT_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+|\*)$")
_FULL = (errno.ENOSPC, errno.EDQUOT)


class Partial:
    """What has arrived of one body, over as many answers as it takes. `resumed` counts continuations."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self._path = path
        self._file = file
        self._digest = hashlib.sha256()
        self._validator = ""
        self._whole: int | None = None
        self._began = False
        self._cut_at = 0
        self.size = 0
        self.resumed = 0

    @classmethod
    @asynccontextmanager
    async def beside(cls, target: Path) -> AsyncIterator[Self]:
        """An empty one, in the folder of `target`; nothing of it is left unless it was finished."""
        path = target.with_name(f"{target.name}.part")
        with _disk():
            file = await asyncio.to_thread(path.open, "wb")
        try:
            yield cls(path, file)
        finally:
            # What is still buffered may not fit on the disk; it is thrown away here in any case.
            with contextlib.suppress(OSError):
                file.close()
            path.unlink(missing_ok=True)

    @property
    def missing(self) -> int:
        """How many bytes the source announced and did not send."""
        return 0 if self._whole is None else max(0, self._whole - self.size)

    def ask(self) -> dict[str, str]:
        """The headers to ask for what is missing; none at the beginning, and where it cannot be continued."""
        self._began = False
        if not self.size or not self._validator:
            return {}
        # Without coding: the rest of a compressed body is no use without its beginning.
        return {"range": f"bytes={self.size}-", "if-range": self._validator, "accept-encoding": "identity"}

    def is_cut_again(self) -> bool:
        """Whether the body broke off where the one before it did, by its announced length: it is cut at its source, and
        no patience helps. Asked once for each answer that failed."""
        again = self._began and self.missing > 0 and self.size == self._cut_at
        self._cut_at = self.size if self._began else 0
        return again

    async def begin(self, answer: Answer) -> bool:
        """Get ready for the body of `answer`, from the start or where the last one broke off. False when it is
        neither, and all is forgotten: ask again."""
        self._began = await self._begin(answer)
        return self._began

    async def _begin(self, answer: Answer) -> bool:
        if answer.status == 206:
            found = _CONTENT_RANGE.match(answer.headers.get("content-range", "").strip())
            if found is None or int(found[1]) != self.size:
                await self._restart()
                return False
            self._whole = int(found[2]) + 1 if found[3] == "*" else int(found[3])
            self.resumed += 1
            return True
        await self._restart()
        if answer.status == 416:
            return False
        plain = answer.headers.get("content-encoding", "identity").strip().lower() == "identity"
        length = answer.headers.get("content-length", "")
        self._whole = int(length) if plain and length.isascii() and length.isdigit() else None
        self._validator = _validator(answer.headers) if plain else ""
        return True

    async def take(self, piece: bytes) -> None:
        """More of the body."""
        with _disk():
            await asyncio.to_thread(self._write, piece)

    async def finish(self, target: Path) -> str:
        """Put the whole file in its place; the SHA-256 of its bytes, hex."""
        with _disk():
            await asyncio.to_thread(self._file.close)
            await asyncio.to_thread(self._path.replace, target)
        return self._digest.hexdigest()

    def _write(self, piece: bytes) -> None:
        self._file.write(piece)
        self._digest.update(piece)
        self.size += len(piece)

    async def _restart(self) -> None:
        """Forget what has arrived."""
        if self.size:
            await asyncio.to_thread(self._file.seek, 0)
            await asyncio.to_thread(self._file.truncate)
        self._digest = hashlib.sha256()
        self._validator = ""
        self._whole = None
        self.size = 0


@contextlib.contextmanager
def _disk() -> Iterator[None]:
    """The disk's failures as ours."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise StoreFullError("the disk of the workspace is full: free some space and start again") from error
        raise StoreError(f"the workspace cannot be written: {error.strerror or error}") from error


def _validator(headers: Mapping[str, str]) -> str:
    """What a continuation is tied to: a strong ETag, else nothing. A date has seconds only, and a weak tag speaks of
    the meaning, not of the bytes (RFC 9110, 13.1.5)."""
    etag = headers.get("etag", "").strip()
    return etag if etag.startswith('"') else ""
