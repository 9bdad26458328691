"""`DriveConnector`: the files of a folder of Google Drive, or one file."""

import asyncio
import itertools
from collections import deque
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from agent.core.credentials import CredentialError, Credentials, DocumentPassword
from agent.knowledge.connectors.base import ConnectorPassingError, Wire
from agent.knowledge.connectors.drive_address import PREFIX, parse
from agent.knowledge.connectors.drive_api import ChangedError, DriveApi
from agent.knowledge.connectors.drive_auth import Account, AccountError
from agent.knowledge.connectors.drive_files import DriveFile
from agent.knowledge.connectors.port import Fetched, Missed
from agent.knowledge.errors import ConnectorAuthError, ConnectorError, ConnectorNotFoundError
from agent.knowledge.models import ConnectorInput, ConnectorOutput, SourceType

GOOGLE = "https://www.googleapis.com"
MAX_BYTES = 200_000_000
"""The largest file that is fetched, in bytes."""
FETCH_TIMES = 3
"""How often a file that changes while it is fetched is fetched anew."""
FAILURES_IN_A_ROW = 3
"""So many files in a row that fail for no reason of their own mean that Drive is down: asking patiently for each of
thousands would take days."""


@dataclass(frozen=True, slots=True)
class _Met:
    """A file on the walk, or why it cannot even be looked at. `total` as in `Fetched`."""

    source: str
    name: str
    file: DriveFile | ConnectorError
    total: int | None = None


class DriveConnector:
    """Drive's files, read with named credentials and never changed.

    A file's source is `gdrive:<id>`, or with the folder that was asked for before it, `gdrive:<folder>/<id>`, and with
    the subfolder where it lies in one, `gdrive:<folder>/<subfolder>/<id>`: so `covers` can tell whose a file is."""

    source_type: SourceType = "gdrive"

    def __init__(
        self, wire: Wire, credentials: Credentials, *, base_url: str = GOOGLE, max_bytes: int = MAX_BYTES
    ) -> None:
        self._wire = wire
        self._credentials = credentials
        self._base_url = base_url
        self._max_bytes = max_bytes
        self._accounts: dict[str, Account] = {}
        self._numbers = itertools.count(1)

    async def fetch(
        self, request: ConnectorInput, workspace: Path, known: Mapping[str, str]
    ) -> AsyncIterator[Fetched | Missed]:
        """See `Connector.fetch`. Raises also when Drive fails on the way: half a walk must not look like a whole."""
        top = parse(request.source_identifier)
        api = DriveApi(self._wire, await self._account(request.credentials_id), self._base_url)
        folder = await asyncio.to_thread(workspace.absolute)
        failures = 0
        root = await api.file(top)
        if root.target is not None:
            root = await api.file(root.target)
        async for met in _walk(api, top.id, root, recursive=request.recursive):
            found = await self._taken(api, met, known.get(met.source, ""), folder)
            if isinstance(found, Missed) and isinstance(found.error, ConnectorPassingError):
                failures += 1
                if failures == FAILURES_IN_A_ROW:
                    raise found.error
            else:
                failures = 0
            yield found
            if isinstance(found, Fetched) and found.output is not None:
                await asyncio.to_thread(Path(found.output.file_path).unlink, missing_ok=True)

    def covers(self, request: ConnectorInput, source: str) -> bool:
        """See `Connector.covers`."""
        try:
            own = f"{PREFIX}{parse(request.source_identifier).id}"
        except ConnectorNotFoundError:
            return False
        below = source.removeprefix(f"{own}/")
        return source == own or (below != source and (request.recursive or "/" not in below))

    async def _account(self, name: str | None) -> Account:
        """The account of a credential; a new one when the credential was changed."""
        try:
            if not name:
                there = ", ".join(await asyncio.to_thread(self._credentials.names)) or "none yet (docs/connectors.md)"
                raise ConnectorAuthError(
                    f"Google Drive needs a credential: name one as credentials_id; there are {there}"
                )
            credential = await asyncio.to_thread(self._credentials.get, name)
        except CredentialError as error:
            raise ConnectorAuthError(error.message) from error
        if isinstance(credential, DocumentPassword):
            raise ConnectorAuthError(f"the credential {name!r} is a password of documents; Google Drive needs another")
        account = self._accounts.get(name)
        if account is None or account.credential != credential:
            account = self._accounts[name] = Account(name, credential, self._wire)
        return account

    async def _taken(self, api: DriveApi, met: _Met, known: str, workspace: Path) -> Fetched | Missed:
        """One file: unchanged, fetched, or missed for a reason of its own."""
        try:
            if isinstance(met.file, ConnectorError):
                raise met.file
            file, output = await self._output(api, met.file, known, workspace)
        except AccountError:
            raise
        except ConnectorError as error:
            return Missed(met.source, met.name, error, gone=isinstance(error, ConnectorNotFoundError))
        return Fetched(met.source, met.name, file.file_type, output, file.version, file.url, met.total)

    async def _output(
        self, api: DriveApi, file: DriveFile, known: str, workspace: Path
    ) -> tuple[DriveFile, ConnectorOutput | None]:
        """The file as it is now, and its content unless that is known or nobody reads it."""
        changed: ChangedError | None = None
        for _ in range(FETCH_TIMES):
            if changed is not None:
                file = await api.file(file.reference)
            if file.trashed:
                raise ConnectorNotFoundError("it is in the trash of Google Drive")
            if file.file_type is None or (known and file.version == known):
                return file, None
            try:
                return file, await self._content(api, file, workspace)
            except ChangedError as error:
                changed = error
        assert changed is not None
        raise changed

    async def _content(self, api: DriveApi, file: DriveFile, workspace: Path) -> ConnectorOutput:
        # Numbered, for two walks that meet the same file in one workspace.
        target = workspace / f"{next(self._numbers)}-{file.local_name}"
        if file.export is not None:
            got = await api.export(file, file.export.mime, target, max_bytes=self._max_bytes)
        else:
            got = await api.content(file, target, max_bytes=self._max_bytes)
        return ConnectorOutput(
            file_path=str(target),
            file_size_bytes=got.size,
            source_metadata={**file.metadata, "id": file.id},
            checksum=got.checksum,
        )


