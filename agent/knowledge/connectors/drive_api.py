"""`DriveApi`: the four calls of the Drive API (v3) that reading needs, as one account; and what its errors mean."""

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote, urlencode

from agent.core.models import JsonObject
from agent.knowledge.connectors.base import ConnectorPassingError, Download, Headers, Reply, Wire, judge
from agent.knowledge.connectors.drive_address import Reference
from agent.knowledge.connectors.drive_auth import SCOPE, Account, AccountError, quoted
from agent.knowledge.connectors.drive_files import FIELDS, DriveFile, read_file
from agent.knowledge.connectors.partial import Partial
from agent.knowledge.errors import ConnectorAuthError, ConnectorError, ConnectorNotFoundError

T = TypeVar("T")
PAGE_SIZE = 1000
"""The most that Drive puts on a page."""
_MAX_REPLY_BYTES = 20_000_000
_RATE = frozenset({"rateLimitExceeded", "userRateLimitExceeded", "RATE_LIMIT_EXCEEDED", "backendError"})
_ACCOUNT: dict[str, str] = {
    "accessNotConfigured": "enable the Google Drive API in the credential's Google Cloud project",
    "SERVICE_DISABLED": "enable the Google Drive API in the credential's Google Cloud project",
    "insufficientPermissions": f"the token must have the scope {SCOPE}",
    "ACCESS_TOKEN_SCOPE_INSUFFICIENT": f"the token must have the scope {SCOPE}",
    "dailyLimitExceeded": "the project's requests of this day are used up: go on tomorrow, or ask Google for more",
}
"""What is wrong with all files alike, and what to do."""
_FILE: dict[str, str] = {
    "exportSizeLimitExceeded": "Drive exports at most 10 MB of a document of its own: split it, or upload it as a file",
    "cannotDownloadAbusiveFile": "Drive holds the file for malware or spam; it is not fetched",
    "downloadQuotaExceeded": "the file was downloaded too often of late: try again tomorrow",
}
"""What is wrong with one file, and no question of who may read it."""


class ChangedError(ConnectorError):
    """Raised when a file is no longer, or did not arrive as, what its metadata says."""


class _TokenRefusedError(ConnectorAuthError):
    """Raised for a 401: another token may do."""


class _CheckedPartial(Partial):
    """Continued by the count of its bytes alone, for Drive's answers have no tag to tie a continuation to. Only for
    what is compared with a checksum in the end."""

    def ask(self) -> dict[str, str]:
        """See `Partial.ask`."""
        return {"range": f"bytes={self.size}-", "accept-encoding": "identity"} if self.size else {}


@dataclass(frozen=True, slots=True)
class _DriveWire(Wire):
    async def download_checked(self, url: str, target: Path, *, max_bytes: int, headers: Headers) -> Download:
        """As `download`, with continuations that only a checksum makes safe."""
        async with _CheckedPartial.beside(target) as part:

            async def attempt() -> Download:
                async with self._answer(url, headers, part.ask()) as answer:
                    if not await part.begin(answer):
                        raise ConnectorPassingError(f"{url} cannot be continued where it was cut off; it begins anew")
                    async for piece in answer.body:
                        if part.size + len(piece) > max_bytes:
                            raise ChangedError(f"{url} is longer than it was a moment ago")
                        await part.take(piece)
                    if part.missing:
                        raise ConnectorPassingError(f"{url} ended {part.missing} bytes too early")
                    checksum = await part.finish(target)
                    return Download(target, part.size, checksum, answer.url, answer.headers, part.resumed)

            return await self.back_off.run(attempt)


