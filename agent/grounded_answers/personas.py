"""How picked sentences are told: the Executive is given the conclusion, the Technical reader places and whole tables,
everybody else plain paragraphs. Every sentence is the document's own, and its own quote."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from agent.grounded_answers.claims import Segment, Unit
from agent.grounded_answers.columns import asked_columns, cells, only, row_as_line
from agent.grounded_answers.extract import found
from agent.grounded_answers.form_words import leans, parts_of, without_form
from agent.grounded_answers.grounding import Ground, Verdict
from agent.grounded_answers.layout import MARKS, Kind
from agent.grounded_answers.models import Persona, TailorInput, headings_of, place_name
from agent.grounded_answers.no_answer_text import get_no_answer_text, nearest
from agent.grounded_answers.passages import Part, Quote
from agent.grounded_answers.picks import Pick
from agent.grounded_answers.question import Asked, asked_of
from agent.grounded_answers.scope import is_kind
from agent.grounded_answers.superlatives import column_terms
from agent.grounded_answers.verbs import verbs_of
from agent.text.terms import extract_query_terms, extract_terms, fold

SENTENCES: Mapping[Persona, int] = {"Technical": 8, "Executive": 3, "General": 4}
"""How many sentences an answer takes from the passages."""
TOPIC_SENTENCES = 3
PART_BLOCKS = 10_000_000
"""Blocks a part of an answer has to itself."""
MAX_ROWS = 12
_FOOTNOTE = re.compile(MARKS)
_IMAGE = re.compile(r"!\[([^\[\]\n]{0,300}+)\]\([^()\n]{0,2000}+\)")
_LINK = re.compile(r"(?<!!)\[([^\[\]\n]{1,300}+)\]\([^()\n]{0,2000}+\)")
_LEAD = re.compile(r"^(?:\s*(?:>|[-*+\u2022]\s|#{1,6}\s))+\s*")


def extract(wanted: TailorInput, ground: Ground, *, whole_rows: bool = False) -> list[Verdict]:
    """The answer as units with their quotes; nothing where the passages do not answer. A question of several parts is
    answered part by part, and those that are not answered say so. `whole_rows` keeps a table's rows as they are."""
    if wanted.topics:
        return _compared(wanted, ground)
    asked = parts_of(without_form(wanted.user_query))
    units: list[Verdict] = []
    said: set[tuple[int, int]] = set()
    answered = False
    for number, part in enumerate(asked):
        here = found(part, ground, SENTENCES[wanted.persona], lead=asked[0] if number and leans(part) else "")
        picks = [pick for pick in here.picks if (pick.passage.number, pick.at) not in said]
        said |= {(pick.passage.number, pick.at) for pick in picks}
        block = PART_BLOCKS * number
        if not here.picks or not (picks or here.lack.nothing):
            units.append(_aside(f"{part} {get_no_answer_text(wanted.user_query)}", block))
        elif picks and not here.lack.nothing:
            verbs = verbs_of(part)
            told = tuple(word for word in here.lack.told if fold(word) not in verbs)
            units.append(_aside(nearest(wanted.user_query, told), block))
        answered = answered or bool(here.picks)
        if picks:
            about = None if whole_rows else asked_of(part, ground.common)
            units += [_moved(unit, block + 1) for unit in _for_reader(wanted.persona, picks, about)]
    return units if answered else []


def _for_reader(persona: Persona, picks: Sequence[Pick], asked: Asked | None) -> list[Verdict]:
    match persona:
        case "Executive":
            return _executive(picks, asked)
        case "Technical":
            return _technical(picks)
        case _:
            return _general(picks, asked)


def _aside(text: str, block: int) -> Verdict:
    return Verdict(Unit("sentence", block, (Segment(text),)), aside=True)


def _moved(verdict: Verdict, by: int) -> Verdict:
    return replace(verdict, unit=replace(verdict.unit, block=verdict.unit.block + by))


def _compared(wanted: TailorInput, ground: Ground) -> list[Verdict]:
    """A part for each topic; one the passages say nothing of says so."""
    units: list[Verdict] = []
    limit = 1 if wanted.persona == "Executive" else TOPIC_SENTENCES
    found_any = False
    for number, topic in enumerate(wanted.topics):
        others = {term for other in wanted.topics if other != topic for term in extract_query_terms(other)}
        own = [term for term in extract_query_terms(topic) if term not in others] or extract_query_terms(topic)
        picks = found(topic, ground, limit, must=frozenset(own)).picks
        about = asked_of(topic, ground.common)
        block = PART_BLOCKS * number
        units.append(Verdict(Unit("heading", block, (Segment(f"**{topic[:1].upper()}{topic[1:]}**"),))))
        if not picks:
            units.append(Verdict(Unit("sentence", block + 1, (Segment(get_no_answer_text(wanted.user_query)),))))
            continue
        found_any = True
        if wanted.persona == "Executive":
            lines = [
                _said(pick, block + 1, as_line=True, chosen=_columns_of([pick], about)) for pick in _in_order(picks)
            ]
            units += lines
            continue
        marker = "- " if wanted.persona == "Technical" else ""
        for at, group in enumerate(_by_passage(picks)):
            units += _told(group, block + 1 + 10_000 * at, marker=marker, asked=about if not marker else None)
    return units if found_any else []


def _executive(picks: Sequence[Pick], asked: Asked | None) -> list[Verdict]:
    """The conclusion first, in at most three sentences."""
    units = [_said(pick, 0, as_line=True, chosen=_columns_of([pick], asked)) for pick in picks]
    first = units[0]
    opened = Segment(f"In short: {first.unit.text}", first.unit.cites)
    return [Verdict(Unit("sentence", 0, (opened,)), first.quotes), *units[1:]]


