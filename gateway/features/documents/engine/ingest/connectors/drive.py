"""`DriveConnector`: the files of a Google Drive folder, or one file."""

import asyncio
import itertools
from collections import deque
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from agent.storage.credentials import CredentialError, Credentials, SourceCredential
from gateway.features.documents.engine.ingest.connectors.drive_address import PREFIX, parse
from gateway.features.documents.engine.ingest.connectors.drive_api import DriveApi, FileChangedError
from gateway.features.documents.engine.ingest.connectors.drive_auth import Account, AccountError
from gateway.features.documents.engine.ingest.connectors.drive_files import DriveFile
from gateway.features.documents.engine.ingest.connectors.port import FetchedDocument, MissedDocument
from gateway.features.documents.engine.ingest.connectors.source_client import ConnectorTransientError, SourceClient
from gateway.features.documents.engine.ingest.errors import ConnectorAuthError, ConnectorError, ConnectorNotFoundError
from gateway.features.documents.engine.search.models import ConnectorInput, ConnectorOutput, SourceType

GOOGLE = "https://www.googleapis.com"
MAX_BYTES = 200_000_000
"""The largest file that is fetched, in bytes."""
FETCH_TIMES = 3
"""How often a file that changes during the download is fetched."""
FAILURES_IN_A_ROW = 3
"""Consecutive failures without a cause of their own that mean that Drive is down. Retrying each of thousands of files
would take days."""


@dataclass(frozen=True, slots=True)
class _WalkEntry:
    """A file found by the walk, or the error that kept it from being read. `total` as in `FetchedDocument`."""

    source: str
    name: str
    file: DriveFile | ConnectorError
    total: int | None = None


class DriveConnector:
    """Reads Drive files with named credentials, read-only.

    A file's source id is `gdrive:<id>`, or `gdrive:<folder>[/<subfolder>]/<id>` for a file found through a folder, so
    that `covers` knows which request finds it.
    """

    source_type: SourceType = "gdrive"

    def __init__(
        self, client: SourceClient, credentials: Credentials, *, base_url: str = GOOGLE, max_bytes: int = MAX_BYTES
    ) -> None:
        self._client = client
        self._credentials = credentials
        self._base_url = base_url
        self._max_bytes = max_bytes
        self._accounts: dict[str, Account] = {}
        self._numbers = itertools.count(1)

    async def fetch(
        self, request: ConnectorInput, workspace: Path, known: Mapping[str, str]
    ) -> AsyncIterator[FetchedDocument | MissedDocument]:
        """Implements `Connector.fetch`. Raises if Drive fails during the walk, because half a walk must not look
        complete."""
        top = parse(request.source_identifier)
        api = DriveApi(self._client, await self._get_account(request.credentials_id), self._base_url)
        folder = await asyncio.to_thread(workspace.absolute)
        failures = 0
        root = await api.get_file(top)
        if root.target is not None:
            root = await api.get_file(root.target)
        async for entry in _walk(api, top.id, root, recursive=request.recursive):
            document = await self._fetch_entry(api, entry, known.get(entry.source, ""), folder)
            if isinstance(document, MissedDocument) and isinstance(document.error, ConnectorTransientError):
                failures += 1
                if failures == FAILURES_IN_A_ROW:
                    raise document.error
            else:
                failures = 0
            yield document
            if isinstance(document, FetchedDocument) and document.output is not None:
                await asyncio.to_thread(Path(document.output.file_path).unlink, missing_ok=True)

    def covers(self, request: ConnectorInput, source: str) -> bool:
        """Implements `Connector.covers`."""
        try:
            own = f"{PREFIX}{parse(request.source_identifier).id}"
        except ConnectorNotFoundError:
            return False
        below = source.removeprefix(f"{own}/")
        return source == own or (below != source and (request.recursive or "/" not in below))

    async def _get_account(self, name: str | None) -> Account:
        """The account for a credential; a new one if the credential changed."""
        try:
            if not name:
                there = (
                    ", ".join(await asyncio.to_thread(self._credentials.list_names)) or "none yet (docs/connectors.md)"
                )
                raise ConnectorAuthError(
                    f"Google Drive needs a credential: name one as credentials_id; there are {there}"
                )
            credential = await asyncio.to_thread(self._credentials.get_for, name, self._base_url)
        except CredentialError as error:
            raise ConnectorAuthError(error.message) from error
        if not isinstance(credential, SourceCredential):
            kinds = "google_service_account, google_oauth or bearer"
            raise ConnectorAuthError(f"the credential {name!r} is not for Google Drive, which takes {kinds}")
        account = self._accounts.get(name)
        if account is None or account.credential != credential:
            account = self._accounts[name] = Account(name, credential, self._client)
        return account

    async def _fetch_entry(
        self, api: DriveApi, entry: _WalkEntry, known: str, workspace: Path
    ) -> FetchedDocument | MissedDocument:
        """One file: unchanged, fetched, or missed for a reason of its own."""
        try:
            if isinstance(entry.file, ConnectorError):
                raise entry.file
            file, output = await self._build_output(api, entry.file, known, workspace)
        except AccountError:
            raise
        except ConnectorError as error:
            return MissedDocument(entry.source, entry.name, error, gone=isinstance(error, ConnectorNotFoundError))
        return FetchedDocument(entry.source, entry.name, file.file_type, output, file.version, file.url, entry.total)

    async def _build_output(
        self, api: DriveApi, file: DriveFile, known: str, workspace: Path
    ) -> tuple[DriveFile, ConnectorOutput | None]:
        """The file's current metadata, and its content unless that is known or no parser reads it."""
        changed: FileChangedError | None = None
        for _ in range(FETCH_TIMES):
            if changed is not None:
                file = await api.get_file(file.reference)
            if file.trashed:
                raise ConnectorNotFoundError("it is in the trash of Google Drive")
            if file.file_type is None or (known and file.version == known):
                return file, None
            try:
                return file, await self._fetch_content(api, file, workspace)
            except FileChangedError as error:
                changed = error
        assert changed is not None
        raise changed

    async def _fetch_content(self, api: DriveApi, file: DriveFile, workspace: Path) -> ConnectorOutput:
        # Numbered, for two walks that meet the same file in one workspace.
        target = workspace / f"{next(self._numbers)}-{file.local_name}"
        if file.export is not None:
            got = await api.export(file, file.export.mime, target, max_bytes=self._max_bytes)
        else:
            got = await api.download_content(file, target, max_bytes=self._max_bytes)
        return ConnectorOutput(
            file_path=str(target),
            file_size_bytes=got.size,
            source_metadata={**file.metadata, "id": file.id},
            checksum=got.checksum,
        )


