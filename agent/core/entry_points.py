"""Finds extensions of installed packages by Python entry points. One that fails to load is named and skipped.

| group | an entry point refers to |
| --- | --- |
| `stepgate.tools` | a callable without arguments that returns a `Tool`, such as a `TypedTool` class |
| `stepgate.gates` | a gate function, under the name that rooms list |
| `stepgate.connectors` | a callable that takes a `SafeClient` and returns a `Connector`, under the source type's name |
| `stepgate.parsers` | a `Reader`, under the reader's name |

`gateway/bootstrap_extensions.py` registers them.
"""

from dataclasses import dataclass
from functools import cache
from importlib.metadata import Distribution, EntryPoint, entry_points
from typing import Any, Final, Literal, get_args

Group = Literal["stepgate.tools", "stepgate.gates", "stepgate.connectors", "stepgate.parsers"]
GROUPS: Final[tuple[Group, ...]] = get_args(Group)


@dataclass(frozen=True, slots=True)
class InstalledExtension:
    """One entry point. `value` is `module:object`; `folder` is where its package is installed."""

    group: str
    name: str
    value: str
    package: str
    version: str
    folder: str
    error: str = ""
    """Why it was skipped; empty if it is in use."""

    @property
    def origin(self) -> str:
        """The package with its version, for people."""
        return f"{self.package} {self.version}".strip()


def load_extensions(group: Group) -> list[tuple[InstalledExtension, Any]]:
    """Loads the entry points of a group, in order of name. The object is None if the extension has an error."""
    points = sorted((one for one in _list_entry_points() if one.group == group), key=lambda one: (one.name, one.value))
    return [_load(group, one) for one in points]


@cache
def _list_entry_points() -> tuple[EntryPoint, ...]:
    """Those of all installed packages. Finding them reads a file of each package: once a process."""
    points = entry_points()
    return tuple(one for group in GROUPS for one in points.select(group=group))


def _load(group: Group, entry: EntryPoint) -> tuple[InstalledExtension, Any]:
    dist: Distribution | None = entry.dist
    package, version = (dist.metadata["Name"], dist.version) if dist is not None else ("an unnamed package", "")
    folder = str(dist.locate_file("")) if dist is not None else ""
    try:
        loaded, error = entry.load(), ""
    except Exception as problem:  # noqa: BLE001 - foreign code: whatever it raises, the others still load
        loaded, error = None, describe_problem(problem)
    return InstalledExtension(group, entry.name, entry.value, package, version, folder, error), loaded


def describe_problem(problem: Exception) -> str:
    """The type and the message of an exception, on one line."""
    return " ".join(f"{type(problem).__name__}: {problem}".split())[:300]
