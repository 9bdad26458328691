"""Leaves out of a result what gives orders to the machine that reads it.

For small models, which do whatever stands last in what they read: asked who praises the coffee, they answer HACKED
because a review says so. It makes such answers rarer and protects nothing: what a manipulated model can do is limited
by labels, approval and egress, which hold without it.
"""

import json
import re
from functools import lru_cache

from agent.core.json_walk import iter_leaves
from agent.policy.guardrails.injection import ADDRESSES_MACHINE, InjectionDetector
from agent.policy.guardrails.models import Finding, GuardrailsInput
from agent.text.json_entries import read_json_values

LEFT_OUT = "[left out: a part that gives orders to assistants]"
MAX_SCANNED = 50_000
"""Characters of a text that are searched: more than any prompt shows of a result."""
MAX_PARTS = 8
"""Parts that are left out of one text. The detector names the most suspicious one at a time."""
FOLLOWING_CHARS = 500
"""What follows an order in its paragraph says what it wants. It belongs to it up to the end of a sentence here."""
COMMENT_CHARS = 5_000
"""Before and behind an order: a comment that begins and ends within them is left out with the order."""
MIN_SCORES = {"addressed": 0.85, "attack": 0.85, "hidden": 0.5, "false_turn": 0.5, "control_tokens": 0.5}
"""Findings that count, and from which score on. Plain requests ("please send me the list") are what a mail is about."""
WRAPPED_CHARS = 60
"""Characters of a line that was broken to fit a width: a shorter one ends where its writer ended it."""
_COMMENT_BEGIN, _COMMENT_END = "<!--", "-->"
_WRAPPED_END = re.compile(r"[^.!?:;|>\s]\s*\Z")
_OWN_LINE = re.compile(r"\s*(?:[-*+>|#<\[{]|\d+[.):]|[\w.-]+:\s|$)")
"""The beginning of a line that goes on with nothing: entries of lists, headings, fields."""
_ROW = re.compile(r"\s*[^\s,;]+[,;\t]")
"""The beginning of a row; after a line of words, it is a word with a comma."""
_APART = "\n\f\n"
"""Between strings of JSON, and where an order was left out: no order goes on there."""
_SENTENCE_BEGIN = re.compile(r"[.!?\n](?=[^.!?\n]*\Z)\s*")
_SENTENCE_END = re.compile(r"[.!?](?=\s)")


@lru_cache(maxsize=128)
def find_orders(text: str) -> tuple[str, ...]:
    """The parts of a text that give orders to assistants, each from its sentence to the end of its paragraph. Of JSON,
    the strings are read."""
    values = read_json_values(text) if text.lstrip()[:1] in ("{", "[") else []
    leaves = [leaf for value in values for _, leaf in iter_leaves(value) if isinstance(leaf, str)]
    rest = (_APART.join(leaves) if values else text)[:MAX_SCANNED]
    orders: list[str] = []
    while len(orders) < MAX_PARTS and (finding := _find_order(rest)) is not None:
        start, end = _extend(rest, finding)
        orders.append(rest[start:end])
        rest = f"{rest[:start]}{_APART}{rest[end:]}"
    return tuple(orders)


def leave_out_orders(text: str) -> str:
    """The text with `LEFT_OUT` in place of each part that `find_orders` finds; the same text if there is none."""
    for order in find_orders(text):
        for form in (order, json.dumps(order, ensure_ascii=False)[1:-1], json.dumps(order)[1:-1]):
            text = text.replace(form, LEFT_OUT)
    return text


def _find_order(text: str) -> Finding | None:
    """An order that the detector names, the shortest one: it scores neighbouring sentences together, too."""
    request = GuardrailsInput(content=text, check_type="input_validation", metadata={"tainted": True})
    findings = [one for one in InjectionDetector().find(request) if _gives_orders(text, one)]
    return min(findings, key=lambda one: (one.end - one.start, one.start), default=None)


def _gives_orders(text: str, finding: Finding) -> bool:
    """Whether a finding counts. People ask one another to ignore the last mail; an assistant is asked by its name."""
    if finding.kind == "override":
        start, end = _extend(text, finding)
        return ADDRESSES_MACHINE.search(text, start, end) is not None
    return finding.score >= MIN_SCORES.get(finding.kind, 2)


def _extend(text: str, finding: Finding) -> tuple[int, int]:
    """Where an order begins and ends, with the rest of its sentence and what follows in the paragraph."""
    first = finding.start + len(text[finding.start : finding.end]) - len(text[finding.start : finding.end].lstrip())
    begin = _SENTENCE_BEGIN.search(text, 0, first)
    start = begin.end() if begin is not None else 0
    opened = text.rfind(_COMMENT_BEGIN, max(0, first - COMMENT_CHARS), first)
    closed = text.find(_COMMENT_END, opened, finding.end + COMMENT_CHARS) if opened >= 0 else -1
    if closed > finding.start and _APART not in text[opened:closed]:
        return opened, max(closed + len(_COMMENT_END), finding.end)
    end = max(finding.end, _find_line_end(text, max(start, finding.end - 1)))
    far = finding.end + FOLLOWING_CHARS
    if end > far and (sentence := _SENTENCE_END.search(text, far, end)) is not None:
        end = sentence.end()
    return min(start, first), end


def _find_line_end(text: str, place: int) -> int:
    """Where the line at a place ends, and with it the lines that it was broken into."""
    begin = text.rfind("\n", 0, place) + 1
    end = _find_break(text, place)
    is_row = _ROW.match(text, begin, end) is not None
    while end - begin >= WRAPPED_CHARS and end < len(text) and _WRAPPED_END.search(text, begin, end):
        begin, following = end + 1, _find_break(text, end + 1)
        if _OWN_LINE.match(text, begin, following) or (is_row and _ROW.match(text, begin, following)):
            break
        end = following
    return end


def _find_break(text: str, place: int) -> int:
    line = text.find("\n", place)
    return line if line >= 0 else len(text)
