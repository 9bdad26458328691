"""Answers without a model: the sentences of the passages that say most of what was asked, each with its citation.

A sentence's score is the weight of the question's words it holds (rare ones weigh more), half of that for those that
only its headings or title hold, a little more for a value or name where one is asked for; times its passage's
relevance. Deterministic, and every sentence is the document's own.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from agent.grounded_answers.grounding import Ground
from agent.grounded_answers.listing import listed_rows
from agent.grounded_answers.names import names
from agent.grounded_answers.passages import Passage
from agent.grounded_answers.picks import Pick, places_of, with_others
from agent.grounded_answers.question import Asked, asked_of
from agent.grounded_answers.scope import NOTHING, Lack, lack
from agent.grounded_answers.sections import is_in
from agent.grounded_answers.stances import beside_votes, takes
from agent.grounded_answers.superlatives import extreme_rows, rest_of
from agent.grounded_answers.values import mentions
from agent.grounded_answers.wording import same_as
from agent.text.snowball import SNOWBALL_LANGUAGES, stem_snowball
from agent.text.terms import extract_query_terms, extract_terms, fold

NEAR_BEST = 0.55
"""The share of the best score a sentence must reach to be said as well."""
NEAR_TOPIC = 0.45
"""The same in the best sentence's own passage, where a topic is asked about: what its heading opens belongs to it."""
NEAR_ONE = 0.8
"""The same where one fact is asked for: what comes after it is no part of the answer."""
BARELY = 0.25
"""The share of a question of small words alone that a sentence must hold to answer it."""
RELEVANT = 0.6
"""A passage that was found by its meaning, and is so relevant, may put the question's words differently."""
LOOKED_AT = 60
"""Sentences, the best first, that are looked into for what they do not speak of."""
FORGIVEN = 1 / 3
"""The share of a question's telling words that may lack where no stemmer knows its language."""
OTHERS = 2
"""How much more a sentence of another document may lack, and still be said beside the best."""
PLACE_SHARE = 0.5
SYNONYM_SHARE = 0.8
ASKED_FOR = 0.15
SAME_WORDS = 0.8
"""Two sentences that share so many of their words say the same."""
LONGEST = 600
"""Characters of a sentence that is said as one; longer ones are no sentences."""

_ASKS_VALUE = re.compile(
    r"\b(?:how (?:many|much|long|often|old|far|high|fast|big)|when|what (?:time|date|year|percentage|price|cost|number|"
    r"share)|which year|hur (?:m\u00e5nga|mycket|l\u00e4nge|ofta)|n\u00e4r|wie ?viel\w*|wann)\b",
    re.IGNORECASE,
)
_ASKS_NAME = re.compile(r"\b(?:who|whom|whose|vem|vilka|wer|where|var|wo)\b", re.IGNORECASE)


@dataclass(frozen=True)
class Found:
    """What the passages have for a question: the best sentences, best first, and what of it they do not speak of."""

    picks: tuple[Pick, ...] = ()
    lack: Lack = NOTHING


def found(question: str, ground: Ground, limit: int, *, must: frozenset[str] = frozenset(), lead: str = "") -> Found:
    """The best sentences, and what they lack; none where they do not answer. `must` are terms of which each must hold
    one, itself or by its place; `lead` is what was asked before, which "it" and "they" stand for."""
    asked = asked_of(question, ground.common)
    if lead and not asked.marks:
        before = asked_of(lead, ground.common)
        asked = replace(asked, marks=before.marks, years=asked.years or before.years)
    if not must and (rows := extreme_rows(question, ground.passages)):
        first = rows[0]
        lacks = lack(replace(asked, words=rest_of(asked.words)), *first)
        return Found(tuple(Pick(passage, at, 1.0, 1.0) for passage, at in rows), lacks)
    if not must and (listed := listed_rows(asked, ground.passages)):
        return Found(tuple(Pick(passage, at, 1.0, 1.0) for passage, at in listed))
    told = beside_votes(question) if asked.stance is not None else question
    ranked = sorted(_ranked(f"{lead} {told}".strip(), ground), key=lambda pick: -pick.score)
    if must:
        ranked = [pick for pick in ranked if must & (pick.part.told_terms | pick.passage.place_terms)]
    ranked = _where_asked(asked, ranked)
    looked = _of_the_named(asked, [(pick, lack(asked, pick.passage, pick.at)) for pick in ranked[:LOOKED_AT]])
    if not looked:
        return Found()
    looked = _whole_first(asked, looked)
    share = NEAR_BEST if must or asked.is_open else NEAR_ONE
    chosen = _near_the_best(looked, share, NEAR_TOPIC if asked.is_open else share, limit)
    if must:
        return Found(with_others([pick for pick, _ in chosen], limit))
    best, lacks = min(chosen, key=lambda one: one[1].weight)
    if not asked.is_open:
        chosen = [one for one in chosen if one[1].weight <= lacks.weight + (OTHERS if _elsewhere(one[0], best) else 0)]
    if not _answers(asked, best, lacks):
        return Found()
    # What one of the sentences lacks, another may speak of ("holidays and travel"), the next one where it is one fact.
    beside = [
        one
        for pick, one in chosen
        if asked.is_open or asked.is_between or (_together(pick, best) and _overlaps(asked, one, lacks))
    ]
    lacks = replace(lacks, words=tuple(word for word in lacks.words if all(word in one.words for one in beside)))
    if asked.tongue != "en" and len(lacks.words) <= FORGIVEN * len(asked.words):
        lacks = replace(lacks, words=())
    picks = [pick for pick, _ in chosen]
    return Found(with_others([*places_of(picks), *picks] if asked.asks_place else picks, limit), lacks)


