"""`SourcePairings`: whether a source may be read with the credential that it names.

Who names a source chooses the address to which the secret is sent. So a credential goes where the operator wrote it
(its `url`), or where a stored source sends it already; a first pairing of the two is a privilege of the scope `admin`.
"""

import asyncio
import json
from collections.abc import AsyncIterator

from agent.storage.credentials import CredentialError, Credentials, GoogleOAuth, GoogleServiceAccount
from agent.storage.secret_places import is_below
from agent.storage.sql import SqlClient
from gateway.features.documents.engine.ingest.allowed_credentials import check_credentials
from gateway.features.documents.engine.ingest.connectors.urls import read_start
from gateway.features.documents.engine.ingest.errors import ConnectorAuthError
from gateway.features.documents.engine.search.models import ConnectorInput

DRIVE = "https://www.googleapis.com"
"""Where the credential of a Google Drive source is sent."""


class UnpairedCredentialError(ConnectorAuthError):
    """Raised for a first pairing of a credential and an address. Unlike for other refusals, `admin` may be asked."""

    def __init__(self, name: str, address: str) -> None:
        self.credential, self.address = name, address
        super().__init__(
            f"the credential {name[:80]!r} was never sent to {address[:300]}, which the operator must allow: with "
            "this address as `url` in the credential, with `stepgate sources add ADDRESS --credentials NAME`, "
            "or with POST /v1/sources and a key with the scope 'admin', which asks a person"
        )


class SourcePairings:
    """The credentials of sources and the addresses they go to. Methods raise `StoreError`."""

    def __init__(self, statements: SqlClient, credentials: Credentials | None = None) -> None:
        self._statements, self._credentials = statements, credentials

    async def check(self, owner: str, request: ConnectorInput) -> None:
        """Raises `ConnectorAuthError` (403) for a credential that is not there or not the owner's, or goes to another
        address only, and `UnpairedCredentialError` for one that a person must allow there.
        """
        check_credentials(owner, request)
        name, address = request.credentials_id, _read_address(request)
        if name is None or not address:
            return
        if not await asyncio.to_thread(self._is_stored, name):  # nobody is asked where to send it
            raise ConnectorAuthError(f"there is no credential {name[:80]!r}; ask the operator to store it")
        place = await asyncio.to_thread(self._find_place, name)
        if place and not is_below(address, place):
            raise ConnectorAuthError(f"the credential {name[:80]!r} is sent only to the address in its `url`")
        if place is not None:
            return
        async for stored in self._iter_stored(owner):
            if stored.credentials_id == name and is_below(address, _read_address(stored)):
                return
        raise UnpairedCredentialError(name, address)

    def _is_stored(self, name: str) -> bool:
        """Whether there is a credential of this name, as far as the store can be read."""
        try:
            return self._credentials is None or name in self._credentials.list_names()
        except CredentialError:
            return True  # reading the source says what is wrong

    def _find_place(self, name: str) -> str | None:
        """The address in a credential; "" for an account at Google, whose type says where it goes."""
        if self._credentials is None:
            return None
        try:
            credential = self._credentials.get(name)
        except CredentialError:
            return None
        is_google = isinstance(credential, GoogleServiceAccount | GoogleOAuth)
        return "" if is_google else self._credentials.find_place(name)

    async def _iter_stored(self, owner: str) -> AsyncIterator[ConnectorInput]:
        """Yields the registered sources of an owner, and those that their collections were read from."""
        for (text,) in await self._statements.read("SELECT request FROM sources WHERE owner = ?", owner):
            yield ConnectorInput.model_validate_json(text)
        for (texts,) in await self._statements.read("SELECT sources FROM collections WHERE owner = ?", owner):
            for one in json.loads(texts):
                yield ConnectorInput.model_validate(one)


def _read_address(request: ConnectorInput) -> str:
    """Where the credential of a source is sent; empty for local files, and for what is not an address."""
    match request.source_type:
        case "web":
            return read_start(request.source_identifier) or ""
        case "gdrive":
            return DRIVE
        case _:
            return ""
