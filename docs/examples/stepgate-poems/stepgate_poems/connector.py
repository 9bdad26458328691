"""A connector: the poems in this package, by the name of the poet."""

import hashlib
from collections.abc import AsyncIterator, Mapping
from importlib.resources import files
from pathlib import Path

from agent.net import SafeClient
from gateway.features.documents.engine.ingest.connectors.port import FetchedDocument, MissedDocument
from gateway.features.documents.engine.ingest.errors import ConnectorNotFoundError
from gateway.features.documents.engine.search.models import ConnectorInput, ConnectorOutput


class PoemConnector:
    """Implements `Connector`. A real one would use `client` to reach its source."""

    source_type = "poems"

    def __init__(self, client: SafeClient) -> None:
        self._client = client

    async def fetch(
        self, request: ConnectorInput, workspace: Path, known: Mapping[str, str]
    ) -> AsyncIterator[FetchedDocument | MissedDocument]:
        """Yields the poems of a poet; those that are indexed already without their text."""
        folder = files("stepgate_poems").joinpath("poems")
        names = sorted(one.name for one in folder.iterdir() if one.name.startswith(f"{request.source_identifier}-"))
        if not names:
            raise ConnectorNotFoundError(f"there are no poems of {request.source_identifier!r}")
        for name in names:
            source, data = f"poems:{name}", folder.joinpath(name).read_bytes()
            checksum = hashlib.sha256(data).hexdigest()
            if known.get(source) == checksum:
                yield FetchedDocument(source, name, "txt", None, checksum, total=len(names))
                continue
            path = workspace / name
            path.write_bytes(data)
            output = ConnectorOutput(
                file_path=str(path), file_size_bytes=len(data), source_metadata={}, checksum=checksum
            )
            yield FetchedDocument(source, name, "txt", output, checksum, total=len(names))

    def covers(self, request: ConnectorInput, source: str) -> bool:
        """Whether a document belongs to this poet, so that it is removed once it is gone."""
        return source.startswith(f"poems:{request.source_identifier}-")
