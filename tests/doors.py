"""Which tests go through a door: they start a gateway or a command of it, and meet nothing else of it.

A folder does not say so: many integration tests drive the engine in their own process. What a test calls is followed
through the helpers and fixtures of the tests, by name, without running anything.
"""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

TESTS = Path(__file__).parent
OPENERS = frozenset({"serving", "create_app", "GatewayProcess", "ColdGatewayProcess", "CliRunner"})
"""Names that start a gateway in this process or another one, or run a command of it."""
COMMANDS = frozenset({"gateway", "gateway.cli", "tests.bench.retrieval"})
"""Modules that are commands of this project, as an argument of `python -m`."""

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Assign | ast.AnnAssign


@cache
def opens_door(path: Path, test: str) -> bool:
    """Whether a test (a function, or `Class::function`) of a module below `tests` goes through a door."""
    return _reaches_door(path.resolve(), test.rpartition("::")[2] or test, set())


def _reaches_door(path: Path, name: str, seen: set[tuple[Path, str]]) -> bool:
    """Whether a definition of a module uses an opener, itself or by what it calls."""
    if (path, name) in seen:
        return False
    seen.add((path, name))
    definitions, imports = _read_module(path)
    node = definitions.get(name)
    if node is None:
        if name in imports:
            other, original = imports[name]
            return _reaches_door(other, original, seen)
        return any(_reaches_door(conftest, name, seen) for conftest in _list_conftests(path.parent) if conftest != path)
    used = _list_used_names(path, name)
    return bool(used & (OPENERS | COMMANDS)) or any(
        _reaches_door(path, one, seen) for one in sorted(used) if one != name
    )


@cache
def _list_used_names(path: Path, name: str) -> frozenset[str]:
    """The names that a definition of a module uses; helpers are asked for by every test that calls them."""
    definitions, _ = _read_module(path)
    return frozenset(_list_used(definitions[name]))


def _list_used(node: ast.AST) -> Iterator[str]:
    """Yields the names that a definition uses, those of its fixtures included, and its texts that are commands."""
    for one in ast.walk(node):
        match one:
            case ast.Name(id=name) | ast.arg(arg=name):
                yield name
            case ast.Constant(value=str(text)) if text in COMMANDS:
                yield text
            case _:
                pass


@cache
def _read_module(path: Path) -> tuple[dict[str, Definition], dict[str, tuple[Path, str]]]:
    """The definitions of a module by name, those in classes included, and what it imports from other test modules."""
    tree = ast.parse(path.read_text("utf-8"))
    definitions: dict[str, Definition] = {}
    imports: dict[str, tuple[Path, str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("tests"):
            other = TESTS.parent.joinpath(*node.module.split(".")).with_suffix(".py")
            if other.exists():
                imports |= {alias.asname or alias.name: (other, alias.name) for alias in node.names}
    for body in (tree.body, *(node.body for node in tree.body if isinstance(node, ast.ClassDef))):
        for statement in body:
            for name in _list_names(statement):
                definitions.setdefault(name, statement)  # type: ignore[arg-type]
    return definitions, imports


def _list_names(statement: ast.stmt) -> Iterator[str]:
    """Yields what a statement of a module defines."""
    match statement:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr()):
            yield name
        case _:
            return


@cache
def _list_conftests(folder: Path) -> tuple[Path, ...]:
    """The conftest modules whose fixtures the tests in a folder may use, the nearest first."""
    folders = [one for one in (folder, *folder.parents) if one.is_relative_to(TESTS)]
    return tuple(conftest for one in folders if (conftest := one / "conftest.py").exists())
