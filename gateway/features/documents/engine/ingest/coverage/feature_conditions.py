"""Which conditions of `@supports` are true in each browser, for the independent reader of style sheets."""

import re

_TERM = re.compile(r"\(\s*(-{0,2}[a-z][\w-]*|--[\w-]+)\s*:\s*([^()]*(?:\([^()]*\)[^()]*)*)\)|selector\(\s*([^;{}]*)\)$")
_DEAD = re.compile(r"-(?:ms|o|khtml)-")
_SHARED = re.compile(
    r"(?:--[\w-]+|(?:inline-|min-|max-)?(?:width|height|size)|(?:grid|flex|gap|row-gap|column-gap|columns?|align|justify"
    r"|place|object|aspect-ratio|scroll-(?:snap|margin|behavior)|overflow|overscroll|inset|margin|padding|transform"
    r"|transition|animation|filter|backdrop-filter|clip-path|mask|mix-blend-mode|background|color|accent-color"
    r"|caret-color|appearance|user-select|contain(?:er)?|isolation|opacity|order|shape-outside|writing-mode|will-change"
    r"|touch-action|font-variation|font-feature|text-decoration|text-underline|border-radius|box-shadow|all|tab-size"
    r"|-webkit-(?:appearance|background-clip|box-orient|clip-path|line-clamp|mask|text-fill|text-stroke|transform))"
    r"(?:-[a-z-]+)?)"
)
"""Properties that all browsers have."""
_DISPLAY = re.compile(r"(?:inline|inline-)?(?:block|flex|grid|table|table-cell)?|contents|flow-root|list-item|none")
_POSITION = re.compile(r"sticky|fixed|absolute|relative|static")


def is_everywhere(condition: str, depth: int = 0) -> bool | None:
    """Whether all browsers fulfil a condition (without `@supports`, in lower case): true, false, or None if that is not
    certain."""
    condition = condition.strip()
    if depth > 8:
        return None
    by_word = {word: parts for word in (" or ", " and ") if len(parts := _split(condition, word)) > 1}
    if len(by_word) > 1:  # both together need brackets
        return None
    for word, parts in by_word.items():
        answers = [is_everywhere(part, depth + 1) for part in parts]
        decisive = word == " or "
        return decisive if decisive in answers else None if None in answers else not decisive
    if condition.startswith(("not ", "not(")):
        answer = is_everywhere(condition[3:], depth + 1)
        return None if answer is None else not answer
    if (term := _TERM.fullmatch(condition)) is not None:
        return _decide(term[1], (term[2] or "").strip()) if term[1] else ":-" not in term[3] or None
    if condition.startswith("(") and condition.endswith(")"):
        return is_everywhere(condition[1:-1], depth + 1)
    return None


def _decide(name: str, value: str) -> bool | None:
    if _DEAD.match(name) or _DEAD.match(value):
        return False
    if not value or value.startswith("-"):
        return None
    if name in {"display", "position"}:
        return True if (_DISPLAY if name == "display" else _POSITION).fullmatch(value) else None
    return True if _SHARED.fullmatch(name) else None


def _split(condition: str, word: str) -> list[str]:
    """The parts between a word that is in no brackets."""
    parts, depth, start = [], 0, 0
    for place, letter in enumerate(condition):
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if letter == " " and depth == 0 and condition.startswith(word, place) and place >= start:
            parts.append(condition[start:place])
            start = place + len(word)
    return [*parts, condition[start:]]
