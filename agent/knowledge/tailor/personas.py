"""How picked sentences are told: the Executive is given the conclusion, the Technical reader places and whole tables,
everybody else plain paragraphs. Every sentence is the document's own, and its own quote."""

import re
from collections.abc import Iterable, Mapping, Sequence

from agent.knowledge.models import NOT_IN_DOCUMENTS
from agent.knowledge.tailor.claims import Segment, Unit
from agent.knowledge.tailor.extract import Pick, picked
from agent.knowledge.tailor.grounding import Ground, Verdict
from agent.knowledge.tailor.layout import MARKS, Kind
from agent.knowledge.tailor.models import Persona, TailorInput, headings_of, place_name
from agent.knowledge.tailor.passages import Quote
from agent.knowledge.terms import query_terms

SENTENCES: Mapping[Persona, int] = {"Technical": 8, "Executive": 3, "General": 4}
"""How many sentences an answer takes from the passages."""
TOPIC_SENTENCES = 3
MAX_ROWS = 12
_FOOTNOTE = re.compile(MARKS)
_IMAGE = re.compile(r"!\[([^\[\]\n]{0,300}+)\]\([^()\n]{0,2000}+\)")
_LINK = re.compile(r"(?<!!)\[([^\[\]\n]{1,300}+)\]\([^()\n]{0,2000}+\)")
_LEAD = re.compile(r"^(?:\s*(?:>|[-*+\u2022]\s|#{1,6}\s))+\s*")


def extract(wanted: TailorInput, ground: Ground) -> list[Verdict]:
    """The answer as units with their quotes; nothing where the passages do not answer."""
    if wanted.topics:
        return _compared(wanted, ground)
    picks = picked(wanted.user_query, ground, SENTENCES[wanted.persona])
    if not picks:
        return []
    match wanted.persona:
        case "Executive":
            return _executive(picks)
        case "Technical":
            return _technical(picks)
        case _:
            return _general(picks)


def _compared(wanted: TailorInput, ground: Ground) -> list[Verdict]:
    """A part for each topic; one the passages say nothing of says so."""
    units: list[Verdict] = []
    limit = 1 if wanted.persona == "Executive" else TOPIC_SENTENCES
    found_any = False
    for number, topic in enumerate(wanted.topics):
        others = {term for other in wanted.topics if other != topic for term in query_terms(other)}
        own = [term for term in query_terms(topic) if term not in others] or query_terms(topic)
        picks = picked(topic, ground, limit, must=frozenset(own))
        block = 10 * number
        units.append(Verdict(Unit("heading", block, (Segment(f"**{topic[:1].upper()}{topic[1:]}**"),))))
        if not picks:
            units.append(Verdict(Unit("sentence", block + 1, (Segment(NOT_IN_DOCUMENTS),))))
            continue
        found_any = True
        units += [
            _said(pick, block + 1, marker="- " if wanted.persona == "Technical" else "") for pick in _in_order(picks)
        ]
    return units if found_any else []


def _executive(picks: Sequence[Pick]) -> list[Verdict]:
    """The conclusion first, in at most three sentences."""
    units = [_said(pick, 0, as_line=True) for pick in picks]
    first = units[0]
    opened = Segment(f"In short: {first.unit.text}", first.unit.cites)
    return [Verdict(Unit("sentence", 0, (opened,)), first.quotes), *units[1:]]


def _general(picks: Sequence[Pick]) -> list[Verdict]:
    """Plain paragraphs, one a passage, in the order of the text; a table's rows below its head."""
    units: list[Verdict] = []
    for number, group in enumerate(_by_passage(picks)):
        units += _told(group, 10_000 * number, marker="")
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


def _told(group: Sequence[Pick], block: int, marker: str) -> list[Verdict]:
    units: list[Verdict] = []
    table, base = -1, block
    for pick in _in_order(group):
        if pick.part.piece.kind != "row":
            units.append(_said(pick, block, marker=marker))
            continue
        own_block = base + 2 + pick.part.piece.block
        if pick.part.head and pick.part.piece.block != table:
            columns = pick.part.head.count("|") - 1
            units.append(Verdict(Unit("head", own_block, (Segment(shown(pick.part.head)),))))
            units.append(Verdict(Unit("rule", own_block, (Segment(f"|{' --- |' * max(1, columns)}"),))))
        table = pick.part.piece.block
        units.append(_said(pick, own_block))
        block = own_block + 1
    return units


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


def _said(pick: Pick, block: int, *, marker: str = "", as_line: bool = False) -> Verdict:
    """A sentence of a passage as a unit, and itself as its quote."""
    piece = pick.part.piece
    cites = (pick.passage.number,)
    text = shown(pick.part.text)
    if piece.kind == "row" and as_line:
        text = _row_as_line(text, pick.part.head)
    kind: Kind = "row" if piece.kind == "row" and not as_line else "sentence"
    unit = Unit(kind, block, (Segment(text, cites),), marker)
    return Verdict(unit, ((Quote(pick.passage.number, piece.start, piece.end),),))


def _row_as_line(row: str, head: str) -> str:
    """ "Item: Train; Price: 900" for a row and its head."""
    cells = [cell.strip() for cell in row.strip().strip("|").split("|")]
    titles = [cell.strip() for cell in head.strip().strip("|").split("|")] if head else []
    told = (
        [f"{title}: {cell}" if title else cell for title, cell in zip(titles, cells, strict=False)] if titles else cells
    )
    line = "; ".join(one for one in told if one)
    return line if line.endswith((".", "!", "?")) else f"{line}."


def shown(text: str) -> str:
    """A sentence as it is said: in one line, without its document's own footnotes, pictures and addresses."""
    plain = _LINK.sub(r"\1", _IMAGE.sub(r"\1", _FOOTNOTE.sub("", text)))
    return " ".join(_LEAD.sub("", plain).split())
