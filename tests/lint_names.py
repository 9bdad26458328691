"""Checks names and prose for words of this project's former private language: `python -m tests.lint_names [PATH...]`.

Part of `make lint`. Prints one line for each violation and exits with 1 if there is any. `docs/glossary.md` lists the
words to use.
"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
CHECKED = ("agent", "gateway", "mcp_tools", "skills", "tests", "docs", "README.md", "SECURITY.md")

_MODULES_TEXT = (
    "purse places meters meters_redis gatekeeper awaited beginning attendance first_byte lines home wiring custody "
    "following fold outage ephemeral ephemeral_redis trees children shield screening asides protect flag site metering "
    "rewriting ready_plans compose tailor shelf hold workshop originals dense selfcheck not_said levels roots repairs "
    "asked lack wording stances picks asking proof settling hearing wishes adjusting acceptance vault sentinel carried "
    "spellings server_attendance server_curated server_views server_changes server_state hub_demand hub_said hub_mount "
    "logins pins utils helpers manager"
)
MODULES = frozenset(_MODULES_TEXT.split())
"""Names that no module may have. A former name that is a standard term elsewhere, such as `views`, is not listed."""

_WORDS_TEXT = (
    "purse custody gatekeeper attendance asides hearing begun said_otherwise taken_up while_heard fails_at_once "
    "heed obey selfcheck stances"
)
WORDS = frozenset(_WORDS_TEXT.split())
"""Words that may not be part of a function's, a class's or a parameter's name."""

_PARTICIPLES_TEXT = "taken told heard begun asked found said lent met"
PARTICIPLES = frozenset(_PARTICIPLES_TEXT.split())
"""Participles that may not be a whole name of a function or a class: a function is named by a verb and its object."""

VERBS = frozenset(("chunk", "claim", "download", "plan", "review", "score"))
"""Words that are the names of types here, and verbs."""

PHRASES = re.compile(
    r"\bwhoever\b|\bwhat is none\b|\blets? out of none\b|\bis told to\b|\bwhat shall be done\b|\bwhat is told\b"
    r"|\bfor what is no(?:ne)?\b|\bthere is none of\b|\bas it is told\b|\bwho is told\b|\bwhat was told\b",
    re.IGNORECASE,
)
"""Phrases that may not occur in docstrings, comments and documents."""


class Violation(NamedTuple):
    """A violation at a line of a file."""

    path: Path
    line: int
    message: str


def main(paths: Iterable[str]) -> int:
    """Prints every violation in the files of `paths`, or in the whole project. Returns the exit code."""
    violations = [found for path in list_files(paths or CHECKED) for found in check_file(path)]
    for path, line, message in violations:
        print(f"{path.relative_to(ROOT)}:{line}: {message}")
    return 1 if violations else 0


def list_files(paths: Iterable[str]) -> Iterator[Path]:
    """Yields the Python and Markdown files of these files and folders."""
    for name in paths:
        path = ROOT / name
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        yield from (file for file in files if is_checked(file))


def is_checked(file: Path) -> bool:
    """Whether a file holds names or prose, and is not this file."""
    return file.suffix in (".py", ".md") and file != Path(__file__).resolve()


def check_file(path: Path) -> Iterator[Violation]:
    """Yields the violations in one file."""
    text = path.read_text("utf-8")
    if path.suffix == ".md":
        yield from check_prose(path, 1, text)
        return
    if path.stem in MODULES:
        yield Violation(path, 1, f"module name {path.stem!r}")
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from check_name(path, node.lineno, node.name, is_definition=True)
            if not isinstance(node, ast.ClassDef) and "tests" not in path.parts:  # tests name their builders so
                yield from check_function(path, node)
        elif isinstance(node, ast.arg):
            yield from check_name(path, node.lineno, node.arg, is_definition=False)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield from check_prose(path, node.lineno, node.value.value)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield from check_prose(path, token.start[0], token.string)


def check_name(path: Path, line: int, name: str, *, is_definition: bool) -> Iterator[Violation]:
    """Yields the violations of one name."""
    plain = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower().strip("_")
    if is_definition and plain in PARTICIPLES:
        yield Violation(path, line, f"{name!r} is a participle on its own; name a function by a verb and its object")
    for word in WORDS:
        if f"_{word}_" in f"_{plain}_" and not plain.startswith("test_"):
            yield Violation(path, line, f"{name!r} contains {word!r}")


def check_function(path: Path, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[Violation]:
    """Yields a violation if the name is the name of the type that is returned, or its end.

    Such a name, as `_locked_error() -> CollectionLockedError`, is a noun. Other nouns are not found.
    """
    decorators = {ast.unparse(one).partition("(")[0].rpartition(".")[2] for one in node.decorator_list}
    if node.returns is None or decorators & {"property", "cached_property"} or node.name.strip("_") in VERBS:
        return
    words = split_words(node.name)
    for returned in re.findall(r"\b[A-Z]\w*", ast.unparse(node.returns)):
        kind = split_words(returned)
        if words == kind[-len(words) :] or [*words[:-1], words[-1].removesuffix("s")] == kind[-len(words) :]:
            yield Violation(path, node.lineno, f"{node.name!r} is what it returns ({returned}); begin with a verb")
            return


def split_words(name: str) -> list[str]:
    """The words of a name in snake or camel case."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().strip("_").split("_")


def check_prose(path: Path, line: int, text: str) -> Iterator[Violation]:
    """Yields the banned phrases in a text that begins at `line`."""
    for match in PHRASES.finditer(text):
        yield Violation(path, line + text.count("\n", 0, match.start()), f"phrase {match[0]!r}")


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