def _general(picks: Sequence[Pick], asked: Asked | None) -> list[Verdict]:
    """Plain paragraphs, one a passage, in the order of the text; a table's rows below its head, those columns alone
    that are asked for."""
    units: list[Verdict] = []
    for number, group in enumerate(_by_passage(picks)):
        units += _told(group, 10_000 * number, marker="", asked=asked)
    return units


def _technical(picks: Sequence[Pick]) -> list[Verdict]:
    """Lists below the place they come from; tables whole, as tables."""
    units: list[Verdict] = []
    for number, group in enumerate(_by_passage(picks)):
        chunk = group[0].passage.chunk
        heading = next(reversed(headings_of(chunk)), "")
        place = f"**{heading}** ({place_name(chunk)})" if heading and "*" not in heading else f"**{place_name(chunk)}**"
        units.append(Verdict(Unit("heading", 10_000 * number, (Segment(place),))))
        units += _told(_with_whole_tables(group), 10_000 * number + 1, marker="- ")
    return units


def _told(group: Sequence[Pick], block: int, marker: str, asked: Asked | None = None) -> list[Verdict]:
    units: list[Verdict] = []
    tables: dict[int, list[Pick]] = {}
    for pick in group:
        if pick.part.piece.kind == "row":
            tables.setdefault(pick.part.piece.block, []).append(pick)
    table, base = -1, block
    for pick in _in_order(group):
        part = pick.part
        if part.piece.kind != "row":
            units.append(_said(pick, block, marker=marker))
            continue
        own_block = base + 2 + part.piece.block
        rows = tables[part.piece.block]
        chosen = _columns_of(rows, asked)
        alone = bool(chosen) and len(rows) == 1
        if part.head and part.piece.block != table and not alone:
            head = only(part.head, chosen) if chosen else part.head
            units.append(Verdict(Unit("head", own_block, (Segment(shown(head)),))))
            units.append(Verdict(Unit("rule", own_block, (Segment(f"|{' --- |' * max(1, head.count('|') - 1)}"),))))
        table = part.piece.block
        units.append(_said(pick, own_block, as_line=alone, chosen=chosen))
        block = own_block + 1
    return units


def _columns_of(rows: Sequence[Pick], asked: Asked | None) -> tuple[int, ...]:
    """The columns of picked rows of a table that are asked for; none where that cannot be told, or what is asked for
    would not be among them: then a row is shown whole."""
    if asked is None:
        return ()
    wanted = [*extract_query_terms(asked.question), *column_terms(asked.question)]
    telling = [*asked.words, *(term for mark in asked.marks for term in extract_terms(mark.text)), *asked.years]
    found: set[int] = set()
    for pick in rows:
        part = pick.part
        chosen = asked_columns(part.text, part.head, wanted, telling) if part.piece.kind == "row" else ()
        if not chosen or _loses_the_answer(asked, part, chosen):
            return ()
        found |= set(chosen)
    return tuple(sorted(found)) if rows and len(found) < len(cells(rows[0].part.text)) else ()


def _loses_the_answer(asked: Asked, part: Part, chosen: Sequence[int]) -> bool:
    kept = only(part.text, chosen) + only(part.head, chosen)
    return is_kind(asked, part.text + part.head) and not is_kind(asked, kept)


def _with_whole_tables(group: Sequence[Pick]) -> list[Pick]:
    """The picks, each table with its other rows, as far as there is room."""
    found = {pick.at: pick for pick in group}
    for pick in group:
        if pick.part.piece.kind != "row":
            continue
        rows = [
            at
            for at, part in enumerate(pick.passage.parts)
            if part.piece.kind == "row" and part.piece.block == pick.part.piece.block
        ]
        for at in rows[:MAX_ROWS]:
            found.setdefault(at, Pick(pick.passage, at, pick.score, 0.0))
    return list(found.values())


def _by_passage(picks: Iterable[Pick]) -> list[list[Pick]]:
    groups: dict[int, list[Pick]] = {}
    for pick in picks:
        groups.setdefault(pick.passage.number, []).append(pick)
    return list(groups.values())


def _in_order(picks: Iterable[Pick]) -> list[Pick]:
    return sorted(picks, key=lambda pick: (pick.passage.number, pick.at))


def _said(pick: Pick, block: int, *, marker: str = "", as_line: bool = False, chosen: Sequence[int] = ()) -> Verdict:
    """A sentence of a passage as a unit, and itself as its quote; of a row the chosen columns, or all."""
    piece = pick.part.piece
    cites = (pick.passage.number,)
    text = pick.part.text
    if piece.kind == "row":
        text = only(text, chosen) if chosen else text
        head = only(pick.part.head, chosen) if chosen else pick.part.head
        text = row_as_line(shown(text), shown(head)) if as_line else text
    kind: Kind = "row" if piece.kind == "row" and not as_line else "sentence"
    unit = Unit(kind, block, (Segment(shown(text), cites),), marker)
    return Verdict(unit, ((Quote(pick.passage.number, piece.start, piece.end),),))


def shown(text: str) -> str:
    """A sentence as it is said: in one line, without its document's own footnotes, pictures and addresses."""
    plain = _LINK.sub(r"\1", _IMAGE.sub(r"\1", _FOOTNOTE.sub("", text)))
    return " ".join(_LEAD.sub("", plain).split())
