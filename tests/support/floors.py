"""Floors of the code: the longest chain of packages that import each other, as `gateway.doors -> ... -> agent.core`."""

import ast
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tests.support.processes import ROOT

PACKAGES = ("agent", "mcp_tools", "gateway")


def find_longest_chain(start: str, roots: Sequence[str] = PACKAGES, folder: Path = ROOT) -> list[str]:
    """The packages on the longest chain of imports from `start`. Imports for types and in functions do not count, nor
    do features, which nothing below imports."""
    return _extend([start], _collect_imports(roots, folder))


def _extend(chain: list[str], imports: Mapping[str, set[str]]) -> list[str]:
    longer = (_extend([*chain, name], imports) for name in sorted(imports[chain[-1]] - {*chain}))
    return max(longer, key=len, default=chain)


def _collect_imports(roots: Sequence[str], folder: Path) -> dict[str, set[str]]:
    """The packages that each package imports."""
    packages = {
        f"{root}.{path.name}": path
        for root in roots
        for path in (folder / root).iterdir()
        if (path / "__init__.py").is_file() and path.name != "features"
    }
    return {
        name: {
            package
            for module in path.rglob("*.py")
            for imported in _list_imports(ast.parse(module.read_text("utf-8")).body)
            if (package := ".".join(imported.split(".")[:2])) in packages and package != name
        }
        for name, path in packages.items()
    }


def _list_imports(body: Sequence[ast.stmt]) -> Iterator[str]:
    """Yields the modules that are imported when a module is."""
    for statement in body:
        if isinstance(statement, ast.ImportFrom) and statement.module is not None:
            yield from (f"{statement.module}.{one.name}" for one in statement.names)
        elif isinstance(statement, ast.Import):
            yield from (one.name for one in statement.names)
