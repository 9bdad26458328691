"""Which doubts a person settles in words, where rules carry a conversation: "doubt 3 is fine", "never mind the
languages". Pure.

What blocks is settled only by somebody who means it: by its number, by what it is about, or as "the blocking one". A
word of assent to everything leaves it open."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from agent.builder.records import Doubt

MOST_READ = 300
"""Characters of a clause that may settle something; who says more has something else in mind."""
SHOWN = 80
"""Characters of a doubt where it is asked about."""


class Settlement(NamedTuple):
    """What a message settles: the doubts, the clauses that settle none, and what to ask where it is not clear which
    doubt is meant."""

    doubts: tuple[Doubt, ...] = ()
    unread: tuple[str, ...] = ()
    question: str = ""


_NOUN = r"(?:doubts?|issues?|uncertaint(?:y|ies)|problems?|points?|warnings?|ones?|things?)"
ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
"""Places in a list, in words."""
_FINE = (
    r"(?:all |quite |perfectly |totally )?(?:fine|ok|okay|alright|all right|acceptable|accepted|expected|intended|"
    r"known|settled|resolved|good enough|no problem|not a problem|no issue|not an issue|unimportant|not important|"
    r"irrelevant)"
)
_ACCEPT = (
    r"(?:i |we )?(?:accept|confirm|acknowledge|settle|resolve|ignore|dismiss|waive|never ?mind|forget(?: about)?|"
    r"know(?: about)?|(?:do not|don't) (?:mind|care about|worry about|need)|can (?:live with|ignore|accept))"
)
_PATTERNS = tuple(
    re.compile(rf"(?:{pattern})(?: with me| by me| for me| for us| to me)?", re.IGNORECASE)
    for pattern in (
        rf"(?P<verb>{_ACCEPT}) (?P<what>.+?)",
        r"(?:i am|i'm|we are|we're) (?:fine|ok|okay|happy|aware)(?: with| of) (?P<what>.+?)",
        rf"(?P<what>.+?) (?:is|are|may stay|can stay)(?: {_FINE})",
        r"(?P<what>.+?) (?:can|may|should) be (?:accepted|ignored|dismissed|settled|left)",
        r"(?P<what>.+?) (?:does not|doesn't|do not|don't) (?:matter|bother me|bother us)",
        r"(?P<what>.+?):? (?:fine|ok|okay|accepted)",
        r"(?:nobody|no one) (?:needs|reads|wants) (?P<what>.+?)",
    )
)
_NUMBER = re.compile(rf"(?:{_NOUN}|numbers?|no\.?)? ?#?(?P<number>\d{{1,3}})", re.IGNORECASE)
_ORDINAL = re.compile(rf"(?P<ordinal>{'|'.join(ORDINALS)}|last)(?: {_NOUN})?", re.IGNORECASE)
_SEVERITY = re.compile(rf"(?P<severity>blocking|notable|info)(?: {_NOUN})?", re.IGNORECASE)
_ALL = re.compile(
    rf"(?:all|everything|them all|all of (?:them|these|those|it)|(?:all )?(?:other |remaining |open |of the )*"
    rf"{_NOUN}|rest)",
    re.IGNORECASE,
)
_IT = re.compile(r"(?:it|this|that)", re.IGNORECASE)
_THE = re.compile(r"(?:the|all the|all of the|these|those|this|that|my|your|about|with)\s+", re.IGNORECASE)
_AND = re.compile(r"\s*,\s*(?:and |or )?|\s+(?:and|or|plus)\s+", re.IGNORECASE)
_LEADING = re.compile(
    r"(?:please|ok|okay|yes|yeah|well|so|now|just|actually|fine|but|and|also|then)(?!\w)[\s,;:.!]*",
    re.IGNORECASE,
)
_ASKS = re.compile(r"[^?]*\?|\s*(?:please\W+)?(?:can|could|will|would) you\b", re.IGNORECASE)
"""A question; who asks whether we can resolve something has not settled it."""
_WORD = re.compile(r"[^\W_]+")
_DENIES = re.compile(
    r"\b(?:no|not|never|none|nothing|neither|nor|cannot|hardly|only|but|except|\w+n't)\b"
    r"|^(?:is|are|was|were|does|did|should|shall)\b",
    re.IGNORECASE,
)
"""A denial, or a question without its mark. Doubts hold such words too ("types that are not read"): "the types are not
ok" would be taken for their name."""
_EMPTY = frozenset({
    "a", "an", "the", "of", "that", "which", "who", "with", "in", "to", "be", "are", "is", "they", "them", "one",
    "ones", "file", "files", "document", "documents", "page", "pages", "doubt", "doubts", "issue", "issues", "problem",
    "several", "different", "many", "some", "few", "about", "there", "these", "those", "have", "has", "having",
    "it", "its", "this", "i", "we", "you", "he", "she", "so",
})  # fmt: skip
"""Words that tell no doubt from another."""
_SAME = {
    "encrypted": "password", "locked": "password", "protected": "password", "passwords": "password",
    "corrupt": "damaged", "corrupted": "damaged", "broken": "damaged", "truncated": "damaged", "defective": "damaged",
    "scans": "scanned", "ocr": "scanned", "pictures": "scanned", "empty": "text", "textless": "text",
    "failures": "failed", "failing": "failed", "unreadable": "failed", "fail": "failed", "failure": "failed",
    "unsupported": "types", "unread": "types", "rules": "rules", "code": "program", "multilingual": "languages",
}  # fmt: skip
"""What people call a thing, and the word that doubts have for it."""


