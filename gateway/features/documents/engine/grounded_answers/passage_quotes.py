"""Answers without a model: the best passages, verbatim and marked as quotations, each under its title and place.

Nothing is concluded from them. The personas get the same passages in different forms: `General` excerpts, `Technical`
whole passages with tables, `Executive` one sentence of each.
"""

from collections.abc import Container, Iterator, Sequence
from itertools import groupby

from agent.answers.evidence import get_no_answer_text
from agent.text.follow_up import list_content_words, list_names
from agent.text.pieces import Kind
from agent.text.question_parts import list_subject_words
from agent.text.requested_form import list_asked_things, remove_form, split_questions
from agent.text.snowball import SNOWBALL_LANGUAGES
from agent.text.terms import expand_query_terms, extract_query_terms, extract_terms
from gateway.features.documents.engine.grounded_answers.answer_units import Segment, Unit
from gateway.features.documents.engine.grounded_answers.evidence_checker import CheckedUnit, EvidenceChecker
from gateway.features.documents.engine.grounded_answers.models import (
    Persona,
    TailorInput,
    format_place,
    get_document_name,
    list_headings,
)
from gateway.features.documents.engine.grounded_answers.passage_terms import MIN_PHRASE_SHARE, PassageTerms
from gateway.features.documents.engine.grounded_answers.passages import Part, Passage, clean_text

MAX_PASSAGES = 3
MIN_RELATIVE_RELEVANCE = 0.6
"""The least relevance of a quoted passage, relative to the best one."""
EXCERPT_CHARS = 600
WHOLE_CHARS = 4_000
"""A longer text is the whole result of a tool, of which `Technical` is shown an excerpt too."""
MAX_ROWS = 12
MAX_NAMES = 50
"""Names of a message that are looked for in passages; one with more holds a list."""
LABEL_WORDS = 12
_STOPS = (".", "!", "?", "\u2026", "\u3002", '"', "\u201d", ";")
QUOTATION = "> "
BLOCKS_PER_PASSAGE = 100_000
OVERLOOKED_BLOCK = 500_000_000
"""The first block of quotations that follow a model's answer."""


def list_quotations(
    request: TailorInput, checker: EvidenceChecker, *, by_sentence: bool, limit: int | None = None
) -> list[CheckedUnit]:
    """The quotations that answer a request, in the form of its persona; none without passages.

    With `by_sentence` each sentence is a unit of its own, as limits, lists, tables and JSON need it. `limit` is the
    number of sentences to choose from each passage, if not all are wanted.
    """
    if request.topics:
        return _compare_topics(request, checker, by_sentence=by_sentence, limit=limit)
    question = f"{request.follows} {request.user_query}".strip()
    return _quote_passages(question, checker.passages, request.persona, 0, by_sentence=by_sentence, limit=limit)


def list_unanswered(
    request: TailorInput, checker: EvidenceChecker, units: Sequence[CheckedUnit]
) -> tuple[list[str], list[str]]:
    """The things that a message asks for besides others and that the quoted passages do not hold: those of which they
    have no word, and those of which they lack the subject, or hold half in a passage that is much less relevant.
    Of a message that asks for one thing, the names in whose place they have others: what they say of Porto does not
    answer for Lisbon."""
    phrases = list_asked_things(request.user_query)
    quoted = {quote.number for one in units for quote in one.list_quotes()}
    terms = [PassageTerms(checker.chunks[number - 1]) for number in quoted]
    relevances = [checker.chunks[number - 1].relevance_score for number in quoted]
    top = max((chunk.relevance_score for chunk in checker.chunks), default=0.0)
    absent: list[str] = []
    doubtful: list[str] = []
    for phrase in phrases if len(phrases) > 1 and not request.topics else ():
        words, subjects = list_content_words(phrase), list_subject_words(phrase)
        has_subject = not subjects or any(one.mentions(word) for one in terms for word in subjects)
        if words and not any(one.mentions(word) for one in terms for word in words):
            absent.append(phrase)
        elif words and (not has_subject or _is_half(phrase, terms, relevances, top)):
            doubtful.append(phrase)
    if quoted and not absent and not request.topics:
        names = list_names(request.user_query)[:MAX_NAMES]
        siblings = [one.name for one in names if any(passage.has_sibling_of(one) for passage in terms)]
        absent = [name for name in siblings if not any(passage.mentions(name) for passage in terms)]
    return absent, doubtful