async def _walk(api: DriveApi, top: str, root: DriveFile, *, recursive: bool) -> AsyncIterator[_Met]:
    """The one file, or every file below the folder: each once, whatever shortcuts lead to it."""
    if not root.is_folder or root.trashed:
        yield _Met(f"{PREFIX}{top}", root.name, root, total=1)
        return
    seen = {root.id}
    waiting = deque([(root, f"{PREFIX}{top}/", "")])
    count = 0
    while waiting:
        folder, sources, path = waiting.popleft()
        found: list[_Met] = []
        for child in await api.children(folder):
            id_ = child.target.id if child.target else child.id
            if id_ in seen or (child.target_is_folder and not recursive):
                continue
            seen.add(id_)
            file = await _followed(api, child)
            if isinstance(file, DriveFile) and file.is_folder:
                if recursive:
                    waiting.append((file, f"{PREFIX}{top}/{id_}/", f"{path}{file.name}/"))
                continue
            found.append(_Met(f"{sources}{id_}", f"{path}{child.name}", file))
        count += len(found)
        for met in found:
            yield replace(met, total=None if waiting else count)


async def _followed(api: DriveApi, child: DriveFile) -> DriveFile | ConnectorError:
    """What a shortcut leads to, or why that cannot be had. Drive has no shortcut to a shortcut; none is followed."""
    if child.target is None:
        return child
    try:
        file = await api.file(child.target)
    except ConnectorNotFoundError as error:
        return error
    except AccountError:
        raise
    except ConnectorError as error:
        if child.target_is_folder:
            raise  # else its files would look as if they were deleted
        return error
    return ConnectorNotFoundError("it is in the trash of Google Drive") if file.trashed else file
