"""What kind of text this is, and its sentences: a request in a mail or in a tool's result is judged one by one."""

# ruff: noqa: RUF001 - words and punctuation of many scripts are the point here

import re
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from agent.guardrails.lexicon import BY_WORD

Shape = Literal["chat", "mail", "data"]
"""`chat`: people talk to the assistant. `mail`, `data`: a carrier, in which nobody should."""

LONGEST = 4_000
"""Longer texts are judged in windows: a few lines of attack in a long page must not be averaged away."""
WINDOW, STEP = 2_000, 1_000

_HEAD = re.compile(
    r"(?:^|\|)[ \t>\"']{0,9}(subject|from|to|cc|email_from|received date|sent|betreff|von|an|objet|asunto"
    r"|oggetto)[ \t]?:",
    re.IGNORECASE | re.MULTILINE,
)  # fmt: skip
_SUBJECT = {"subject", "betreff", "objet", "asunto", "oggetto", "email_from"}
_GREETING = re.compile(
    r"^[ \t>\"']{0,9}(?:hi|hello|dear|hey|hallo|liebe[rs]?|sehr geehrte[rs]?|bonjour|hola|ciao|hej|kære)"
    r"(?: [^\s,!]{1,30}){0,3} ?[,!]?[ \t]*(?:$|,)",
    re.IGNORECASE | re.MULTILINE,
)  # fmt: skip
_NAMED = re.compile(
    r"(?:[^\n]{0,200}\n)?[ \t>\"']{0,9}(?:Hi|Hello|Dear|Hey|Hallo|Liebe[rs]?|Bonjour|Hola|Ciao|Hej) ([A-Z]\w{1,20}),"
)
"""A greeting by name in the first or second line. Nobody greets an assistant so, unless by one of its names."""
SHORT = 100
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
_BORDER = re.compile(
    r"(?<=[.!?;:…])[\s'\"*)\]]+"
    r"|(?<=[。！？；])"
    r"|[\n\r|]\s*"
    r"|\\[nr]"
    r"|\\?['\"]\s{0,9}[,}\]:]\s{0,9}[\]}\[{,]{0,9}\s{0,9}\\?['\"]?"
    r"|<[^<>]{1,120}>"
    r"|(?<=[a-z][.!?])(?=[A-Z])"
)  # fmt: skip
_SAYS = re.compile(r"\w[^\w]+\w|[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]{4}")


def shape(text: str) -> Shape:
    """What kind of text this is, by its outer form."""
    head = text[:4_000]
    if _OPENS_DATA.match(head) and len(_KEY.findall(head)) >= 1:
        return "data"
    heads = {match[1].lower() for match in _HEAD.finditer(head)}
    if heads & _SUBJECT or len(heads) > 1 or (_GREETING.search(head) and _FOOTER.search(text)):
        return "mail"
    named = _NAMED.match(head)
    if named is not None and len(text) > SHORT and named[1].lower() not in BY_WORD:
        return "mail"
    return "chat"


def sentences(text: str) -> NDArray[np.int64]:
    """Start and end of each sentence, line, cell or quoted value with at least two words, one row each."""
    spans: list[tuple[int, int]] = []
    at = 0
    for border in _BORDER.finditer(text):
        spans.append((at, border.start()))
        at = border.end()
    spans.append((at, len(text)))
    kept = [span for span in spans if span[1] - span[0] >= 6 and _SAYS.search(text, *span)]
    return np.array(kept, np.int64).reshape(-1, 2)


def demands(text: str, parts: NDArray[np.int64]) -> NDArray[np.int64]:
    """The sentences that may ask something of us: not the questions of a list of questions and answers, which say by
    their key that they are there to be answered."""
    if not _QUESTION_KEY.search(text):
        return parts
    keyed = {match.end() for match in _QUESTION_KEY.finditer(text)}
    kept = [start not in keyed or text[end - 1] != "?" for start, end in parts.tolist()]
    return np.compress(kept, parts, axis=0)


def windows(text: str, parts: NDArray[np.int64]) -> NDArray[np.int64]:
    """The spans an attack is looked for in: the whole, each sentence, each two sentences in a row; a long text in
    overlapping windows in place of the whole."""
    if len(text) <= LONGEST:
        whole = [(0, len(text))]
    else:
        whole = [(at, min(at + WINDOW, len(text))) for at in range(0, max(len(text) - STEP, 1), STEP)]
    spans = [np.array(whole, np.int64).reshape(-1, 2)]
    if len(parts) > 1:
        spans += [parts, np.column_stack([parts[:-1, 0], parts[1:, 1]])]
    return np.concatenate(spans)