class DriveApi:
    """Drive as one account sees it. Every call raises `ConnectorError` and its kinds; `AccountError` is for good."""

    def __init__(self, wire: Wire, account: Account, base_url: str) -> None:
        self._wire = _DriveWire(wire.client, wire.back_off, wire.timeout_s, wire.silence_s, self._judge)
        self._account = account
        self._files = f"{base_url.rstrip('/')}/drive/v3/files"

    async def file(self, reference: Reference) -> DriveFile:
        """What Drive says of a file or folder."""
        url = self._url(reference.id, fields=FIELDS)
        return read_file(await self._json(url, reference))

    async def children(self, folder: DriveFile) -> list[DriveFile]:
        """Everything in a folder that is not in the trash, by name; subfolders are not opened."""
        query = {
            "q": f"'{folder.id}' in parents and trashed = false",
            "pageSize": str(PAGE_SIZE),
            "includeItemsFromAllDrives": "true",
            "fields": f"nextPageToken,incompleteSearch,files({FIELDS})",
        }
        if folder.drive_id:
            query |= {"corpora": "drive", "driveId": folder.drive_id}
        found: list[DriveFile] = []
        pages: set[str] = set()
        while True:
            page = await self._json(self._url(**query), folder.reference)
            files, following = page.get("files"), page.get("nextPageToken")
            if not isinstance(files, list) or page.get("incompleteSearch"):
                # Half a list would look as if the other half had been deleted.
                raise ConnectorError(f"Google Drive did not list all of the folder {folder.name!r}; try again later")
            found += [read_file(one) for one in files]
            if not isinstance(following, str) or not following:
                return sorted(found, key=lambda file: (file.name, file.id))
            if following in pages:
                raise ConnectorError(f"Google Drive lists the folder {folder.name!r} in a circle; try again later")
            pages.add(following)
            query["pageToken"] = following

    async def content(self, file: DriveFile, target: Path, *, max_bytes: int) -> Download:
        """The bytes of a file, as they are; `ChangedError` when they do not fit the file's checksum."""
        if file.size is not None and file.size > max_bytes:
            raise ConnectorError(f"it has {file.size} bytes; the most that is fetched is {max_bytes}", limit=max_bytes)
        url = self._url(file.id, alt="media")
        if not file.md5:
            return await self._whole(url, target, file, max_bytes)
        limit = max_bytes if file.size is None else file.size
        download = await self._asked(
            file.reference,
            lambda headers: self._wire.download_checked(url, target, max_bytes=limit, headers=headers),
        )
        arrived = await asyncio.to_thread(_md5, target)
        if arrived != file.md5:
            await asyncio.to_thread(target.unlink)
            raise ChangedError(f"what arrived has the MD5 {arrived}, and Drive says {file.md5}: try again")
        return download

    async def export(self, file: DriveFile, mime: str, target: Path, *, max_bytes: int) -> Download:
        """A document of Google's own as a file of that type; Drive's limit is 10 MB."""
        return await self._whole(self._url(f"{file.id}/export", mimeType=mime), target, file, max_bytes)

    async def _whole(self, url: str, target: Path, file: DriveFile, max_bytes: int) -> Download:
        found = await self._asked(
            file.reference, lambda headers: self._wire.download(url, target, max_bytes=max_bytes, headers=headers)
        )
        if isinstance(found, Reply):
            raise ConnectorError(f"Google Drive answered with HTTP status {found.status} and no content")
        return found

    def _url(self, path: str = "", **query: str) -> str:
        """An address of the API; shared drives are included in all that is asked."""
        where = f"{self._files}/{quote(path)}" if path else self._files
        return f"{where}?{urlencode({**query, 'supportsAllDrives': 'true'})}"

    async def _json(self, url: str, reference: Reference) -> JsonObject:
        reply = await self._asked(
            reference, lambda headers: self._wire.read(url, max_bytes=_MAX_REPLY_BYTES, headers=headers)
        )
        try:
            value = json.loads(reply.body)
        except (ValueError, RecursionError) as error:
            raise ConnectorError("Google Drive answered with something that is no JSON; try again later") from error
        if not isinstance(value, dict):
            raise ConnectorError("Google Drive answered with JSON that is no object; try again later")
        return value

    async def _asked(self, reference: Reference, call: Callable[[Headers], Awaitable[T]]) -> T:
        """What the call returns; made once more with a new token when the token is refused."""
        used = await self._account.token()

        async def headers(url: str) -> Mapping[str, str]:
            nonlocal used
            if not url.startswith(self._files):
                return {}
            used = await self._account.token()
            keys = {"x-goog-drive-resource-keys": f"{reference.id}/{reference.resource_key}"}
            return {"authorization": f"Bearer {used}", **(keys if reference.resource_key else {})}

        try:
            return await call(headers)
        except _TokenRefusedError:
            await self._account.renew(used)
        try:
            return await call(headers)
        except _TokenRefusedError as error:
            raise AccountError(f"Google Drive refuses even a new token of {self._account.who}") from error

    def _judge(self, url: str, status: int, headers: Mapping[str, str], body: bytes) -> ConnectorError:
        """What a refusal of the API means; of others, by its status."""
        if not url.startswith(self._files):
            return judge(url, status, headers, body)
        reasons, message = _told(body)
        told = f"Google Drive: {message or f'HTTP status {status}'}"
        if status == 401:
            return _TokenRefusedError(told, status=status)
        if status == 404:
            return ConnectorNotFoundError(
                f"{told} It is deleted, or not shared with {self._account.who}", status=status
            )
        if status == 416:
            return ChangedError("it became shorter while it was downloaded", status=status)
        if status == 403:
            return self._forbidden(reasons, told)
        if status == 429 or status >= 500:
            return ConnectorPassingError(f"{told} (HTTP status {status}); try again later", status=status)
        return judge(url, status, headers, body) if not message else ConnectorError(told, status=status)

    def _forbidden(self, reasons: list[str], told: str) -> ConnectorError:
        for reason in reasons:
            if reason in _RATE:
                return ConnectorPassingError(f"{told} Try again later", reason=reason)
            if reason in _ACCOUNT:
                return AccountError(f"{told} What to do: {_ACCOUNT[reason]}", reason=reason)
            if reason in _FILE:
                return ConnectorError(_FILE[reason], reason=reason)
        return ConnectorAuthError(
            f"{told} Share it with {self._account.who}, downloading allowed", reason=", ".join(reasons)
        )


def _told(body: bytes) -> tuple[list[str], str]:
    """The reasons and the message of an error in either of Google's shapes."""
    try:
        error = json.loads(body)["error"]
        entries = [*(error.get("errors") or []), *(error.get("details") or [])]
        reasons = [quoted(entry["reason"]) for entry in entries if isinstance(entry, dict) and "reason" in entry]
        message = quoted(error.get("message") or "")
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError):
        return [], ""
    return reasons, message if message.endswith(".") or not message else f"{message}."


def _md5(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