def _is_half(phrase: str, terms: Sequence[PassageTerms], relevances: Sequence[float], top: float) -> bool:
    """Whether the passages that hold most of a thing hold no more than half of its words, and are quoted for it alone,
    being much less relevant than the best passage."""
    shares = [one.compute_share(phrase) for one in terms]
    best = max(shares, default=0.0)
    least = MIN_RELATIVE_RELEVANCE * top
    of_best = [relevance for share, relevance in zip(shares, relevances, strict=True) if share == best]
    return 0 < best <= MIN_PHRASE_SHARE and max(of_best) < least


def list_overlooked(request: TailorInput, checker: EvidenceChecker, cited: Container[int]) -> list[CheckedUnit]:
    """Quotations for the questions of a message that an answer leaves out; none for a single question.

    A question is left out if a passage holds most of its words, more than any cited passage does.
    """
    parts = split_questions(remove_form(request.user_query))
    units: list[CheckedUnit] = []
    for number, part in enumerate(parts if len(parts) > 1 else ()):
        term_counts = {passage.number: _count_terms(part, passage) for passage in checker.passages}
        best = max(checker.passages, key=lambda passage: term_counts[passage.number], default=None)
        if best is None or 2 * term_counts[best.number] <= len(extract_query_terms(part)):
            continue
        if all(term_counts[one] < term_counts[best.number] for one in term_counts if one in cited):
            block = OVERLOOKED_BLOCK + number * BLOCKS_PER_PASSAGE
            units += _quote_passages(part, [best], request.persona, block, by_sentence=False, limit=None)
    return units


def _count_terms(question: str, passage: Passage) -> int:
    """Counts the question's terms that a passage holds, in its stems."""
    languages = [passage.language] if passage.language in SNOWBALL_LANGUAGES else []
    passage_terms = {term for one in ("", *languages) for term in extract_terms(passage.chunk.content, one)}
    variants = expand_query_terms(question, languages).values()
    return sum(any(term in passage_terms for term in terms) for terms in variants)


def _compare_topics(
    request: TailorInput, checker: EvidenceChecker, *, by_sentence: bool, limit: int | None
) -> list[CheckedUnit]:
    """A section for each side of a comparison. A side without a passage says so."""
    units: list[CheckedUnit] = []
    shared = _list_shared_places(checker.passages)
    for number, topic in enumerate(request.topics):
        others = {term for other in request.topics if other != topic for term in extract_query_terms(other)}
        mine = frozenset(extract_query_terms(topic))
        own = mine - others
        about = [
            passage for passage in checker.passages
            if own & passage.place_terms.union(*(part.terms for part in passage.parts))
            # A passage under the other side's heading is about that side, whatever it mentions.
            and (own & passage.place_terms or not (others - mine - shared) & passage.place_terms)
        ]  # fmt: skip
        block = number * BLOCKS_PER_PASSAGE * (MAX_PASSAGES + 1)
        units.append(_make_heading(f"**{topic[:1].upper()}{topic[1:]}**", block))
        if about:
            units += _quote_passages(topic, about, request.persona, block + 1, by_sentence=by_sentence, limit=limit)
        else:
            units.append(CheckedUnit(Unit("sentence", block + 1, (Segment(get_no_answer_text(request.user_query)),))))
    return units if any(one.quotes for one in units) else []


def _list_shared_places(passages: Sequence[Passage]) -> frozenset[str]:
    """The terms of places that do not distinguish the sides of a comparison: the title that all passages have, and of a
    single one all but its last heading."""
    if len(passages) == 1:
        return passages[0].place_terms.difference(extract_terms(" ".join(list_headings(passages[0].chunk)[-1:])))
    return frozenset.intersection(*(one.place_terms for one in passages)) if passages else frozenset()


