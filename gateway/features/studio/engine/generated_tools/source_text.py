"""Rules for the text of a generated tool, so that a person who reviews it sees what will run.

Python runs what an editor does not show: characters without a shape, names that look like others (CVE-2021-42694), text
in another order than it is shown in (CVE-2021-42574), and code far right of the screen.
"""

import ast
import io
import tokenize
import unicodedata
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from gateway.features.studio.engine.generated_tools.source_rules import CodeFault

MAX_COLUMNS: Final = 200
"""Characters of a line; what is beyond them is cut off or scrolled out of sight."""
STAGE: Final = "visibility"
_SHOWN_CONTROLS: Final = frozenset("\n\t")
_BLANKS: Final = frozenset("\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\u034f\u180b\u180c\u180d\u180f")
"""Letters and symbols that are drawn as nothing, such as the Hangul fillers."""


def check_visibility(code: str) -> list[CodeFault]:
    """The lines that do not show what they hold."""
    lines = code.replace("\r\n", "\n").split("\n")
    problems = [(number, problem) for number, line in enumerate(lines, start=1) for problem in _find_problems(line)]
    if not code.isascii():
        problems += _find_name_problems(code)
    return [CodeFault(STAGE, f"line {number}: {problem}") for number, problem in dict.fromkeys(sorted(problems))]


def _find_name_problems(code: str) -> Iterator[tuple[int, str]]:
    """Yields the names that are not spelled in ASCII, as PEP 8 has it: a letter of another alphabet looks like one of
    `score`, and makes it another name. Tokens have names as they are written; the tree has those in f-strings too.
    """
    names: list[tuple[int, str]] = []
    with suppress(SyntaxError, ValueError, RecursionError, MemoryError, tokenize.TokenError):
        tokens = tokenize.generate_tokens(io.StringIO(code).readline)
        names += [(token.start[0], token.string) for token in tokens if token.type == tokenize.NAME]
        names += [named for node in ast.walk(ast.parse(code)) for named in _iter_tree_names(node)]
    for line, name in names:
        if not name.isascii():
            letters = ", ".join(dict.fromkeys(f"{char!a} ({_name(char)})" for char in name if not char.isascii()))
            yield line, f"the name {name!a} has letters that look like others: {letters}; spell it in ASCII"


def _iter_tree_names(node: ast.AST) -> Iterator[tuple[int, str]]:
    """Yields the names that a node of an expression has, with its line."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name) | ast.keyword(arg=str(name)):
            yield node.lineno, name
        case _:
            return


def _find_problems(line: str) -> Iterator[str]:
    hidden = list(dict.fromkeys(char for char in line if _is_invisible(char)))
    if hidden:
        char_list = ", ".join(f"{char!a} ({_name(char)})" for char in hidden[:5])
        yield f'it holds characters that nobody sees: {char_list}; write them as escapes, such as "\\u200d"'
    if len(line) > MAX_COLUMNS:
        yield f"it has {len(line):,} characters; at most {MAX_COLUMNS} are shown: break the line"


def _is_invisible(char: str) -> bool:
    if char.isascii():
        return not char.isprintable() and char not in _SHOWN_CONTROLS
    kind = unicodedata.category(char)
    return kind in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs") or char in _BLANKS or _is_variation_selector(char)


def _is_variation_selector(char: str) -> bool:
    return "\ufe00" <= char <= "\ufe0f" or "\U000e0100" <= char <= "\U000e01ef"


def _name(char: str) -> str:
    return unicodedata.name(char, f"U+{ord(char):04X}").lower()
