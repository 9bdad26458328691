"""An answer as units: what each says, what it cites, and whether it states a fact, which needs a citation."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from agent.grounded_answers.layout import MARKS, Kind, pieces
from agent.grounded_answers.no_answer_text import contains_no_answer_text

_MARK = re.compile(rf"\s*{MARKS}")
_BEGUN = re.compile(r"[\[\u3010][\d\s,;\u2013-]*$")
_RANGE = re.compile(r"(\d{1,3})\s*[\u2013-]\s*(\d{1,3})")
_NUMBER = re.compile(r"\d{1,3}")
_IMAGE = re.compile(r"!\[([^\[\]\n]{0,300}+)\]\([^()\n]{0,2000}+\)")
_LINK = re.compile(r"(?<!!)\[([^\[\]\n]{1,300}+)\]\([^()\n]{0,2000}+\)")
_WRAPPED = re.compile(
    r'\s*(?:```(?:json)?\s*)?\{\s*"(?:answer|response|content|text|result|message|output)"\s*:\s*"', re.IGNORECASE
)
_WRAP_ENDS = re.compile(r'"\s*(?:,\s*"[^"]*"\s*:.*)?\}\s*(?:```)?\s*$', re.DOTALL)
_ONLY_MARKS = re.compile(
    rf"^\W*(?:sources?|citations?|references?|k\u00e4llor?|quellen?)?\W*(?:{MARKS}\W*)+$", re.IGNORECASE
)
_TRANSITION = re.compile(
    r"""^\W*(?:
    (?:hello|hi|hey|hej|hallo|sure|certainly|of\ course|absolutely|great\ question|good\ question|thanks?|thank\ you|
       okay|ok|yes|no|ja|nej|nein|tack)(?:[\s,]+(?:there|so\ much|very\ much|for\ (?:asking|your\ question)))?
    | (?:here|below|h\u00e4r)\s+(?:is|are|\u00e4r|follows?|f\u00f6ljer)\b.{0,80}
    | (?:in\ (?:summary|short|conclusion|brief)|to\ (?:summari[sz]e|sum\ up|conclude)|summary|conclusion|overall|
       sammanfattningsvis|kort\ sagt|kurz\ gesagt|zusammengefasst)
    | (?:i\ hope\ (?:this|that)\ helps|let\ me\ know\b.{0,80}|feel\ free\ to\b.{0,80}|please\ let\ me\ know\b.{0,80}|
       hoppas\ det\ hj\u00e4lper|s\u00e4g\ till\ om\b.{0,80})
    | (?:first|second|third|finally|next|then|moreover|however|therefore)
    )\W*$""",
    re.IGNORECASE | re.VERBOSE,
)
_ABSENT = re.compile(
    r"\b(?:documents?|passages?|sources?|texts?|context|excerpts?|dokument(?:en|et)?|k\u00e4ll(?:a|an|or|orna)|dokumente?n?|"
    r"quellen?)\b[^.;]{0,40}?\b(?:do(?:es)?\s+not|don['\u2019]t|doesn['\u2019]t|did\s+not|didn['\u2019]t|never|inte|nicht|keine?n?|inga?|"
    r"contain\s+no|has\s+no|have\s+no|say\s+nothing|says\s+nothing)\b"
    r"|\bnot\s+(?:stated|mentioned|specified|said|given|covered|found)\s+in\s+(?:the|these|any)\s+(?:documents?|passages?|sources?)\b"
    r"|\bthere\s+is\s+no\s+(?:information|mention)\b",
    re.IGNORECASE,
)
_STOPPED = re.compile(r"[.!?\u2026:\u3002\uff01\uff1f|`][\"'\u201d\u2019\u00bb)*_\]]*$")
ABSENT_CHARS = 240
"""A longer sentence says more than that something is not there."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of a unit up to its citations: what it says, the passages it cites, and the stop behind them."""

    text: str
    cites: tuple[int, ...] = ()
    tail: str = ""


@dataclass(frozen=True, slots=True)
class Unit:
    """A sentence, list item, table row, heading or piece of code of an answer. Units of one paragraph, list or table
    share a block."""

    kind: Kind
    block: int
    segments: tuple[Segment, ...]
    marker: str = ""
    ended: bool = True
    """False for a sentence at the end of the text without a stop: it may have been cut off."""

    @property
    def text(self) -> str:
        """What it says, without citations."""
        return " ".join(f"{segment.text}{segment.tail}" for segment in self.segments if segment.text or segment.tail)

    @property
    def cites(self) -> tuple[int, ...]:
        """The passages it cites, in order, once each."""
        return tuple(dict.fromkeys(number for segment in self.segments for number in segment.cites))

    @property
    def says_nothing(self) -> bool:
        """Whether it is a heading, a question, a greeting, a transition, or says that the documents don't say."""
        if self.kind in ("heading", "head", "rule"):
            return True
        if self.kind in ("row", "code"):
            return False
        text = self.text.strip()
        return text.endswith(("?", ":")) or bool(_TRANSITION.match(text)) or says_absent(text)


