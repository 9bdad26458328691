"""Numbers that name something and state nothing: steps, sections, tables, rows, standards, "24/7", "365 days a year".

Where the evidence numbers things of the same kind, such a number is a claim like any other: "Section 14" of a contract
with sections 9 and 11. So are lines, pages, rows, ports and codes where it names a number of that length: "exit code
139" beside `exit=137`, not beside "137 users".
"""

import re
from collections.abc import Iterator
from functools import cached_property
from http import HTTPStatus
from typing import Final

from agent.text.numbers import NumberMention
from agent.text.units import UNITS

PAGE_WORDS: Final = "page pages pp seite seiten sida sidor sidan slide slides folie folien bild diapositive"
"""The words for a page, in English, German, Swedish and French."""
_KINDS: Final = (
    "step steps schritt schritte steg étape étapes phase phasen phases fas faser",
    "question questions frage fragen fråga frågor task tasks aufgabe aufgaben uppgift tâche tâches option options "
    "optionen alternativ variante variantes example examples beispiel beispiele exempel exemple exemples tip tipp tips",
    "section sections sec sect chapter chapters clause clauses paragraph paragraphs article articles art annex "
    "appendix abschnitt abschnitte kapitel ziffer ziffern klausel absatz abs artikel anlage anhang punkt punkte teil "
    "avsnitt punkter paragrafen paragraf stycke bilaga bilagor del chapitre chapitres paragraphe point annexe alinéa "
    "partie part §",
    "table tables tabelle tabellen tabell tabeller tableau tableaux figure figures fig abbildung abb figur figurer "
    "chart diagram diagramm graphique",
    PAGE_WORDS,
    "line lines row rows column columns cell zeile zeilen spalte spalten reihe reihen rad rader raderna "
    "kolumn kolumner ligne lignes colonne colonnes rangée",
    "iso iec din rfc ieee nist ansi gdpr dsgvo rgpd soc pci dss",
    "windows office ios ipados macos android ubuntu debian python java excel",
    "http https status statuscode",
    "error errors code codes fehler fehlercode felkod fel erreur",
    "port ports",
    "top",
)
"""The words for each kind of label, in English, German, Swedish and French."""
_KIND_OF: Final = {word: kind for kind, words in enumerate(_KINDS) for word in words.split()}
_LINES, _HTTP = _KIND_OF["line"], _KIND_OF["http"]
_STATUSES: Final = frozenset(map(int, HTTPStatus))
_OF_RESULTS: Final = frozenset(map(_KIND_OF.__getitem__, ("page", "line", "http", "error", "port")))
"""The kinds that results number, and answers do not."""
_WORDS: Final = "|".join(sorted(map(re.escape, _KIND_OF), key=len, reverse=True))
_LIST: Final = r"(?:\d+(?:\.\d+)*(?:\s?[-\u2013,/]\s?|\s(?:and|to|or|und|bis|oder|och|till|eller|et|à|ou)\s)){0,4}"
_BEFORE: Final = re.compile(
    rf"(?<![^\W_])(?P<word>{_WORDS})\.?[ \u00a0]?(?:nr|no|n°|#)?\.?[ \u00a0]?{_LIST}$", re.IGNORECASE
)
_IN_EVIDENCE: Final = re.compile(rf"(?<![^\W\d])(?P<word>{_WORDS})[^\w\n]{{0,6}}v?(?P<number>\d{{1,9}})", re.IGNORECASE)
_NAMED: Final = re.compile(r"[^\W\ds][\"']?\s?[=:]\s?[\"']?(?P<number>\d{1,5})(?![\w%]|[.,:]\d)")
"""A name in the plural counts something."""
_CODE: Final = re.compile(r"(?<!\w)[A-Z]{1,3}-?(?P<number>\d{2,5})(?!\w)")
_NUMBER: Final = re.compile(r"\d{1,5}(?:\.\d{1,2}){0,3}")
_REACH: Final = 48
_HEADING: Final = re.compile(r"^[ \t>*_|#-]*(?P<number>\d{1,2}(?:\.\d{1,2}){1,3})\.?[ \t*_]+(?=[^\W\d_])", re.MULTILINE)
_MARKED_HEADING: Final = re.compile(r"[ \t]*(?:#|\*\*)")
_ITEM: Final = re.compile(r"(?<![\w)])\((?P<number>\d{1,2})\)(?=\s)")
_ROW: Final = re.compile(r"^[ \t]*\|[ \t*]*#?(?P<number>\d{1,4})\.?[ \t*]*\|", re.MULTILINE)
_ALWAYS: Final = re.compile(
    r"24[ \u00a0]?/[ \u00a0]?7\b|24/365\b|100[ \u00a0]?%(?= (?:sure|certain|sicher|säker|sûre?s?)\b)", re.IGNORECASE
)
_PARTS: Final = {
    ("day", 365): "year", ("day", 366): "year", ("week", 52): "year", ("month", 12): "year", ("day", 30): "month",
    ("day", 31): "month", ("h", 24): "day", ("min", 60): "h", ("s", 60): "min", ("h", 168): "week",
}  # fmt: skip
"""How many of a unit are in the next larger ones."""
_WORD: Final = re.compile(r"[^\W\d_]+")
_MIN_ROWS: Final = 2