def _quote_passages(
    question: str, passages: Sequence[Passage], persona: Persona, block: int, *, by_sentence: bool, limit: int | None
) -> list[CheckedUnit]:
    """The quotations of the best passages. `block` is the number of their first block."""
    relevant = _select_relevant(question, passages)
    units: list[CheckedUnit] = []
    for at, passage in enumerate(relevant):
        scores = _score_parts(question, passage)
        if not any(_is_quotable(part) for part in passage.parts):
            continue
        if persona == "Executive":
            units.append(_quote_best_sentence(passage, scores, block))
            continue
        start = block + BLOCKS_PER_PASSAGE * at
        units.append(_make_heading(_format_title(passage, persona), start))
        chosen = _select_parts(passage, scores, whole=persona == "Technical")
        if limit is not None:
            chosen = sorted(sorted(chosen, key=lambda at: (-scores[at], at))[:limit])
        units += _make_quotations(passage, chosen, start + 1, by_sentence=by_sentence)
    return units


def _select_relevant(question: str, passages: Sequence[Passage]) -> list[Passage]:
    """The most relevant passages, and the best one for each thing that the question asks for, in their order.

    Next to a passage about one of several things, those about the others seem less relevant than they are.
    """
    needed: list[int] = []
    terms = {passage.number: PassageTerms(passage.chunk) for passage in passages}
    phrases = list_asked_things(question)
    for phrase in phrases if len(phrases) > 1 else ():
        share, _, number = max(
            ((one.compute_share(phrase), one.has_heading_word(phrase), -number) for number, one in terms.items()),
            default=(0.0, False, 0),
        )
        if share >= MIN_PHRASE_SHARE and -number not in needed:
            needed.append(-number)
    top = max((passage.chunk.relevance_score for passage in passages), default=0.0)
    least = MIN_RELATIVE_RELEVANCE * top
    others = [one.number for one in passages if one.chunk.relevance_score >= least and one.number not in needed]
    chosen = {*needed, *others[: max(0, MAX_PASSAGES - len(needed))]}
    return [passage for passage in passages if passage.number in chosen]


def _score_parts(question: str, passage: Passage) -> list[int]:
    """For each part how many of the question's terms it or its table's head holds, in the passage's stems."""
    languages = [passage.language] if passage.language in SNOWBALL_LANGUAGES else []
    variants = list(expand_query_terms(question, languages).values())
    scores = []
    for part in passage.parts:
        text = f"{part.head}\n{part.text}"
        part_terms = {term for language in ("", *languages) for term in extract_terms(text, language)}
        scores.append(sum(any(term in part_terms for term in terms) for terms in variants))
    return scores


def _select_parts(passage: Passage, scores: Sequence[int], *, whole: bool) -> list[int]:
    """The parts to quote: the whole passage, or its best paragraphs; of long ones one stretch of sentences."""
    chosen = _select_best(passage, scores, whole=whole)
    parts, last = passage.parts, passage.parts[chosen[-1]]
    if len(chosen) == len(parts) or not _is_label(last):
        return chosen
    # A caption or a term says nothing without the table or the line that it stands for.
    behind = [at for at in range(chosen[-1] + 1, len(parts)) if _is_quotable(parts[at])]
    block = [at for at in behind if parts[at].piece.block == parts[behind[0]].piece.block]
    return [*chosen, *_limit_rows(passage, block, scores)] if block else chosen


def _is_label(part: Part) -> bool:
    """Whether a part is a line of few words without a stop, such as the caption of a table."""
    text = part.text.rstrip()
    is_line = part.piece.kind == "sentence" and not part.piece.marker
    return is_line and len(text.split()) <= LABEL_WORDS and text[-1:] not in _STOPS


def _select_best(passage: Passage, scores: Sequence[int], *, whole: bool) -> list[int]:
    """The parts that match best, as `_select_parts`."""
    parts = passage.parts
    quotable = [at for at, part in enumerate(parts) if _is_quotable(part)]
    if whole and _count_length(passage, quotable) <= WHOLE_CHARS:
        return _limit_rows(passage, quotable, scores)
    least = max(scores[at] for at in quotable) / 2
    good = {parts[at].piece.block for at in quotable if scores[at] >= least}
    paragraphs = [at for at in quotable if parts[at].piece.block in good]
    if sum(len(parts[at].text) for at in paragraphs) <= EXCERPT_CHARS:
        return _limit_rows(passage, paragraphs, scores)
    best = max(quotable, key=lambda at: (scores[at], -at))
    if parts[best].piece.kind == "row":
        table = [at for at in quotable if parts[at].piece.block == parts[best].piece.block]
        return _limit_rows(passage, [at for at in table if scores[at] == scores[best]], scores)
    block = [at for at in quotable if parts[at].piece.block == parts[best].piece.block]
    first = last = block.index(best)
    # The sentences before explain what the best one refers to; those behind it often hold the conditions.
    while first > 0 or last < len(block) - 1:
        if last < len(block) - 1 and _count_length(passage, block[first : last + 2]) <= EXCERPT_CHARS:
            last += 1
        elif first > 0 and _count_length(passage, block[first - 1 : last + 1]) <= EXCERPT_CHARS:
            first -= 1
        else:
            break
    return block[first : last + 1]