STEM = 4
"""Letters by which a word is known at least."""
_RESOLVES = re.compile(r"settle|resolve", re.IGNORECASE)
_Numbered = tuple[int, Doubt]


def numbered(doubts: Sequence[Doubt]) -> list[_Numbered]:
    """The open doubts with the numbers they are called by; of two that say the same the first. A doubt keeps its
    number for as long as the conversation lasts: what is settled leaves a gap."""
    shown: dict[tuple[str, str], _Numbered] = {}
    for number, one in enumerate(doubts, start=1):
        if not one.resolved:
            shown.setdefault((one.severity, one.message), (number, one))
    return list(shown.values())


def settles(request: str, unread: Sequence[str], doubts: Sequence[Doubt]) -> Settlement:
    """What a message settles of these doubts. `unread` are the clauses of it that are read as nothing else; where they
    are the whole of it, it is looked at as one first, for commas stand also between numbers."""
    clauses, shown = tuple(unread), numbered(doubts)
    if _ASKS.match(request) or not clauses or not shown:
        return Settlement(unread=clauses)
    if sum(map(len, clauses)) > len(request) // 2 and _meant(request, shown) is not None:
        clauses = (request,)
    found: list[Doubt] = []
    left = []
    for clause in clauses:
        meant = _meant(clause, shown)
        if meant is None:
            left.append(clause)
        elif meant.unsure:
            listed = "; ".join(f"#{number} {one.message[:SHOWN]}" for number, one in meant.unsure)
            return Settlement(unread=(), question=f"Which doubt do you mean: {listed}? Nothing was settled.")
        else:
            found += [one for _, one in meant.sure]
    said = {(one.severity, one.message) for one in found}
    return Settlement(
        tuple(one for one in doubts if not one.resolved and (one.severity, one.message) in said), tuple(left)
    )


class _Meant(NamedTuple):
    """The doubts that a clause means; `unsure` are those of which it may mean any one."""

    sure: Sequence[_Numbered]
    unsure: Sequence[_Numbered] = ()


def _meant(clause: str, shown: Sequence[_Numbered]) -> _Meant | None:
    """The doubts that a clause settles; None for one that settles nothing."""
    text = " ".join(clause.replace("\u2019", "'").split())
    if len(text) > MOST_READ:
        return None
    while (more := _LEADING.match(text)) is not None:
        text = text[more.end() :]
    text = re.sub(r"(?:,? (?:please|then|too|thanks|thank you|for now))*[\s.!]*$", "", text, flags=re.IGNORECASE)
    for pattern in _PATTERNS:
        read = pattern.fullmatch(text)
        if read is None:
            continue
        verb = read.groupdict().get("verb")
        if verb is not None and _RESOLVES.search(verb) and _IT.fullmatch(read["what"]):
            return _the_one(shown)
        meant = [_part(part, shown) for part in _AND.split(read["what"])]
        parts = [one for one in meant if one is not None]
        if len(parts) != len(meant):
            return None  # another way to read it would find in "doubt 8 is", of which there is none, "8 files failed"
        unsure = next((one.unsure for one in parts if one.unsure), ())
        return _Meant([one for part in parts for one in part.sure], unsure)
    return None


def _part(said: str, shown: Sequence[_Numbered]) -> _Meant | None:
    """The doubts that "the second", "#4", "the languages" or "all of them" mean."""
    text = said.strip(" \"'`")
    while (more := _THE.match(text)) is not None:
        text = text[more.end() :]
    if (read := _NUMBER.fullmatch(text)) is not None:
        return _some([one for one in shown if one[0] == int(read["number"])])
    if (read := _ORDINAL.fullmatch(text)) is not None:
        word = read["ordinal"].lower()
        place = -1 if word == "last" else ORDINALS.index(word)
        return _Meant([shown[place]]) if place < len(shown) else None
    if (read := _SEVERITY.fullmatch(text)) is not None:
        return _some([one for one in shown if one[1].severity == read["severity"].lower()])
    if _ALL.fullmatch(text) is not None:
        return _some([one for one in shown if not one[1].blocks])
    if _DENIES.search(text) is not None:
        return None
    wanted = [_SAME.get(word, word) for word in map(str.lower, _WORD.findall(text)) if word.lower() not in _EMPTY]
    is_told = not all(map(str.isdigit, wanted))  # "2 of them" are two, and not "2 of 19 files ..."
    found = [one for one in shown if is_told and all(_holds(one[1].message, word) for word in wanted)]
    return _Meant(found) if len(found) == 1 else (_Meant((), found) if found else None)


def _the_one(shown: Sequence[_Numbered]) -> _Meant | None:
    """What "resolve it" means: the one that blocks, for it is what was spoken of."""
    blocking = [one for one in shown if one[1].blocks]
    return _Meant((), blocking) if len(blocking) > 1 else _some(blocking)


def _some(found: Sequence[_Numbered]) -> _Meant | None:
    return _Meant(found) if found else None


def _holds(message: str, word: str) -> bool:
    """Whether a word of the message begins as this one does; in endings people differ."""
    stem = word if len(word) < STEM else word[: max(STEM, len(word) - 2)]
    return any(one.startswith(stem) for one in map(str.lower, _WORD.findall(message)))
