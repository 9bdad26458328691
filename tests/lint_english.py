"""Counts identifiers and phrases that a native engineer would not write: part of `make lint`.

`tests/lint_english.yaml` has the count that each may have. A higher count fails with the places; after a lower one
`python -m tests.lint_english --record` lowers the file, so that counts only fall. Product code is counted: names that
are assigned, docstrings, and the strings that users read.
"""

import ast
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import yaml

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = (ROOT / "agent", ROOT / "gateway", ROOT / "mcp_tools")
COUNTS = Path(__file__).with_suffix(".yaml")

IDENTIFIERS = frozenset(("found", "known", "shown", "asked", "kept", "said", "held", "told", "taken", "heard", "begun"))
"""Participles that are not the whole name of a variable: name what it is (`match`, `reply`, `rows`)."""
PHRASES = {
    "is no": re.compile(r"(?<!there )\b(?:is|are|was|were) no (?!(?:longer|more|less|such|one)\b)\w+", re.IGNORECASE),
    "told": re.compile(r"\b(?:tells?|told)\b(?! apart)", re.IGNORECASE),
    "stands in": re.compile(r"\b(?:stands?|stood|lies?) in\b(?! for)", re.IGNORECASE),
    "any more": re.compile(r"\bany more\b", re.IGNORECASE),
    "is to be": re.compile(r"\b(?:is|are) to be\b", re.IGNORECASE),
    "whoever": re.compile(r"\bwhoever\b|\bkept back\b|\blets? out\b|\banew\b", re.IGNORECASE),
}
"""Patterns by the name that the file of counts has. "There is no run", "is no longer" and "told apart" are right."""


class Place(NamedTuple):
    """A finding: what was counted, and where."""

    rule: str
    path: Path
    line: int


SHOWN_PLACES = 12
"""Places of one rule that are printed."""


def main(arguments: Sequence[str]) -> int:
    """Compares the counts with the recorded ones, or records them. Returns the exit code."""
    places: dict[str, list[Place]] = defaultdict(list)
    for place in list_places():
        places[place.rule].append(place)
    counts = {rule: len(found) for rule, found in sorted(places.items())}
    if "--record" in arguments:
        COUNTS.write_text(yaml.safe_dump(counts, sort_keys=True), "utf-8")
        return 0
    allowed: Counter[str] = Counter(yaml.safe_load(COUNTS.read_text("utf-8")))
    faults = list(compare(counts, allowed))
    for fault in faults:
        print(fault)
    if not faults and counts != allowed:
        print("fewer places than recorded: run `python -m tests.lint_english --record`")
    for rule in sorted(rule for rule in counts if counts[rule] > allowed[rule]):
        # What was changed last is most likely the new place.
        newest = sorted(places[rule], key=lambda place: place.path.stat().st_mtime, reverse=True)[:SHOWN_PLACES]
        for place in newest:
            print(f"  {place.path.relative_to(ROOT)}:{place.line}: {rule}")
        if len(places[rule]) > len(newest):
            print(f"  and {len(places[rule]) - len(newest)} more in files that were changed earlier")
    return 1 if faults else 0


def compare(counts: dict[str, int], allowed: Counter[str]) -> Iterator[str]:
    """Yields a line for each count above the allowed one."""
    for rule in sorted({*counts, *allowed}):
        count = counts.get(rule, 0)
        if count > allowed[rule]:
            yield f"{rule}: {count} places, {allowed[rule]} allowed; see docs/glossary.md for the words to use"


def list_places() -> Iterator[Place]:
    """Yields every finding in the product's Python files."""
    for folder in FOLDERS:
        for path in sorted(folder.rglob("*.py")):
            yield from check_module(path, ast.parse(path.read_text("utf-8")))


def check_module(path: Path, module: ast.Module) -> Iterator[Place]:
    """Yields the findings of one module."""
    statements = (node.value for node in ast.walk(module) if isinstance(node, ast.Expr))
    docstrings = {id(value) for value in statements if isinstance(value, ast.Constant)}
    for node in ast.walk(module):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in IDENTIFIERS:
            yield Place(f"variable {node.id}", path, node.lineno)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from check_text(path, node.lineno, node.value, is_docstring=id(node) in docstrings)


def check_text(path: Path, line: int, text: str, *, is_docstring: bool) -> Iterator[Place]:
    """Yields the findings of one string. Texts for users and docstrings are counted apart."""
    kind = "docstring" if is_docstring else "text"
    if is_docstring and text.startswith("Returns"):
        yield Place("docstring opens with Returns", path, line)
    if " " in text:
        for name, pattern in PHRASES.items():
            for _ in pattern.finditer(text):
                yield Place(f"{kind}: {name}", path, line)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
