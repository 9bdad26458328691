"""docs/architecture.md is true: the files, functions, classes and events it names exist where it says."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.support.processes import ROOT

PACKAGES = ("agent", "mcp_tools", "gateway")
TEXT = (ROOT / "docs" / "architecture.md").read_text("utf-8")
TREE = TEXT.split("```")[1]

_DEFINITION = re.compile(r"^\s*(?:(?:async )?def|class) (\w+)|^\s*(\w+)\b\s*(?::[^=\n]*)?=|^    (\w+): ", re.MULTILINE)
_NAME = re.compile(r"_?[A-Z][\w.]*|\w+_\w+|[a-z]+")
_SYMBOL = re.compile(r"(?!AGENT_|SKILL\.md)_?[A-Z][\w.]*|[a-z]\w*_\w+")
_PATH = re.compile(r"(?!SKILL\.md)[\w./]+(?:/|/\w+|\.(?:py|md|toml))")
_EVENT = re.compile(r"[a-z]+\.[a-z_]+")
_ONLY_SEPARATORS = re.compile(r"[\s,:]*(?:and )?")


@cache
def list_definitions(path: Path) -> set[str]:
    """The names that a file, or the Python files below a folder, define."""
    files = [path] if path.is_file() else sorted(path.rglob("*.py"))
    return {name for file in files for found in _DEFINITION.findall(file.read_text("utf-8")) for name in found if name}


def defines(path: Path, name: str) -> bool:
    """Whether `name`, or each part of `Class.method`, is defined there."""
    return set(name.split(".")) <= list_definitions(path)


def iter_problems() -> Iterator[str]:
    """Yields what the document names and the code does not have, cell by cell of its tables and item by item."""
    for part in re.split(r" \| |\n\n|\n(?=[-\d|])", TEXT.split("```", 2)[2]):
        folder, file = ROOT, None
        pieces = part.split("`")
        for before, token in zip(pieces[::2], pieces[1::2], strict=False):
            if _ONLY_SEPARATORS.fullmatch(before) is None:
                file = None
            if _PATH.fullmatch(token):
                path = next((one / token for one in (ROOT, folder) if (one / token).exists()), None)
                if path is None:
                    yield f"there is no {token}"
                    continue
                file, folder = (path, path.parent) if path.is_file() else (None, path)
            elif problem := find_problem(token, file):
                yield problem


def find_problem(token: str, file: Path | None) -> str | None:
    """Returns what is wrong with the name of a symbol, which stands after the name of `file`, or of an event."""
    if file is not None and _NAME.fullmatch(token):
        return None if defines(file, token) else f"{file.relative_to(ROOT)} has no {token}"
    if _EVENT.fullmatch(token):
        return None if any(f'"{token}"' in read_sources(package) for package in PACKAGES) else f"there is no {token}"
    if _SYMBOL.fullmatch(token):
        return None if any(defines(ROOT / package, token) for package in PACKAGES) else f"nothing defines {token}"
    return None


@cache
def read_sources(package: str) -> str:
    return "\n".join(file.read_text("utf-8") for file in sorted((ROOT / package).rglob("*.py")))


def test_what_the_map_names_is_where_it_says() -> None:
    assert list(iter_problems()) == []


def test_the_tree_of_packages_is_complete() -> None:
    named, parent = set(), ROOT
    for line in TREE.splitlines():
        if match := re.match(r"( {2})?(\S+(?: \S+)*?)(?= {2}|$)", line):
            names = match[2].split()
            parent = parent if match[1] else ROOT / names[0]
            named |= {(parent if match[1] else ROOT) / name for name in names}
    missing = [path for path in named if not any(path.parent.glob(path.name))]
    assert missing == []
    packages = {folder.parent for package in PACKAGES for folder in (ROOT / package).glob("*/__init__.py")}
    assert packages - named == set()
