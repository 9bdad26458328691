"""`DriveApi`: the calls of the Drive API (v3) that reading needs, as one account, and the mapping of its errors."""

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote, urlencode

from agent.core.models import JsonObject
from gateway.features.documents.engine.ingest.connectors.drive_address import Reference
from gateway.features.documents.engine.ingest.connectors.drive_auth import (
    SCOPE,
    Account,
    AccountError,
    make_printable_line,
)
from gateway.features.documents.engine.ingest.connectors.drive_files import FIELDS, DriveFile, parse_file
from gateway.features.documents.engine.ingest.connectors.partial_download import PartialDownload
from gateway.features.documents.engine.ingest.connectors.source_client import (
    ConnectorTransientError,
    Download,
    Headers,
    SourceClient,
    SourceResponse,
    build_status_error,
)
from gateway.features.documents.engine.ingest.errors import ConnectorAuthError, ConnectorError, ConnectorNotFoundError

T = TypeVar("T")
PAGE_SIZE = 1000
"""The largest page that Drive returns."""
_MAX_REPLY_BYTES = 20_000_000
_RATE = frozenset({"rateLimitExceeded", "userRateLimitExceeded", "RATE_LIMIT_EXCEEDED", "backendError"})
_ACCOUNT: dict[str, str] = {
    "accessNotConfigured": "enable the Google Drive API in the credential's Google Cloud project",
    "SERVICE_DISABLED": "enable the Google Drive API in the credential's Google Cloud project",
    "insufficientPermissions": f"the token must have the scope {SCOPE}",
    "ACCESS_TOKEN_SCOPE_INSUFFICIENT": f"the token must have the scope {SCOPE}",
    "dailyLimitExceeded": "the project has used its daily quota of requests: continue tomorrow, or ask Google for more",
}
"""Errors that affect every file, and the remedy."""
_FILE: dict[str, str] = {
    "exportSizeLimitExceeded": "Drive exports at most 10 MB of a document of its own: split it, or upload it as a file",
    "cannotDownloadAbusiveFile": "Drive considers the file malware or spam; it is not downloaded",
    "downloadQuotaExceeded": "the file was downloaded too often recently: try again tomorrow",
}
"""Errors of one file that are not about permissions."""


class FileChangedError(ConnectorError):
    """Raised when a file differs from its metadata: it changed, or arrived damaged."""


class _TokenRefusedError(ConnectorAuthError):
    """Raised for status 401: a new token may work."""


class _ChecksummedDownload(PartialDownload):
    """Continues a download by byte count alone, because Drive sends no ETag.

    Use it only if the result is compared with a checksum.
    """

    def request_headers(self) -> dict[str, str]:
        """Implements `PartialDownload.request_headers`."""
        return {"range": f"bytes={self.size}-", "accept-encoding": "identity"} if self.size else {}


@dataclass(frozen=True, slots=True)
class _DriveClient(SourceClient):
    async def download_checked(self, url: str, target: Path, *, max_bytes: int, headers: Headers) -> Download:
        """Like `download`, with continuations that only a later checksum makes safe."""
        async with _ChecksummedDownload.open_beside(target) as part:

            async def attempt() -> Download:
                async with self._open(url, headers, part.request_headers()) as answer:
                    if not await part.begin_response(answer):
                        raise ConnectorTransientError(
                            f"{url} cannot be resumed where it was cut off; the download starts again"
                        )
                    async for piece in answer.body:
                        if part.size + len(piece) > max_bytes:
                            raise FileChangedError(f"{url} grew while it was downloaded")
                        await part.write(piece)
                    if part.missing_bytes:
                        raise ConnectorTransientError(f"{url} ended {part.missing_bytes} bytes too early")
                    checksum = await part.finish(target)
                    return Download(target, part.size, checksum, answer.url, answer.headers, part.resumed)

            return await self.back_off.run(attempt)