async def _walk(api: DriveApi, top: str, root: DriveFile, *, recursive: bool) -> AsyncIterator[_WalkEntry]:
    """Yields the one file, or every file below the folder once, whatever shortcuts lead to it."""
    if not root.is_folder or root.trashed:
        yield _WalkEntry(f"{PREFIX}{top}", root.name, root, total=1)
        return
    seen = {root.id}
    waiting = deque([(root, f"{PREFIX}{top}/", "")])
    count = 0
    while waiting:
        folder, sources, path = waiting.popleft()
        entries: list[_WalkEntry] = []
        for child in await api.list_children(folder):
            id_ = child.target.id if child.target else child.id
            if id_ in seen or (child.target_is_folder and not recursive):
                continue
            seen.add(id_)
            file = await _resolve_shortcut(api, child)
            if isinstance(file, DriveFile) and file.is_folder:
                if recursive:
                    waiting.append((file, f"{PREFIX}{top}/{id_}/", f"{path}{file.name}/"))
                continue
            entries.append(_WalkEntry(f"{sources}{id_}", f"{path}{child.name}", file))
        count += len(entries)
        for entry in entries:
            yield replace(entry, total=None if waiting else count)


async def _resolve_shortcut(api: DriveApi, child: DriveFile) -> DriveFile | ConnectorError:
    """Resolves a shortcut, or returns the reason why it cannot be read. Drive has no shortcuts to shortcuts."""
    if child.target is None:
        return child
    try:
        file = await api.get_file(child.target)
    except ConnectorNotFoundError as error:
        return error
    except AccountError:
        raise
    except ConnectorError as error:
        if child.target_is_folder:
            raise  # else its files would look as if they were deleted
        return error
    return ConnectorNotFoundError("it is in the trash of Google Drive") if file.trashed else file