class Labels:
    """The numbers of a text that are labels."""

    def __init__(self, text: str, evidence: str) -> None:
        self._text = text
        self._evidence = evidence

    def cover(self, mention: NumberMention) -> bool:
        """Whether a number names something that the evidence does not number, or is a fixed expression."""
        return mention.start in self._places or self._is_named(mention) or self._is_part_of_unit(mention)

    def _is_named(self, mention: NumberMention) -> bool:
        if mention.unit is not None or not _NUMBER.fullmatch(mention.text):
            return False
        before = _BEFORE.search(self._text, max(0, mention.start - _REACH), mention.start)
        if before is None:
            return False
        kind = _KIND_OF[before["word"].lower()]
        if kind == _LINES and mention.value <= self._count_of_lines:  # no text says which its lines are
            return True
        if kind in _OF_RESULTS and "." not in mention.text:
            return not self._has_number_like(mention, kind)
        return kind not in self._kinds_of_evidence

    def _has_number_like(self, mention: NumberMention, kind: int) -> bool:
        """Whether the evidence numbers a thing of this kind, or names a number of this length with `=` or `:`. A status
        of HTTP is compared with such ones only."""
        is_status = kind == _HTTP and int(mention.value) in _STATUSES
        for own, number in self._numbers_of_evidence:
            is_like = own == kind or (own is None and len(number) == len(mention.text))
            if is_like and (not is_status or int(number) in _STATUSES):
                return True
        return False

    def _is_part_of_unit(self, mention: NumberMention) -> bool:
        """Whether a number with its unit is what the text says a larger unit has: "a year has 365 days"."""
        if mention.unit is None or mention.value != int(mention.value):
            return False
        larger = _PARTS.get((mention.unit.name, int(mention.value)))
        if larger is None:
            return False
        around = self._text[max(0, mention.start - _REACH) : mention.start] + self._text[mention.end : mention.end + 16]
        around = re.split(r"[.!?\n;(]\s", around)[-1] if larger != "month" else ""
        units = (UNITS.get(word) for word in _WORD.findall(around.lower()))
        return any(unit is not None and unit.name == larger for unit in units)

    @cached_property
    def _places(self) -> frozenset[int]:
        return frozenset((*self._iter_headings(), *self._iter_items(), *self._iter_rows(), *self._iter_fixed()))

    def _iter_headings(self) -> Iterator[int]:
        """Yields the places of numbers such as 1.2 before a line, of which there is a neighbour, or of a heading."""
        headings = list(_HEADING.finditer(self._text))
        numbers = {match["number"] for match in headings}
        for match in headings:
            head, _, last = match["number"].rpartition(".")
            beside = {f"{head}.{int(last) + 1}", f"{head}.{int(last) - 1}"}
            if not numbers.isdisjoint(beside) or _MARKED_HEADING.match(match[0]):
                yield match.start("number")

    def _iter_items(self) -> Iterator[int]:
        """Yields the places of the numbers of an enumeration inside of lines: "(10) notice, (11) leave"."""
        items = list(_ITEM.finditer(self._text))
        numbers = {int(match["number"]) for match in items}
        yield from (
            match.start("number")
            for match in items
            if not numbers.isdisjoint((int(match["number"]) - 1, int(match["number"]) + 1))
        )

    def _iter_rows(self) -> Iterator[int]:
        """Yields the places of the first cells of rows that count them."""
        rows = list(_ROW.finditer(self._text))
        for at, match in enumerate(rows):
            beside = [rows[other] for other in (at - 1, at + 1) if 0 <= other < len(rows)]
            if any(
                abs(int(one["number"]) - int(match["number"])) == 1 and int(rows[0]["number"]) <= _MIN_ROWS
                for one in beside
            ):
                yield match.start("number")

    def _iter_fixed(self) -> Iterator[int]:
        for match in _ALWAYS.finditer(self._text):
            yield match.start()

    @cached_property
    def _count_of_lines(self) -> int:
        return self._evidence.count("\n") + 1

    @cached_property
    def _kinds_of_evidence(self) -> frozenset[int]:
        return frozenset(kind for kind, _ in self._numbers_of_evidence if kind is not None)

    @cached_property
    def _numbers_of_evidence(self) -> frozenset[tuple[int | None, str]]:
        """The numbers of the evidence that name something, with the kind of their word; None for one that has another
        word, and behind it `=` or `:`."""
        of_kinds = ((_KIND_OF[one["word"].lower()], one["number"]) for one in _IN_EVIDENCE.finditer(self._evidence))
        codes = ((_KIND_OF["error"], one["number"]) for one in _CODE.finditer(self._evidence))
        named = ((None, one["number"]) for one in _NAMED.finditer(self._evidence))
        return frozenset((*of_kinds, *codes, *named))
