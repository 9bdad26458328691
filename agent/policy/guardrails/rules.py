"""Finds attacks by rules: unambiguous wording in any of many languages, or syntax with no other use.

Rules match concepts (`lexicon.py`), so that one rule covers "ignore all previous instructions" in any language.
"""

# ruff: noqa: RUF001 - words and punctuation of many scripts are the point here

import re
from bisect import bisect_right
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from operator import itemgetter
from typing import Final

from agent.policy.guardrails.lexicon import CONCEPTS, find_concepts

MAX_RULE_WORDS: Final = 6
"""Maximum number of words between the first and the last concept of a rule."""
MAX_OPENING_WORDS: Final = 2
"""Words that may stand before the opening word of a sentence: "please", "and now"."""

_WORD = re.compile(r"\w+(?:['’\-]\w+)*|[.!?;:\n]")
_SENTENCE_ENDS: Final = frozenset(".!?;\n")


@dataclass(frozen=True, slots=True)
class Rule:
    """Concepts that are an attack if they occur together, the first one first."""

    name: str
    first_concept: str
    other_concepts: tuple[tuple[str, ...], ...]
    """One concept of each group must follow."""
    description: str
    must_open_sentence: bool = False
    """Whether it must be among the first words of a sentence: an order, not a report."""


RULES: Final = (
    Rule("override", "override", (("orders",), ("prior",)), "asks to set aside what was said before"),
    Rule(
        "override",
        "override",
        (("orders",), ("all",)),
        "asks to set aside what was said before",
        must_open_sentence=True,
    ),
    Rule("override", "override", (("all",), ("prior",)), "asks to set aside what was said before"),
    Rule("override", "override", (("orders",), ("you",)), "asks to set aside the assistant's orders"),
)
"""Further rules would raise false alarms: "show me the rules" and "act as a guide" are everyday requests."""

_FIRST_WORDS: Final = tuple(
    word for rule in {rule.first_concept for rule in RULES} for word in CONCEPTS[rule].replace("*", "").split()
)

_THIRD_PERSON: Final = frozenset(("its", "their", "his", "her", "ses", "leurs", "sus", "loro", "jego", "их", "его"))
"""Possessives of the third person: the orders of somebody else are only reported."""
_CODE_LISTING: Final = re.compile(r"```.*?(?:```|\Z)|`[^`\n]{1,200}`", re.DOTALL)

_CJK = re.compile(
    r"(?:忽略|无视|無視|忘记|忘掉|忘れ)[^。！？\n]{0,12}(?:指示|指令|规则|規則|命令|提示|要求|内容)"
    r"|(?:指示|指令|规则|規則|命令|プロンプト)[^。！？\n]{0,8}(?:忽略|无视|無視|忘れ)"
    r"|(?:이전|위의|모든)[^.!?\n]{0,12}(?:지시|명령|규칙)[^.!?\n]{0,8}(?:무시|잊어)"
)
_SYNTAX_RULES: Final = (
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
_SYNTAX_SIGN: Final = re.compile(r"[<\[#]")
"""Every match of these rules contains one of these signs. Most texts contain none."""


@dataclass(frozen=True, slots=True)
class RuleMatch:
    """A match of a rule."""

    name: str
    start: int
    end: int
    description: str


def find_rule_matches(text: str) -> Iterator[RuleMatch]:
    """Yields every match of a rule, the first one in each sentence."""
    yield from _find_concept_matches(text)
    for matches in _CJK.finditer(text) if not text.isascii() else ():
        yield RuleMatch("override", matches.start(), matches.end(), RULES[0].description)
    listings = [match.span() for match in _CODE_LISTING.finditer(text)] if "`" in text else []
    for name, pattern, says in _SYNTAX_RULES if _SYNTAX_SIGN.search(text) else ():
        for matches in pattern.finditer(text):
            before = bisect_right(listings, matches.start(), key=itemgetter(0))
            if before and matches.start() < listings[before - 1][1]:
                continue  # a code listing shows such tokens; the classifier still reads it
            yield RuleMatch(name, matches.start(), matches.end(), says)


def _find_concept_matches(text: str) -> Iterator[RuleMatch]:
    low = text.lower()
    if not any(map(low.__contains__, _FIRST_WORDS)):
        return
    recent: deque[tuple[int, int, tuple[str, ...]]] = deque()
    begin = 0
    for at, word in enumerate(_WORD.finditer(text)):
        if word[0] in _SENTENCE_ENDS:
            recent.clear()
            begin = at + 1
            continue
        if word[0].lower() in _THIRD_PERSON:
            recent.clear()
            continue
        ideas = find_concepts(word[0].lower())
        if not ideas:
            continue
        while recent and at - recent[0][0] > MAX_RULE_WORDS:
            recent.popleft()
        recent.append((at, word.start(), ideas))
        for rule in RULES:
            if any(idea in ideas for choice in rule.other_concepts for idea in choice):
                start = _find_rule_start(rule, recent, begin)
                if start is not None:
                    yield RuleMatch(rule.name, start, word.end(), rule.description)
                    recent.clear()
                    break


def _find_rule_start(rule: Rule, recent: deque[tuple[int, int, tuple[str, ...]]], begin: int) -> int | None:
    """The start of a match if all concepts occur in different words, or None."""
    for place, (at, start, ideas) in enumerate(recent):
        if rule.first_concept not in ideas or (rule.must_open_sentence and at - begin > MAX_OPENING_WORDS):
            continue
        rest = [later for number, (_, _, later) in enumerate(recent) if number > place]
        used: set[int] = set()
        for choice in rule.other_concepts:
            fits = next((n for n, later in enumerate(rest) if n not in used and any(i in later for i in choice)), None)
            if fits is None:
                break
            used.add(fits)
        else:
            return start
    return None
