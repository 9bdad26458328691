"""Reads the addresses, names, labels and tags of an answer, for `links.py`: to their end, or as far as any reader does.

The functions return None where the answer, which arrives in pieces, has to go on first.
"""

import html
import re
from typing import Final

from agent.policy.guardrails.live_names import TOP_LEVEL_DOMAIN

LABEL, ADDRESS, TAG = 1_000, 4_000, 2_000
"""A longer label, address or tag is not read to its end: it is broken (the `<` of the tag is escaped)."""
MAX_NAME: Final = 255
"""Characters before the first dot of a host that are looked at: DNS allows no longer name."""
_NO_NAME: Final = (
    r"\s\x00-\x20\x7f-\x9f(),<>@\[-\]|\xab\xbb\u2018-\u201f\u2039\u203a\u3001\u3002\uff08\uff09\uff0c\uff1a"
)
_MAILBOX_CHAR: Final = rf"[^{_NO_NAME}]"
_BEFORE_MAILBOX: Final = re.compile(rf"{_MAILBOX_CHAR}*")
"""Backwards: what may belong to the name before an `@`; linkify-it 6 takes the signs of RFC 5322."""
_BEFORE_HOST: Final = re.compile(rf"[^{_NO_NAME}!#%'*/?`{{}}]*")
"""Backwards: what may belong to the first label of a host."""
MAX_DEPTH: Final = 32
"""Brackets within brackets of an address: CommonMark allows readers to count no further."""
_LABEL: Final = r"[^\s\x00-\x20!-#%-*,./:;<>?@\[-\]_`{-}\x7f-\x9f\xab\xbb\u2018-\u201f\u2039\u203a]"
_HOST: Final = re.compile(rf"(?P<host>{_LABEL}+(?:\.{_LABEL}+)+)(?P<rest>[/?#]|:\d)?")
_MAILBOX: Final = re.compile(rf"{_MAILBOX_CHAR}+@{_HOST.pattern}")
_BARE_MAILBOX: Final = re.compile(r"[\w.+~-]+@")
_SIGNS: Final = re.compile(r"[$+=^~]")
_ANY_DOMAIN: Final = re.compile(r"[^\W_]*[^\W\d_][^\W_]*|xn--.+|[^\w-]+")
_NAME_RUN: Final = re.compile(rf"(?:{_MAILBOX_CHAR}|@)*")
_BOUND: Final = re.compile(r"[\s()\[\]<>\"'`\u201c\u201d|\\^{}]")
"""Where an address ends, brackets within it excepted."""
_RUN_END: Final = re.compile(r"[ \t\r\n\x00\x0b\x0c<]")
"""Where an address ends at the latest. GitHub's Markdown takes quotes and brackets into one."""
_USER: Final = re.compile(r"(?:(?:https?|ftp):)?//[^\s@/\[\]()]*@?", re.IGNORECASE)
"""The name before the `@` of an address, into which linkify-it takes a `<` too, or what may become one."""
_LABEL_MARK: Final = re.compile(r"[\[\]`<\\$]|\n\n")
"""What closes a label, and what may hide that from some readers: code, tags, escapes, formulas."""
_TARGET_GAP: Final = re.compile(r"[\s>]*")
"""What may stand before an address on the next line, in a quote too."""
_TARGET: Final = re.compile(r"\\.|[()]|[^\S\t]", re.DOTALL)
_BRACKETED: Final = re.compile(r"\\.|[>\n]", re.DOTALL)
_TAG_MARK: Final = re.compile(r"[>\"']")
_GAP: Final = re.compile(r"\s*")
_VALUE_END: Final = re.compile(r"[\s>]")


def match_name(text: str, at: int) -> re.Match[str] | None:
    """The e-mail address or the host that the mark at `at`, a dot or an `@`, is in, with what begins its path."""
    mailbox = _MAILBOX.match(text, _find_start(_BEFORE_MAILBOX, text, at), at + MAX_NAME)
    if text[at] == "@" or (mailbox is not None and is_linked(mailbox)):
        return mailbox
    start = _find_start(_BEFORE_HOST, text, at)
    start = max(start, *(text.rfind(mark, start, at) + 1 for mark in ':;&_"'))
    # A host does not begin within a path or another name, but behind a sign.
    for sign in _SIGNS.finditer(text, start, at):
        if start < sign.start() and _begins_host(text, start):
            break
        start = sign.end()
    return _HOST.match(text, start, at + MAX_NAME) if start < at and _begins_host(text, start) else None


def _find_start(pattern: re.Pattern[str], text: str, at: int) -> int:
    """Where a name that is at `at` begins, without quotation marks."""
    before = pattern.match(text[max(at - MAX_NAME, 0) : at][::-1])
    start = at - (before.end() if before is not None else 0)
    return start + len(text[start:at]) - len(text[start:at].lstrip("\"'`*"))


def _begins_host(text: str, start: int) -> bool:
    before = text[max(start - MAX_NAME, 0) : start]
    is_emphasis = before.endswith("_") and not before.rstrip("_")[-1:].isalnum()
    return text[start] not in ".-" and (is_emphasis or before[-1:] not in ("/", "@", "_"))


