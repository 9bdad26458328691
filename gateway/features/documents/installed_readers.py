"""Registers the parsers and connectors of installed packages (`stepgate.parsers`, `stepgate.connectors`)."""

from typing import Any

from agent.core.entry_points import InstalledExtension
from agent.net import SafeClient
from gateway.bootstrap_extensions import InstalledExtensions
from gateway.features.documents.engine.ingest.connectors.port import Connector
from gateway.features.documents.engine.ingest.parsers.registry import Reader
from gateway.features.documents.engine.ingest.plugins import register_parser
from gateway.features.documents.engine.search.models import SourceType


def add_installed_connectors(
    installed: InstalledExtensions, connectors: dict[SourceType, Connector], client: SafeClient
) -> dict[SourceType, Connector]:
    """Adds the connectors by their source type and returns `connectors`. They use `client` for the network."""

    def register(found: InstalledExtension, build: Any) -> None:
        connector: Connector = build(client)
        if found.name in connectors:
            raise ValueError(f"a connector for {found.name!r} is registered already")
        if connector.source_type != found.name:
            raise ValueError(f"its source type is {connector.source_type!r}, not {found.name!r}")
        connectors[found.name] = connector

    installed.register("stepgate.connectors", register)
    return connectors


def register_installed_parser(found: InstalledExtension, reader: Any) -> None:
    """Registers a parser, which pipelines can name from then on. Raises `TypeError` for anything else."""
    if not isinstance(reader, Reader) or reader.name != found.name:
        raise TypeError(f"{found.value} is not a Reader named {found.name!r}")
    register_parser(reader._replace(folder=found.folder))