def says_absent(text: str) -> bool:
    """Whether a sentence only says that the documents don't say."""
    return len(text) <= ABSENT_CHARS and (contains_no_answer_text(text) or _ABSENT.search(text) is not None)


def read(answer: str, *, finished: bool = True) -> list[Unit]:
    """The units of an answer; of one that is not `finished`, without the last, which may go on.

    A citation that stands alone belongs to what stands before it; a sentence without one to the next citation of its
    paragraph or list, and a table's rows to the one behind the table or in the line above."""
    plain = _LINK.sub(r"\1", _IMAGE.sub(r"\1", unwrapped(answer)))  # pictures and links are a way out, and cite nothing
    found = pieces(plain)
    if not finished:
        # The last may go on; and what looks like the beginning of a citation will belong to the one before.
        begun = bool(found) and _BEGUN.match(plain[found[-1].start :]) is not None
        found = found[: -2 if begun else -1]
    units = [
        _unit(
            piece.kind, piece.block, plain[piece.start : piece.end], piece.marker, ended=piece.end < len(plain.rstrip())
        )
        for piece in found
    ]
    return _shared(_attached(units))


def unwrapped(answer: str) -> str:
    """What a model wrote as JSON that nobody asked for, whole or broken off, as the text it holds."""
    match = _WRAPPED.match(answer)
    if match is None:
        return answer
    inner = _WRAP_ENDS.sub("", answer[match.end() :])
    return inner.replace('\\"', '"').replace("\\n", "\n")


def _unit(kind: Kind, block: int, text: str, marker: str, *, ended: bool) -> Unit:
    marks = [] if kind == "code" else list(_MARK.finditer(text))
    if kind in ("row", "head"):  # citations in cells stand for the row
        cites = tuple(dict.fromkeys(number for match in marks for number in _cited(match[0])))
        return Unit(kind, block, (Segment(_MARK.sub("", text).strip(), cites),))
    segments: list[Segment] = []
    start = 0
    for match in marks:
        said = text[start : match.start()].strip()
        start = match.end()
        if segments and not _words(said):  # "[1][2]", "[1], [2]"
            cited = (*segments[-1].cites, *_cited(match[0]))
            segments[-1] = replace(segments[-1], cites=tuple(dict.fromkeys(cited)))
        else:
            segments.append(Segment(said, _cited(match[0])))
    rest = text[start:].strip()
    if not segments:
        segments.append(Segment(rest))
    elif rest and not _words(rest):
        segments[-1] = replace(segments[-1], tail=rest)
    elif rest:
        segments.append(Segment(rest, segments[-1].cites))
    stopped = bool(marks) or _STOPPED.search(rest) is not None
    return Unit(kind, block, tuple(segments), marker, ended or stopped or kind != "sentence")


def _words(text: str) -> bool:
    return any(letter.isalnum() for letter in text)


def _cited(mark: str) -> tuple[int, ...]:
    found: list[int] = []
    for first, last in _RANGE.findall(mark):
        found += range(int(first), min(int(last), int(first) + 20) + 1)
    found += [int(number) for number in _NUMBER.findall(_RANGE.sub(" ", mark))]
    return tuple(dict.fromkeys(found))


def _attached(units: Sequence[Unit]) -> list[Unit]:
    """Units that are nothing but citations, joined to what stands before them."""
    kept: list[Unit] = []
    for unit in units:
        shown = unit.text + "".join(f"[{number}]" for number in unit.cites)
        if unit.kind != "sentence" or not unit.cites or not _ONLY_MARKS.match(shown):
            kept.append(unit)
            continue
        block = kept[-1].block if kept else -1
        for at, one in enumerate(kept):
            if one.block == block and one.kind in ("row", "code", "sentence") and not one.cites:
                kept[at] = _citing(one, unit.cites)
    return kept


def _shared(units: Sequence[Unit]) -> list[Unit]:
    """Units without a citation take the next one's of their paragraph or list; rows take that of the line above."""
    done: list[Unit] = []
    for _, group in groupby(units, key=lambda unit: unit.block):
        block = list(group)
        above = done[-1].cites if done and block[0].kind in ("head", "row") else ()
        for at in reversed(range(len(block))):
            unit = block[at]
            later = block[at + 1].cites if at + 1 < len(block) else ()
            cites = later if unit.kind == "sentence" else above
            if cites and not unit.cites and not unit.says_nothing:
                block[at] = _citing(unit, cites)
        done += block
    return done


def _citing(unit: Unit, cites: tuple[int, ...]) -> Unit:
    return replace(unit, segments=tuple(replace(segment, cites=cites) for segment in unit.segments))
