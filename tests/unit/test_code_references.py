"""What documents and docstrings name in the code is there: files, and the members of classes."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator

from tests.support.processes import ROOT

PACKAGES = ("agent", "gateway", "mcp_tools")
_FILE = re.compile(r"`((?:agent|gateway|mcp_tools)/[a-z0-9_./-]+\.[a-z]+)`")
OTHERS = {"JobManager", "Worker"}
"""Classes of libraries that docstrings point to."""
_SEE = re.compile(r"See `(\w+)\.(\w+)`")


def iter_sources() -> Iterator[tuple[str, str]]:
    """Yields each module with its text."""
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            yield str(path.relative_to(ROOT)), path.read_text("utf-8")


def test_files_that_documents_name_are_there() -> None:
    pages = [path for path in (ROOT / "docs").rglob("*.md") if path.name != "requirements.md"]
    named = {(str(page.relative_to(ROOT)), file) for page in pages for file in _FILE.findall(page.read_text("utf-8"))}
    assert sorted((page, file) for page, file in named if not (ROOT / file).exists()) == []


def test_methods_that_docstrings_point_to_are_there() -> None:
    members: dict[str, set[str]] = defaultdict(set)
    bases: dict[str, set[str]] = defaultdict(set)
    named: set[tuple[str, str, str]] = set()
    for module, text in iter_sources():
        named |= {(module, *found) for found in _SEE.findall(text)}
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ClassDef):
                members[node.name] |= set(iter_members(node))
                bases[node.name] |= {base for one in node.bases for base in re.findall(r"\w+", ast.unparse(one))}

    def has(kind: str, member: str) -> bool:
        """Also by a base of its own or of a library's."""
        if kind in OTHERS or member in members[kind]:
            return True
        return any(has(base, member) for base in bases[kind] if base in members or base in OTHERS)

    assert sorted(one for one in named if not has(*one[1:])) == []


def iter_members(node: ast.ClassDef) -> Iterator[str]:
    """Yields the methods and fields of a class."""
    for inner in node.body:
        if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef):
            yield inner.name
        elif isinstance(inner, ast.AnnAssign) and isinstance(inner.target, ast.Name):
            yield inner.target.id