class DriveApi:
    """Drive as one account sees it. Every call raises `ConnectorError`; `AccountError` is permanent."""

    def __init__(self, client: SourceClient, account: Account, base_url: str) -> None:
        self._client = _DriveClient(
            client.client, client.back_off, client.timeout_s, client.silence_s, self._make_api_error
        )
        self._account = account
        self._files = f"{base_url.rstrip('/')}/drive/v3/files"

    async def get_file(self, reference: Reference) -> DriveFile:
        """Drive's metadata of a file or folder."""
        url = self._build_url(reference.id, fields=FIELDS)
        return parse_file(await self._fetch_json(url, reference))

    async def list_children(self, folder: DriveFile) -> list[DriveFile]:
        """Everything in a folder outside the trash, by name, without opening subfolders."""
        query = {
            "q": f"'{folder.id}' in parents and trashed = false",
            "pageSize": str(PAGE_SIZE),
            "includeItemsFromAllDrives": "true",
            "fields": f"nextPageToken,incompleteSearch,files({FIELDS})",
        }
        if folder.drive_id:
            query |= {"corpora": "drive", "driveId": folder.drive_id}
        children: list[DriveFile] = []
        pages: set[str] = set()
        while True:
            page = await self._fetch_json(self._build_url(**query), folder.reference)
            files, following = page.get("files"), page.get("nextPageToken")
            if not isinstance(files, list) or page.get("incompleteSearch"):
                # Half a list would look as if the other half had been deleted.
                raise ConnectorError(f"Google Drive did not list all of the folder {folder.name!r}; try again later")
            children += [parse_file(one) for one in files]
            if not isinstance(following, str) or not following:
                return sorted(children, key=lambda file: (file.name, file.id))
            if following in pages:
                raise ConnectorError(
                    f"Google Drive lists the folder {folder.name!r} without an end: it repeated a page; try again later"
                )
            pages.add(following)
            query["pageToken"] = following

    async def download_content(self, file: DriveFile, target: Path, *, max_bytes: int) -> Download:
        """Downloads a file's bytes. Raises `FileChangedError` if they do not match its checksum."""
        if file.size is not None and file.size > max_bytes:
            raise ConnectorError(f"it has {file.size} bytes; at most {max_bytes} are fetched", limit=max_bytes)
        url = self._build_url(file.id, alt="media")
        if not file.md5:
            return await self._download(url, target, file, max_bytes)
        limit = max_bytes if file.size is None else file.size
        download = await self._with_token(
            file.reference,
            lambda headers: self._client.download_checked(url, target, max_bytes=limit, headers=headers),
        )
        arrived = await asyncio.to_thread(_hash_md5, target)
        if arrived != file.md5:
            await asyncio.to_thread(target.unlink)
            raise FileChangedError(f"the download has the MD5 {arrived}, but Drive reports {file.md5}: try again")
        return download

    async def export(self, file: DriveFile, mime: str, target: Path, *, max_bytes: int) -> Download:
        """Exports a native Google document as a file of type `mime`. Drive's limit is 10 MB."""
        return await self._download(self._build_url(f"{file.id}/export", mimeType=mime), target, file, max_bytes)

    async def _download(self, url: str, target: Path, file: DriveFile, max_bytes: int) -> Download:
        download = await self._with_token(
            file.reference, lambda headers: self._client.download(url, target, max_bytes=max_bytes, headers=headers)
        )
        if isinstance(download, SourceResponse):
            raise ConnectorError(f"Google Drive answered with HTTP status {download.status} and no content")
        return download

    def _build_url(self, path: str = "", **query: str) -> str:
        """An API address; every request includes shared drives."""
        where = f"{self._files}/{quote(path)}" if path else self._files
        return f"{where}?{urlencode({**query, 'supportsAllDrives': 'true'})}"

    async def _fetch_json(self, url: str, reference: Reference) -> JsonObject:
        reply = await self._with_token(
            reference, lambda headers: self._client.read(url, max_bytes=_MAX_REPLY_BYTES, headers=headers)
        )
        try:
            value = json.loads(reply.body)
        except (ValueError, RecursionError) as error:
            raise ConnectorError("Google Drive answered with something that is not JSON; try again later") from error
        if not isinstance(value, dict):
            raise ConnectorError("Google Drive answered with JSON that is not an object; try again later")
        return value

    async def _with_token(self, reference: Reference, call: Callable[[Headers], Awaitable[T]]) -> T:
        """The result of the call; repeats it once with a new token if the token was refused."""
        used = await self._account.get_token()

        async def headers(url: str) -> Mapping[str, str]:
            nonlocal used
            if not url.startswith(self._files):
                return {}
            used = await self._account.get_token()
            keys = {"x-goog-drive-resource-keys": f"{reference.id}/{reference.resource_key}"}
            return {"authorization": f"Bearer {used}", **(keys if reference.resource_key else {})}

        try:
            return await call(headers)
        except _TokenRefusedError:
            await self._account.invalidate(used)
        try:
            return await call(headers)
        except _TokenRefusedError as error:
            raise AccountError(f"Google Drive rejects even a new token of {self._account.display_name}") from error

    def _make_api_error(self, url: str, status: int, headers: Mapping[str, str], body: bytes) -> ConnectorError:
        """The error for an API response; for other addresses, the error of the status."""
        if not url.startswith(self._files):
            return build_status_error(url, status, headers, body)
        reasons, message = _parse_error(body)
        problem = f"Google Drive: {message or f'HTTP status {status}'}"
        if status == 401:
            return _TokenRefusedError(problem, status=status)
        if status == 404:
            return ConnectorNotFoundError(
                f"{problem} It is deleted, or not shared with {self._account.display_name}", status=status
            )
        if status == 416:
            return FileChangedError("it shrank while it was downloaded", status=status)
        if status == 403:
            return self._make_forbidden_error(reasons, problem)
        if status == 429 or status >= 500:
            return ConnectorTransientError(f"{problem} (HTTP status {status}); try again later", status=status)
        return build_status_error(url, status, headers, body) if not message else ConnectorError(problem, status=status)

    def _make_forbidden_error(self, reasons: list[str], problem: str) -> ConnectorError:
        for reason in reasons:
            if reason in _RATE:
                return ConnectorTransientError(f"{problem} Try again later", reason=reason)
            if reason in _ACCOUNT:
                return AccountError(f"{problem} What to do: {_ACCOUNT[reason]}", reason=reason)
            if reason in _FILE:
                return ConnectorError(_FILE[reason], reason=reason)
        return ConnectorAuthError(
            f"{problem} Share it with {self._account.display_name}, downloading allowed", reason=", ".join(reasons)
        )


def _parse_error(body: bytes) -> tuple[list[str], str]:
    """The reasons and the message of an error in either of Google's formats."""
    try:
        error = json.loads(body)["error"]
        entries = [*(error.get("errors") or []), *(error.get("details") or [])]
        reasons = [
            make_printable_line(entry["reason"]) for entry in entries if isinstance(entry, dict) and "reason" in entry
        ]
        message = make_printable_line(error.get("message") or "")
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError):
        return [], ""
    return reasons, message if message.endswith(".") or not message else f"{message}."


def _hash_md5(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
