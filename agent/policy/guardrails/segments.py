"""Classifies the shape of a text and splits it into sentences, because mails and tool results are judged sentence by
sentence.
"""

# ruff: noqa: RUF001 - words and punctuation of many scripts are the point here

import re
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from agent.policy.guardrails.lexicon import CONCEPTS_BY_WORD

Shape = Literal["chat", "mail", "data"]
"""`chat`: a person addresses the assistant. `mail` and `data`: carriers, in which nobody should."""

MAX_WHOLE_CHARS = 4_000
"""Longer texts are judged in windows, so that a few lines of attack in a long page are not averaged away."""
WINDOW, STEP = 2_000, 1_000

_MAIL_HEADER = re.compile(
    r"(?:^|\|)[ \t>\"']{0,9}(subject|from|to|cc|email_from|received date|sent|betreff|von|an|objet|asunto"
    r"|oggetto)[ \t]?:",
    re.IGNORECASE | re.MULTILINE,
)  # fmt: skip
_SUBJECT_HEADERS = {"subject", "betreff", "objet", "asunto", "oggetto", "email_from"}
_GREETING = re.compile(
    r"^[ \t>\"']{0,9}(?:hi|hello|dear|hey|hallo|liebe[rs]?|sehr geehrte[rs]?|bonjour|hola|ciao|hej|kære)"
    r"(?: [^\s,!]{1,30}){0,3} ?[,!]?[ \t]*(?:$|,)",
    re.IGNORECASE | re.MULTILINE,
)  # fmt: skip
_GREETING_BY_NAME = re.compile(
    r"(?:[^\n]{0,200}\n)?[ \t>\"']{0,9}(?:Hi|Hello|Dear|Hey|Hallo|Liebe[rs]?|Bonjour|Hola|Ciao|Hej) ([A-Z]\w{1,20}),"
)
"""A greeting by name in the first or second line, which nobody uses for an assistant except by one of its names."""
MIN_MAIL_CHARS = 100
_FOOTER = re.compile(
    r"\b(?:unsubscribe|sent from my|kind regards|best regards|view (?:this email )?in (?:your )?browser|(?:reply"
    r"|respond) to this "
    r"(?:e-?mail|message)|if you have any (?:further )?questions|the \w{1,30} team|mit freundlichen grüßen"
    r"|cordialement)\b",
    re.IGNORECASE,
)  # fmt: skip
_KEY = re.compile(r"['\"][\w -]{1,40}['\"]\s{0,3}:\s{0,3}[\[{'\"\d-]")
_QUESTION_KEY = re.compile(
    r"['\"](?:q|question|faq|query|frage|fråga|pregunta|domanda)['\"]\s{0,3}:\s{0,3}['\"]", re.IGNORECASE
)
_OPENS_DATA = re.compile(r"[\s'\"]{0,9}[\[{<]")
_BOUNDARY = re.compile(
    r"(?=[\s'\"*)\]|\\<A-Z]|(?<=[。！？；]))(?:"  # what any border begins with, so that most characters fail at once
    r"(?<=[.!?;:…])[\s'\"*)\]]+"
    r"|(?<=[。！？；])"
    r"|[\n\r|]\s*"
    r"|\\[nr]"
    r"|\\?['\"]\s{0,9}[,}\]:]\s{0,9}[\]}\[{,]{0,9}\s{0,9}\\?['\"]?"
    r"|<[^<>]{1,120}>"
    r"|(?<=[a-z][.!?])(?=[A-Z]))"
)  # fmt: skip
_TWO_WORDS = re.compile(r"\w[^\w]+\w|[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]{4}")


def classify_shape(text: str) -> Shape:
    """The kind of text by its outer shape."""
    head = text[:4_000]
    if _OPENS_DATA.match(head) and len(_KEY.findall(head)) >= 1:
        return "data"
    heads = {match[1].lower() for match in _MAIL_HEADER.finditer(head)}
    if heads & _SUBJECT_HEADERS or len(heads) > 1 or (_GREETING.search(head) and _FOOTER.search(text)):
        return "mail"
    named = _GREETING_BY_NAME.match(head)
    if named is not None and len(text) > MIN_MAIL_CHARS and named[1].lower() not in CONCEPTS_BY_WORD:
        return "mail"
    return "chat"


def split_segments(text: str) -> NDArray[np.int64]:
    """The start and end of each sentence, line, cell or quoted value with at least two words."""
    spans: list[tuple[int, int]] = []
    at = 0
    for border in _BOUNDARY.finditer(text):
        spans.append((at, border.start()))
        at = border.end()
    spans.append((at, len(text)))
    kept = [span for span in spans if span[1] - span[0] >= 6 and _TWO_WORDS.search(text, *span)]
    return np.array(kept, np.int64).reshape(-1, 2)


def select_demands(text: str, parts: NDArray[np.int64]) -> NDArray[np.int64]:
    """The segments that may ask something of the assistant.

    Questions under a key for questions, as in an FAQ, are there to be answered and left out.
    """
    if not _QUESTION_KEY.search(text):
        return parts
    keyed = {match.end() for match in _QUESTION_KEY.finditer(text)}
    kept = [start not in keyed or text[end - 1] != "?" for start, end in parts.tolist()]
    return np.compress(kept, parts, axis=0)


def build_windows(text: str, parts: NDArray[np.int64]) -> NDArray[np.int64]:
    """The spans in which attacks are searched: the whole text, each sentence, each pair of sentences.

    A long text has overlapping windows instead of the whole.
    """
    if len(text) <= MAX_WHOLE_CHARS:
        whole = [(0, len(text))]
    else:
        whole = [(at, min(at + WINDOW, len(text))) for at in range(0, max(len(text) - STEP, 1), STEP)]
    spans = [np.array(whole, np.int64).reshape(-1, 2)]
    if len(parts) > 1:
        spans += [parts, np.column_stack([parts[:-1, 0], parts[1:, 1]])]
    return np.concatenate(spans)
