"""The tree of errors that a reader sees first is the tree of the classes."""

import ast
from pathlib import Path

from agent.core import errors
from agent.core.errors import AgentError

ROOT = Path(__file__).parents[2]
OWN_BASES = {"IngestError", "UnchangedError"}
"""Direct subclasses of `AgentError` outside of the module: nothing of the first level describes them."""


def read_documented_tree() -> dict[str, str]:
    """Each class of the docstring's tree with its parent."""
    parents: dict[str, str] = {}
    path: list[tuple[int, str]] = []
    for line in (errors.__doc__ or "").splitlines():
        name = line.split()[0] if line.startswith("    ") and line.strip() else ""
        if not name.endswith("Error"):
            continue
        depth = len(line) - len(line.lstrip())
        path = [(at, other) for at, other in path if at < depth]
        if path:
            parents[name] = path[-1][1]
        path.append((depth, name))
    return parents


def test_the_docstring_shows_every_class_below_its_base() -> None:
    classes = [value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, AgentError)]
    actual = {one.__name__: one.__base__.__name__ for one in classes if one is not AgentError and one.__base__}
    assert read_documented_tree() == actual


def test_errors_of_other_modules_have_a_base_that_a_caller_would_catch() -> None:
    direct = {
        node.name: path.relative_to(ROOT).as_posix()
        for folder in ("agent", "gateway", "mcp_tools")
        for path in (ROOT / folder).rglob("*.py")
        if path != ROOT / "agent/core/errors.py" and "AgentError" in (text := path.read_text("utf-8"))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ClassDef)
        and any(isinstance(base, ast.Name) and base.id == "AgentError" for base in node.bases)
    }
    assert direct.keys() <= OWN_BASES, direct