def _where_asked(asked: Asked, ranked: list[Pick]) -> list[Pick]:
    """Those in the section that is named, and those that say who voted as is asked; all where there are none such."""
    if asked.section:
        ranked = [pick for pick in ranked if is_in(asked.section, pick.passage, pick.at)] or ranked
    if asked.stance is not None:
        ranked = [pick for pick in ranked if takes(asked.stance, pick.part.text + pick.part.head)] or ranked
    return ranked


def _whole_first(asked: Asked, looked: list[tuple[Pick, Lack]]) -> list[tuple[Pick, Lack]]:
    """The sentences, first one that lacks nothing of the question where its language makes compounds, of which the
    score knows nothing: "five days may be saved" for "how many holidays may be saved"."""
    first = looked[0] if looked else None
    if first is None or not first[1].words or asked.tongue not in SNOWBALL_LANGUAGES:
        return looked
    whole = [one for one in looked if one[1].nothing and one[0].score >= NEAR_BEST * first[0].score]
    return (
        [*whole, *(one for one in looked if one not in whole and one[0].score <= whole[0][0].score)]
        if whole
        else looked
    )


def _near_the_best(
    looked: Sequence[tuple[Pick, Lack]], share: float, beside: float, limit: int
) -> list[tuple[Pick, Lack]]:
    """The first that reach a share of the best score (`beside` it, in its passage), without those that say the same
    again."""
    chosen: list[tuple[Pick, Lack]] = []
    first = looked[0][0]
    for pick, lacks in looked:
        if len(chosen) == limit:
            break
        if pick.score < (beside if pick.passage is first.passage else share) * first.score:
            continue
        if not any(_same(pick, other) for other, _ in chosen):
            chosen.append((pick, lacks))
    return chosen


def _of_the_named(asked: Asked, looked: Sequence[tuple[Pick, Lack]]) -> list[tuple[Pick, Lack]]:
    """Those that speak of the names and years the question is about; none where one of these stands nowhere. What is
    undated may be of any year."""
    if not looked:
        return []
    absent = frozenset.intersection(*(frozenset(lacks.marks) for _, lacks in looked))
    if absent or (asked.years and all(lacks.years and not lacks.undated for _, lacks in looked)):
        return []
    if asked.is_between:
        wanted = len(asked.marks)
        return [one for one in looked if not wanted or len(one[1].marks) < wanted]
    least = min(len(lacks.marks) + len(lacks.years) for _, lacks in looked)
    return [one for one in looked if len(one[1].marks) + len(one[1].years) == least]


def _ranked(question: str, ground: Ground) -> Iterable[Pick]:
    asked = asked_of(question, ground.common)
    forms = _forms(question, ground, asked.tongue)
    weights = _weights(forms, ground)
    total = sum(weights.values()) or 1.0
    asks_when = asked.kind == "when"
    asks_value, asks_name = bool(_ASKS_VALUE.search(question)), bool(_ASKS_NAME.search(question))
    for passage in ground.passages:
        for at, part in enumerate(passage.parts):
            if not _may_answer(passage, at, dated=asks_when):
                continue
            told = {term: _share(term, forms[term], part.told_terms) for term in weights}
            own = sum(weight * told[term] for term, weight in weights.items())
            above = passage.place_terms | frozenset(extract_terms(passage.label(at)))
            more = sum(weight * _share(term, forms[term], above) for term, weight in weights.items() if not told[term])
            score = (own + PLACE_SHARE * more) / total
            if score <= 0:
                continue
            if asks_value and mentions(part.text):
                score += ASKED_FOR
            if asks_name and names(part.text, ground.common):
                score += ASKED_FOR
            yield Pick(passage, at, score * (0.5 + 0.5 * passage.chunk.relevance_score), own / total)


