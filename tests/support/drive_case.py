"""A `DriveServer`, and a `DriveConnector` that reads it: for tests of the connector."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from agent.net import SafeClient
from agent.storage.credentials import Credentials
from gateway.features.documents.engine.ingest.connectors.drive import DriveConnector
from gateway.features.documents.engine.ingest.connectors.port import Connector, FetchedDocument, MissedDocument
from gateway.features.documents.engine.ingest.connectors.source_client import RetryPolicy, SourceClient
from gateway.features.documents.engine.search.models import ConnectorInput
from tests.support.drive_server import CLIENT, EMAIL, REFRESH_TOKEN, DriveServer


class DriveCase:
    """The two of them. `pauses` are the seconds waited between attempts, which do not pass here."""

    def __init__(self, server: DriveServer, folder: Path, client: SafeClient) -> None:
        self.server = server
        self.pauses: list[float] = []
        self.workspace = folder / "workspace"
        self.workspace.mkdir()
        self.credentials_path = folder / "credentials.json"
        self.wire = SourceClient(client, RetryPolicy(sleep=self._pause, chance=lambda: 0.5), silence_s=5)
        self.write_credentials(account=self.account(), oauth=self.oauth())
        self.connector: Connector = self.connect()

    def account(self, **changes: Any) -> dict[str, Any]:
        """The entry of the server's service account."""
        key = {
            "type": "service_account",
            "client_email": EMAIL,
            "private_key": self.server.private_key,
            "private_key_id": "key-1",
            "token_uri": self.server.token_uri,
        }
        return {"type": "google_service_account", "key": key | changes}

    def oauth(self, **changes: Any) -> dict[str, Any]:
        """The entry of a person's refresh token."""
        given = {"type": "google_oauth", **CLIENT, "refresh_token": REFRESH_TOKEN, "token_uri": self.server.token_uri}
        return given | changes

    def write_credentials(self, **entries: dict[str, Any]) -> None:
        """Make this the credentials file."""
        self.credentials_path.write_text(json.dumps(entries))
        self.credentials_path.chmod(0o600)

    def connect(self, **options: Any) -> DriveConnector:
        """Another connector to the same server."""
        return DriveConnector(self.wire, Credentials(self.credentials_path), base_url=self.server.url, **options)

    async def fetch(
        self,
        identifier: str,
        *,
        recursive: bool = True,
        credential: str | None = "account",
        known: Mapping[str, str] | None = None,
    ) -> list[FetchedDocument | MissedDocument]:
        """All that is found."""
        request = ConnectorInput(
            source_type="gdrive", source_identifier=identifier, credentials_id=credential, recursive=recursive
        )
        return [found async for found in self.connector.fetch(request, self.workspace, known or {})]

    async def contents(self, identifier: str, *, recursive: bool = True) -> dict[str, bytes]:
        """The bytes of everything that is fetched, by its name; AssertionError for what was missed."""
        request = ConnectorInput(
            source_type="gdrive", source_identifier=identifier, credentials_id="account", recursive=recursive
        )
        read: dict[str, bytes] = {}
        async for found in self.connector.fetch(request, self.workspace, {}):
            assert isinstance(found, FetchedDocument), found
            assert found.output is not None
            read[found.name] = await asyncio.to_thread(Path(found.output.file_path).read_bytes)
        return read

    async def _pause(self, seconds: float) -> None:
        self.pauses.append(seconds)


@asynccontextmanager
async def drive_case(folder: Path) -> AsyncIterator[DriveCase]:
    """A server with nothing in it, and its connector; the credentials `account` and `oauth` open it."""
    client = SafeClient(allow_hosts=["127.0.0.1"])
    async with DriveServer() as server:
        try:
            yield DriveCase(server, folder, client)
        finally:
            await client.aclose()
