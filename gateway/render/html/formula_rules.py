r"""Rules of the Markdown parser that find formulas: `\(x\)`, `\[x\]`, and `$x$` where it is one.

Models write `\[x\]` after a line of text, in a list item and within a sentence, as often as in a block of its own. What
stands between the marks is left alone: its stars and underscores mark nothing.
"""

import re
from collections.abc import Callable
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline
from mdit_py_plugins.dollarmath import dollarmath_plugin

from gateway.render.html.formulas import MAX_FORMULA_CHARS

_INTERRUPTED: Final = ["paragraph", "reference", "blockquote", "list"]
"""The blocks that end where a formula begins on a line of its own."""
_MATH: Final = re.compile(r"[\\^_=<>+]|^\s*[A-Za-z]\s*$")
"""What a formula has, and an escaped bracket such as `\\[1\\]` has not: a command, a sign, or a letter alone."""
_SYMBOL_CHARS: Final = 2
"""Up to this length, what stands between dollars is a symbol, as the `n` of `$n$th`."""
_InlineRule = Callable[[StateInline, bool], bool]


def add_formulas(parser: MarkdownIt) -> None:
    """Adds the rules to a parser of whole texts."""
    # `$5 and $6` are prices, not a formula: its marks touch what is between them, and no digit follows.
    dollarmath_plugin(parser, allow_labels=False, allow_space=False, allow_digits=False, double_inline=True)
    parser.inline.ruler.at("math_inline", _narrow(_find_rule(parser, "math_inline")))
    parser.inline.ruler.before("escape", "math_brackets", _read_brackets)
    add_formula_blocks(parser)


def add_formula_blocks(parser: MarkdownIt) -> None:
    r"""Adds the rule of `\[x\]` on lines of its own."""
    parser.block.ruler.before("fence", "math_brackets", _read_block, {"alt": _INTERRUPTED})


def _find_rule(parser: MarkdownIt, name: str) -> _InlineRule:
    names = parser.inline.ruler.get_active_rules()
    rule: _InlineRule = parser.inline.ruler.getRules("")[names.index(name)]
    return rule


def _narrow(rule: _InlineRule) -> _InlineRule:
    """The rule of `$x$` without the dollars of shells, languages and tickers."""

    def read(state: StateInline, silent: bool) -> bool:
        start = state.pos
        if not rule(state, True):
            return False
        end, state.pos = state.pos, start
        return _is_formula(state.src, start, end) and rule(state, silent)

    return read


def _is_formula(text: str, start: int, end: int) -> bool:
    """Whether dollars stand around a formula: not in front of one name and the next (`$HOME/bin:$PATH`), and not over
    the mark of a code span."""
    if text.startswith("$$", start):
        return True
    inner, before, after = text[start + 1 : end - 1], text[start - 1 : start], text[end : end + 1]
    is_plain = len(inner) > _SYMBOL_CHARS and "\\" not in inner
    return not ("`" in inner or before.isalnum() or (is_plain and (after.isalpha() or after in ("{", "_", "$"))))


def _read_brackets(state: StateInline, silent: bool) -> bool:
    """Reads a formula in brackets within a text."""
    text, start = state.src, state.pos
    closing = {"\\(": "\\)", "\\[": "\\]"}.get(text[start : start + 2])
    limit = min(state.posMax, start + MAX_FORMULA_CHARS)
    end = text.find(closing, start + 2, limit) if closing is not None else -1
    formula = text[start + 2 : end] if end >= 0 else ""
    if closing is None or not formula.strip() or (closing == "\\]" and _MATH.search(formula) is None):
        return False
    if not silent:
        token = state.push("math_inline" if closing == "\\)" else "math_inline_double", "math", 0)
        token.content, token.markup = formula, text[start : start + 2]
    state.pos = end + 2
    return True


def _read_block(state: StateBlock, start_line: int, end_line: int, silent: bool) -> bool:
    """Reads a formula whose first mark begins a line, and whose last one ends a line of the same block."""
    begin = state.bMarks[start_line] + state.tShift[start_line]
    if state.is_code_block(start_line) or not state.src.startswith("\\[", begin):
        return False
    end = state.src.find("\\]", begin + 2, begin + MAX_FORMULA_CHARS)
    line = start_line
    while end >= 0 and state.eMarks[line] <= end:
        line += 1
        if line >= end_line or (state.sCount[line] < state.blkIndent and not state.isEmpty(line)):
            return False
    if end < 0:
        return False
    if state.src[end + 2 : state.eMarks[line]].strip():
        return False
    if not silent:
        token = state.push("math_block", "math", 0)
        inner = state.getLines(start_line, line + 1, state.blkIndent, False).strip()
        token.block, token.content, token.map = True, inner[2:-2], [start_line, line + 1]
        token.markup = "\\["
    state.line = line + 1
    return True