def _limit_rows(passage: Passage, chosen: Sequence[int], scores: Sequence[int]) -> list[int]:
    """The parts with at most `MAX_ROWS` rows, those that match best."""
    rows = [at for at in chosen if passage.parts[at].piece.kind == "row"]
    best = set(sorted(rows, key=lambda at: (-scores[at], at))[:MAX_ROWS])
    return [at for at in chosen if passage.parts[at].piece.kind != "row" or at in best]


def _count_length(passage: Passage, chosen: Sequence[int]) -> int:
    return passage.parts[chosen[-1]].piece.end - passage.parts[chosen[0]].piece.start


def _make_quotations(
    passage: Passage, chosen: Sequence[int], block: int, *, by_sentence: bool
) -> Iterator[CheckedUnit]:
    """Yields the chosen parts as quotations: paragraphs, list items, and tables with their heads."""
    for paragraph, members in groupby(chosen, key=lambda at: passage.parts[at].piece.block):
        group, own_block = list(members), block + paragraph
        head = passage.parts[group[0]].head
        if head:
            yield CheckedUnit(Unit("head", own_block, (Segment(clean_text(head)),), QUOTATION))
            rule = "|" + " --- |" * (clean_text(head).strip().strip("|").count("|") + 1)
            yield CheckedUnit(Unit("rule", own_block, (Segment(rule),), QUOTATION))
        is_prose = all(passage.parts[at].piece.kind == "sentence" for at in group)
        has_items = any(passage.parts[at].piece.marker for at in group)
        if is_prose and not has_items and not by_sentence:
            yield _make_quotation(passage, group, "sentence", own_block, QUOTATION)
            continue
        for at in group:
            piece = passage.parts[at].piece
            item = "- " if piece.marker else ""
            marker = "" if by_sentence and piece.kind == "sentence" else f"{QUOTATION}{item}"
            yield _make_quotation(passage, [at], piece.kind, own_block, marker)


def _make_quotation(passage: Passage, group: Sequence[int], kind: Kind, block: int, marker: str) -> CheckedUnit:
    text = " ".join(clean_text(passage.parts[at].text) for at in group)
    if kind == "code":
        text = passage.parts[group[0]].text  # its line ends matter
    unit = Unit(kind, block, (Segment(text, (passage.number,)),), marker)
    return CheckedUnit(unit, ((passage.make_quote(group[0], group[-1] + 1),),))


def _quote_best_sentence(passage: Passage, scores: Sequence[int], block: int) -> CheckedUnit:
    """The sentence or row with most of the question's words, with the name of its document."""
    quotable = [at for at, part in enumerate(passage.parts) if _is_quotable(part)]
    best = max(quotable, key=lambda at: (scores[at], -at))
    text = f"{get_document_name(passage.chunk)}: \u201c{clean_text(passage.parts[best].text)}\u201d"
    unit = Unit("sentence", block, (Segment(text, (passage.number,)),), "- ")
    return CheckedUnit(unit, ((passage.make_quote(best, best + 1),),))


def _is_quotable(part: Part) -> bool:
    return part.piece.kind in ("sentence", "row", "code") and any(letter.isalnum() for letter in part.text)


def _format_title(passage: Passage, persona: Persona) -> str:
    """The place of a passage in bold: document and last heading; for `Technical` all headings and the page."""
    headings = [clean_text(heading).replace("*", "") for heading in list_headings(passage.chunk)]
    name = format_place(passage.chunk) if persona == "Technical" else get_document_name(passage.chunk)
    shown_headings = headings if persona == "Technical" else headings[-1:]
    path = " \u203a ".join([name, *shown_headings])
    return f"**{path}**"


def _make_heading(text: str, block: int) -> CheckedUnit:
    return CheckedUnit(Unit("heading", block, (Segment(text),)))
