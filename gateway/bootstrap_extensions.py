"""Registers the extensions of installed packages: tools, gates, connectors and parsers found by entry points."""

import logging
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

from agent.core.entry_points import Group, InstalledExtension, describe_problem, load_extensions
from agent.execution.gates import GATES
from agent.net import SafeClient
from agent.run_context.extensions import Extensions, Gate
from agent.tools import ToolRegistry
from gateway.features.documents.engine.ingest.connectors.port import Connector
from gateway.features.documents.engine.ingest.parsers.registry import Reader
from gateway.features.documents.engine.ingest.plugins import register_parser

log = logging.getLogger(__name__)

_GATE_NAME = re.compile(r"^[a-z][a-z0-9_]{0,47}$")


class InstalledExtensions:
    """The extensions of installed packages. One that cannot be registered is logged and skipped."""

    def __init__(self) -> None:
        self._all: list[InstalledExtension] = []

    @classmethod
    def with_parsers(cls) -> Self:
        """Registers the parsers, which pipelines can name from then on."""
        installed = cls()
        installed._register("stepgate.parsers", _register_parser)
        return installed

    def list_all(self) -> tuple[InstalledExtension, ...]:
        """Returns every extension that was found, with the error of those that were skipped."""
        return tuple(self._all)

    def add_gates(self, extensions: Extensions) -> Extensions:
        """Returns `extensions` with the gates, which rooms can list."""
        gates: dict[str, Gate] = dict(extensions.gates)

        def register(found: InstalledExtension, gate: Any) -> None:
            if not _GATE_NAME.match(found.name) or not callable(gate):
                raise ValueError(f"gate {found.name!r} must match {_GATE_NAME.pattern} and be a function")
            if found.name in GATES or found.name in gates:
                raise ValueError(f"a gate named {found.name!r} is registered already")
            gates[found.name] = gate

        self._register("stepgate.gates", register)
        return replace(extensions, gates=gates)

    def add_tools(self, registry: ToolRegistry) -> None:
        """Adds the tools to the registry."""
        self._register("stepgate.tools", lambda _, build: registry.register(build()))

    def add_connectors(self, connectors: dict[str, Connector], client: SafeClient) -> dict[str, Connector]:
        """Adds the connectors by their source type and returns `connectors`. They use `client` for the network."""

        def register(found: InstalledExtension, build: Any) -> None:
            connector: Connector = build(client)
            if found.name in connectors:
                raise ValueError(f"a connector for {found.name!r} is registered already")
            if connector.source_type != found.name:
                raise ValueError(f"its source type is {connector.source_type!r}, not {found.name!r}")
            connectors[found.name] = connector

        self._register("stepgate.connectors", register)
        return connectors

    def _register(self, group: Group, register: Callable[[InstalledExtension, Any], None]) -> None:
        for extension, loaded in load_extensions(group):
            found = extension
            if not found.error:
                try:
                    register(found, loaded)
                except Exception as problem:  # noqa: BLE001 - foreign code: the gateway starts without it
                    found = replace(found, error=describe_problem(problem))
            if found.error:
                log.warning("%s %s of %s is skipped: %s", group, found.name, found.origin, found.error)
            self._all.append(found)


def _register_parser(found: InstalledExtension, reader: Any) -> None:
    if not isinstance(reader, Reader) or reader.name != found.name:
        raise TypeError(f"{found.value} is not a Reader named {found.name!r}")
    register_parser(reader._replace(folder=found.folder))
