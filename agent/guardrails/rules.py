"""Attacks that need no classifier: their wording is plain in any of many languages, or their form has no other use.

Rules read the ideas of words (`lexicon.py`), so one rule covers "ignore all previous instructions" in any language.
"""

# ruff: noqa: RUF001 - words and punctuation of many scripts are the point here

import re
from bisect import bisect_right
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from operator import itemgetter
from typing import Final

from agent.guardrails.lexicon import CONCEPTS, ideas_of

NEAR: Final = 6
"""Words between the first and the last idea of a rule, at most."""
OPENING: Final = 2
"""Words before one that still opens its sentence: "please", "and now"."""

_WORD = re.compile(r"\w+(?:['’\-]\w+)*|[.!?;:\n]")
_ENDS: Final = frozenset(".!?;\n")


@dataclass(frozen=True, slots=True)
class Rule:
    """Ideas that are an attack when they stand together, the first one first."""

    name: str
    first: str
    others: tuple[tuple[str, ...], ...]
    """One of each must follow."""
    says: str
    opens: bool = False
    """Whether it must be among the first words of a sentence: an order, not a report."""


RULES: Final = (
    Rule("override", "override", (("orders",), ("prior",)), "asks to set aside what was said before"),
    Rule("override", "override", (("orders",), ("all",)), "asks to set aside what was said before", opens=True),
    Rule("override", "override", (("all",), ("prior",)), "asks to set aside what was said before"),
    Rule("override", "override", (("orders",), ("you",)), "asks to set aside the assistant's orders"),
)
"""More would be false alarms: "show me the rules" and "act as a guide" are asked every day."""

_FIRST: Final = tuple(
    word for rule in {rule.first for rule in RULES} for word in CONCEPTS[rule].replace("*", "").split()
)

_THEIRS: Final = frozenset(("its", "their", "his", "her", "ses", "leurs", "sus", "loro", "jego", "их", "его"))
"""Whose orders they are: of somebody who is spoken of, and not spoken to."""
_CODE: Final = re.compile(r"```.*?(?:```|\Z)|`[^`\n]{1,200}`", re.DOTALL)

_CJK = re.compile(
    r"(?:忽略|无视|無視|忘记|忘掉|忘れ)[^。！？\n]{0,12}(?:指示|指令|规则|規則|命令|提示|要求|内容)"
    r"|(?:指示|指令|规则|規則|命令|プロンプト)[^。！？\n]{0,8}(?:忽略|无视|無視|忘れ)"
    r"|(?:이전|위의|모든)[^.!?\n]{0,12}(?:지시|명령|규칙)[^.!?\n]{0,8}(?:무시|잊어)"
)
_FORMS: Final = (
    (
        "control_tokens",
        re.compile(r"<\|(?:im_start|im_end|system|assistant|user|endoftext|eot_id|start_header_id)\|>|\[/?INST\]"
        r"|<</?SYS>>"),
        "holds the control tokens of a chat model",
    ),
    (
        "false_turn",
        re.compile(r"(?:^|\n)\s{0,9}(?:#{2,3} ?|\[|<)/?(?:system|system prompt|system message|instruction)(?:\]|>"
        r"|:)", re.IGNORECASE),
        "pretends to be a turn of the conversation",
    ),
    (
        "false_result",
        re.compile(r"</(?:tool|function)_?(?:results?|responses?|outputs?|calls?)>|<(?:tool|function)_calls?>"
        r"|</(?:system|user|assistant|untrusted|document|context)>\s{0,9}<(?:system|user|assistant|tool_call)\b",
        re.IGNORECASE),
        "pretends that the result of a tool ends, or that a tool is called",
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Match:
    """A rule that fits."""

    name: str
    start: int
    end: int
    says: str


def matches(text: str) -> Iterator[Match]:
    """Every rule that fits, at its first place in each sentence."""
    yield from _by_ideas(text)
    for found in _CJK.finditer(text):
        yield Match("override", found.start(), found.end(), RULES[0].says)
    shown = [match.span() for match in _CODE.finditer(text)] if "`" in text else []
    for name, pattern, says in _FORMS:
        for found in pattern.finditer(text):
            before = bisect_right(shown, found.start(), key=itemgetter(0))
            if before and found.start() < shown[before - 1][1]:
                continue  # a listing shows what such tokens look like; the classifier reads it all the same
            yield Match(name, found.start(), found.end(), says)


def _by_ideas(text: str) -> Iterator[Match]:
    low = text.lower()
    if not any(word in low for word in _FIRST):
        return
    recent: deque[tuple[int, int, tuple[str, ...]]] = deque()
    begin = 0
    for at, word in enumerate(_WORD.finditer(text)):
        if word[0] in _ENDS:
            recent.clear()
            begin = at + 1
            continue
        if word[0].lower() in _THEIRS:
            recent.clear()
            continue
        ideas = ideas_of(word[0].lower())
        if not ideas:
            continue
        while recent and at - recent[0][0] > NEAR:
            recent.popleft()
        recent.append((at, word.start(), ideas))
        for rule in RULES:
            if any(idea in ideas for choice in rule.others for idea in choice):
                start = _start(rule, recent, begin)
                if start is not None:
                    yield Match(rule.name, start, word.end(), rule.says)
                    recent.clear()
                    break


def _start(rule: Rule, recent: deque[tuple[int, int, tuple[str, ...]]], begin: int) -> int | None:
    """Where the rule begins to fit, if its ideas are all there and carried by different words."""
    for place, (at, start, ideas) in enumerate(recent):
        if rule.first not in ideas or (rule.opens and at - begin > OPENING):
            continue
        rest = [later for number, (_, _, later) in enumerate(recent) if number > place]
        used: set[int] = set()
        for choice in rule.others:
            fits = next((n for n, later in enumerate(rest) if n not in used and any(i in later for i in choice)), None)
            if fits is None:
                break
            used.add(fits)
        else:
            return start
    return None