def may_go_on(text: str, at: int) -> bool:
    """Whether a name reaches the end of a text."""
    run = _NAME_RUN.match(text, at, at + MAX_NAME)
    return run is not None and run.end() == len(text)


def find_bare_start(name: re.Match[str]) -> int:
    """Where a name begins, behind what only some readers take into an e-mail address: `{email:'anna@x.example'}`."""
    bare = _BARE_MAILBOX.search(name[0])
    return name.start() + (bare.start() if bare is not None else 0)


def is_linked(name: re.Match[str]) -> bool:
    """Whether some renderer links a name. A registered domain alone carries nothing."""
    labels = name["host"].split(".")
    pattern = _ANY_DOMAIN if "@" in name[0] else TOP_LEVEL_DOMAIN
    for place, label in enumerate(labels[1:], start=2):
        domain = pattern.match(label)
        # A mark behind it, as a quote, ends the host for some.
        is_end = domain is not None and not label[domain.end() : domain.end() + 1].isalnum()
        if domain is not None and is_end and (place == len(labels) or domain.end() < len(label)):
            return pattern is _ANY_DOMAIN or place > 2 or name["rest"] is not None
    return False


def names_host(address: str) -> bool:
    """Whether an address that begins with `//` names a host: no reader links one of a single label but `localhost`."""
    authority = re.split(r"[/?#]", html.unescape(address[2:]).replace("\\", ""), maxsplit=1)[0].lower()
    return "." in authority or "localhost" in authority


def find_ends(text: str, at: int, *, final: bool) -> tuple[int, int] | None:
    """Where an address ends for most readers and for those that read the most; None if more text is needed."""
    user = _USER.match(text, at, at + ADDRESS)
    behind = user.end() if user is not None else at
    run = _RUN_END.search(text, behind if text[behind - 1 : behind] == "@" else at, at + ADDRESS)
    if not final and len(text) - at < ADDRESS and (run is None or behind == len(text)):
        return None
    last = run.start() if run is not None and behind < at + ADDRESS else min(len(text), at + ADDRESS)
    depth = 0
    for match in _BOUND.finditer(text, at, last):
        if match[0] in "([":
            depth += 1
        elif match[0] not in ")]" or not depth:
            return match.start(), last
        else:
            depth -= 1
    return last, last


def find_label_end(text: str, opening: int) -> int | None:
    """The bracket that closes the one at `opening`; None if not yet, 0 if readers may differ about it."""
    depth = 0
    for match in _LABEL_MARK.finditer(text, opening, opening + LABEL):
        if match[0] not in "[]":
            return 0
        depth += 1 if match[0] == "[" else -1
        if not depth:
            return match.start()
        if depth > MAX_DEPTH:
            return 0
    return None if len(text) < opening + LABEL else 0


def read_target(text: str, at: int, *, final: bool) -> tuple[str, int] | None:
    """The address behind the `(` or `:` at `at`, on the next line too, and its end; None if more text is needed.

    Of one that is not read to its end, that is `ADDRESS` characters behind.
    """
    limit = at + ADDRESS
    gap = _TARGET_GAP.match(text, at + 1, limit)
    start = gap.end() if gap is not None else at + 1
    pattern = _BRACKETED if text[start : start + 1] == "<" else _TARGET
    depth = 0
    for match in pattern.finditer(text, start, limit):
        if match[0] == "(" and depth == MAX_DEPTH:
            return text[start : match.start()], limit
        if match[0] == "(":
            depth += 1
        elif match[0] == ")" and (depth or text[at] == ":"):
            depth -= 1
        elif match[0][0] != "\\":
            return text[start : match.start()].removeprefix("<"), match.start() + (match[0] in ")>")
    if not final and len(text) < limit:
        return None
    return text[start:limit].removeprefix("<"), min(limit, len(text))


def read_value(text: str, at: int, *, final: bool) -> str | None:
    """The value of an attribute, or as much of it as is looked at; None if more text is needed."""
    limit = at + LABEL
    gap = _GAP.match(text, at, limit)
    start = gap.end() if gap is not None else at
    quote = text[start : start + 1]
    begin = start + (quote in ("'", '"'))
    end = text.find(quote, begin, limit) if begin > start else _find(_VALUE_END, text, start, limit)
    if end < 0 and not final and len(text) < limit:
        return None
    return text[begin : end if end >= 0 else limit]


def _find(pattern: re.Pattern[str], text: str, start: int, end: int) -> int:
    match = pattern.search(text, start, end)
    return match.start() if match is not None else -1


def find_tag_end(text: str, at: int) -> int | None:
    """The end of a tag as browsers read it, outside quotes; a comment ends with `-->`.

    Returns None if the tag is not complete yet, and -1 if it is too long.
    """
    limit = at + TAG
    late = None if len(text) < limit else -1
    if text.startswith("<!--", at):
        end = text.find("-->", at, limit)
        return end + 2 if end >= 0 else late
    quote = ""
    for match in _TAG_MARK.finditer(text, at + 1, limit):
        char = match[0]
        if quote:
            quote = "" if char == quote else quote
        elif char == ">":
            return match.start()
        elif text[match.start() - 1] in "= \t\n":
            quote = char
    return late