def _may_answer(passage: Passage, at: int, *, dated: bool) -> bool:
    """Whether a part says something by itself; a heading does where a date is asked for and stands in it."""
    part = passage.parts[at]
    if len(part.text) > LONGEST:
        return False
    if part.piece.kind == "heading":
        return dated and any(kind == "date" for one in mentions(part.text) for kind, _ in one.keys)
    return part.piece.kind in ("sentence", "row") and not passage.is_label(at)


def _share(term: str, forms: frozenset[str], held: frozenset[str]) -> float:
    """How much of a term's weight a text has: all, less for a word that says the same, or nothing."""
    if forms & held:
        return 1.0
    return SYNONYM_SHARE if same_as(term) & held else 0.0


def _forms(question: str, ground: Ground, tongue: str) -> dict[str, frozenset[str]]:
    """The question's terms, each with those of the passages that are another form of it in the question's language."""
    wanted = extract_query_terms(question)
    if tongue not in SNOWBALL_LANGUAGES:
        return {term: frozenset((term,)) for term in wanted}
    by_stem: dict[str, set[str]] = {}
    held = (passage.place_terms.union(*(part.told_terms for part in passage.parts)) for passage in ground.passages)
    for term in frozenset(wanted).union(*held):
        by_stem.setdefault(stem_snowball(tongue, term), set()).add(term)
    return {term: frozenset(by_stem[stem_snowball(tongue, term)]) for term in wanted}


def _weights(forms: Mapping[str, frozenset[str]], ground: Ground) -> dict[str, float]:
    """The question's terms by their rarity in the passages."""
    counts: Counter[str] = Counter()
    total = 0
    for passage in ground.passages:
        for part in passage.parts:
            total += 1
            counts.update(term for term, own in forms.items() if own & part.told_terms)
    return {term: math.log(1 + (total + 1) / (1 + counts[term])) for term in forms}


def _answers(asked: Asked, best: Pick, lacks: Lack) -> bool:
    """Whether a sentence has enough to do with the question to be said at all: most of its telling words, unless it
    is about what the question names, or found by its meaning."""
    if asked.is_empty:
        return _holds_as_much(asked.question, best)
    if not asked.words:
        return True
    near = best.passage.chunk.retrieval_mode != "lexical" and best.passage.chunk.relevance_score >= RELEVANT
    if near or ((asked.marks or asked.years) and not (lacks.marks or lacks.years)):
        return True
    return len(lacks.words) * 2 <= len(asked.words) and len(lacks.words) < len(asked.words)


def _holds_as_much(question: str, best: Pick) -> bool:
    """For questions of small words and figures: whether the sentence holds every figure, or enough of the words."""
    figures = mentions(question)
    if figures:
        return all(map(best.part.held.holds, figures))
    return best.own >= BARELY


def _together(one: Pick, other: Pick) -> bool:
    """Whether two sentences stand in one paragraph."""
    return (
        one.part.piece.kind != "row" and one.passage is other.passage and one.part.piece.block == other.part.piece.block
    )


def _overlaps(asked: Asked, one: Lack, other: Lack) -> bool:
    """Whether two sentences speak of a word of the question both: "padlocks can be bought" and "towels are hired" do
    not say between them what a towel costs to buy. English, whose sets were measured without this, is left as it is."""
    if asked.tongue not in SNOWBALL_LANGUAGES or one is other:
        return True
    return not frozenset(asked.words.values()) <= {*one.words, *other.words}


def _elsewhere(one: Pick, other: Pick) -> bool:
    return one.passage.chunk.source_id != other.passage.chunk.source_id


def _same(one: Pick, other: Pick) -> bool:
    """Whether two sentences say the same; with different figures they do not."""
    if fold(one.part.text).split() == fold(other.part.text).split():
        return True
    either = one.words | other.words
    if not either or len(one.words & other.words) / len(either) < SAME_WORDS or one.part.piece.kind == "row":
        return False
    return {m.keys for m in mentions(one.part.text)} == {m.keys for m in mentions(other.part.text)}
