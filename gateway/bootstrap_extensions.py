"""Registers the extensions of installed packages that are found by entry points: tools and gates; features register
those of their own kinds."""

import logging
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from agent.core.entry_points import Group, InstalledExtension, describe_problem, load_extensions
from agent.execution.gates import GATES
from agent.run_context.extensions import Extensions, Gate
from agent.tools import ToolRegistry

log = logging.getLogger(__name__)

_GATE_NAME = re.compile(r"^[a-z][a-z0-9_]{0,47}$")


class InstalledExtensions:
    """The extensions of installed packages. One that cannot be registered is logged and skipped."""

    def __init__(self) -> None:
        self._all: list[InstalledExtension] = []

    def list_all(self) -> tuple[InstalledExtension, ...]:
        """Every extension that was found, with the error of those that were skipped."""
        return tuple(self._all)

    def add_gates(self, extensions: Extensions) -> Extensions:
        """Adds the gates, which rooms can list, to `extensions`."""
        gates: dict[str, Gate] = dict(extensions.gates)

        def register(found: InstalledExtension, gate: Any) -> None:
            if not _GATE_NAME.match(found.name) or not callable(gate):
                raise ValueError(f"gate {found.name!r} must match {_GATE_NAME.pattern} and be a function")
            if found.name in GATES or found.name in gates:
                raise ValueError(f"a gate named {found.name!r} is registered already")
            gates[found.name] = gate

        self.register("stepgate.gates", register)
        return replace(extensions, gates=gates)

    def add_tools(self, registry: ToolRegistry) -> None:
        """Adds the tools to the registry."""
        self.register("stepgate.tools", lambda _, build: registry.register(build()))

    def register(self, group: Group, register: Callable[[InstalledExtension, Any], None]) -> None:
        """Calls `register` with each extension of a group, and what its entry point names."""
        for extension, loaded in load_extensions(group):
            status = extension
            if not status.error:
                try:
                    register(status, loaded)
                except Exception as problem:  # noqa: BLE001 - foreign code: the gateway starts without it
                    status = replace(status, error=describe_problem(problem))
            if status.error:
                log.warning("%s %s of %s is skipped: %s", group, status.name, status.origin, status.error)
            self._all.append(status)
