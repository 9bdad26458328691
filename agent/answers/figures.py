"""Finds the figures, dates and codes of a text that are neither in its evidence nor derivable from it.

Figures are compared as values: `864.00` is `864`, `63.32` is `63.3224` rounded, `-12.58` is `12.58`, and `12 %` is
`0.12`. `8,321` is read in the language of its sentence. Other units of the same kind, computed equations and totals
count as explained, and results of figures that belong together where few other figures would be (`related_figures`,
`aggregates` of tables, `comparatives` of reports). Counts under ten, labels, code and citations are not claims.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from functools import cached_property

from agent.answers.derived.chance import (
    Quantity,
    contains_near,
    is_among,
    list_operands,
    make_quantity,
    read_quantities,
)
from agent.answers.derived.dates import DerivedDates
from agent.answers.derived.equations import Equation, find_equations
from agent.answers.derived.factors import find_request, list_factors, list_wanted_counts
from agent.answers.derived.formulas import Formulas, Words
from agent.answers.derived.instants import Instants
from agent.answers.derived.known_values import FigureEvidence
from agent.answers.derived.labels import Labels
from agent.answers.derived.operands import (
    COUNT_UNITS,
    find_divisors,
    find_periods,
    may_be_count,
    merge,
    pair_said,
    read_operands,
)
from agent.answers.derived.periods import names_known_period
from agent.answers.derived.regrouped import has_code_of_shape, has_sister, is_regrouped
from agent.answers.derived.totals import list_counts, list_totals
from agent.answers.quoted_figures import drop_line_numbers, has_only_quoted_figures
from agent.text.codes import CodeMention
from agent.text.dates import DateMention, TimeMention, TimeValue
from agent.text.decimal_marks import get_digits, settle_readings
from agent.text.number_words import AMBIGUOUS_WORDS, NUMBER_WORDS, SCALES, is_number_word
from agent.text.numbers import FRACTIONS, NumberMention, NumberReading
from agent.text.pieces import split_pieces
from agent.text.scales import find_scales
from agent.text.spoken_times import CLOCK_WORDS, HOUR_WORDS, find_spoken_times, list_halves
from agent.text.values import KnownValues, ValueMention, find_values

MAX_REPORTED = 5
"""The search stops after this number of unexplained figures."""
_LINK = re.compile(r"https?://\S+")
_OFFSET = re.compile(r"(?:UTC|GMT) ?[-+\u2212]$", re.IGNORECASE)
_CLOCK_WORD = re.compile(r" (?:to|past|i|över|vor|nach) (?:[^\W\d_]+)\b", re.IGNORECASE)
"""Twenty to seven, tjugo i sju, zwanzig vor acht."""
_DIGIT = re.compile(rf"[\d{''.join(FRACTIONS)}]")
_DOTTED = re.compile(r"[vV]?\d+(?:\.\d+){2,}")
"""A version, a section or an address of a network: its parts say something together."""
_CLOCK = re.compile(r"([01]?\d|2[0-3])\.([0-5]\d)")
_SHORT_YEAR = re.compile(r"['\u2019]$")
_WORD = re.compile(r"[^\W\d_]+")
_ORDINAL = re.compile(r"\d(?:st|nd|rd|th|:[ae]|er|ère|ème|e)$", re.IGNORECASE)
_LONG_CODE = re.compile(r"\d{4}")
_PER_COUNT = re.compile(r"[ \u00a0]?(?:[^\W\d_]{1,6}[ \u00a0]?)?(?:/|per|pro|je|auf|par|pour|på)[ \u00a0]?(1000?)\b")
"""What a figure is said of, behind it and its unit."""
_IN_TOTALS = 0.05
"""How many other figures may be among the totals of the evidence or the answer."""
_CONTEXT_SENTENCES = 3
"""Sentences, up to that of a figure, whose figures it may continue."""
_INVENTS = re.compile(
    r"\b(?:poem|stor(?:y|ies)|tale|song|lyrics|joke|limerick|haiku|fiction\w*|novel|imagin\w+|invent\w*|made[- ]up|"
    r"fantas\w+|brainstorm\w*|guess|estimate|dikt|saga|berättelse|hitta på|gissa|gedicht|geschichte|cuento|poema)\b"
)
"""Of a text in lower case: searched without regard to case, it takes four times as long."""


def find_unexplained_figures(text: str, evidence: str) -> list[str]:
    """The figures, dates and codes of `text`, as written, that are neither in `evidence` nor derivable from it.

    Returns at most `MAX_REPORTED`."""
    evidence = drop_line_numbers(evidence)
    if has_only_quoted_figures(text, evidence):
        return []
    claims = _find_claims(text)
    return _Search(text, claims, FigureEvidence(evidence, claims)).list_unexplained() if claims else []


def asks_to_invent(request: str) -> bool:
    """Whether a request asks for invention or a guess. Such figures need no evidence."""
    return _INVENTS.search(request.lower()) is not None


def _find_claims(text: str) -> list[ValueMention]:
    """The values that a text claims, and the numbers under ten that its equations need."""
    words = () if _DIGIT.search(text) else _WORD.findall(text.lower())
    if words and not any(map(is_number_word, words)) and HOUR_WORDS.isdisjoint(words):
        return []
    plain = _LINK.sub(lambda match: " " * len(match[0]), text)
    spoken = find_spoken_times(plain)
    values = [one for one in find_values(plain, is_claim=True) if not any(_overlaps(one, time) for time in spoken)]
    return [*settle_readings(plain, values, use_whole_text=True), *spoken]


def _overlaps(value: ValueMention, time: TimeMention) -> bool:
    return value.start < time.end and time.start < value.end


class _Search:
    """The search for the unexplained figures of one text."""

    def __init__(self, text: str, claims: Sequence[ValueMention], evidence: FigureEvidence) -> None:
        self._text = text
        self._evidence = evidence
        self._labels = Labels(text, evidence.text)
        self._numbers = [one for one in claims if isinstance(one, NumberMention)]
        self._claims = [one for one in claims if self._is_claim(one)]
        self._explained: list[NumberMention] = []
        self._sentences = [(piece.start, piece.end) for piece in split_pieces(text)]

    def list_unexplained(self) -> list[str]:
        """The unexplained figures in order, each once."""
        equations = find_equations(self._text, self._numbers)
        wrong = [one.results[0] for one in equations if not one.is_right]
        pending = [one for one in self._claims if one not in wrong and not self._is_known(one)]
        unexplained_ids = {id(one) for one in (*pending, *wrong)}
        self._explained += [one for one in self._numbers if id(one) not in unexplained_ids]
        if pending:
            pending = self._remove_derived(pending, equations)
        unexplained = sorted((*pending, *wrong), key=lambda one: one.start)
        return list(dict.fromkeys(map(_get_shown, unexplained)))[:MAX_REPORTED]

    def _remove_derived(self, pending: list[ValueMention], equations: Sequence[Equation]) -> list[ValueMention]:
        """The claims that stay unexplained. An explained one may explain another, so that it is tried twice."""
        results = [number for one in equations if one.is_right for number in one.results]
        factors = [number for one in equations if one.is_right for number in one.operands]
        for _ in range(2):
            local = KnownValues(*(one.text for one in self._explained), by_language=True)
            dates = DerivedDates(self._evidence.known, local)
            left: list[ValueMention] = []
            for one in pending:
                if one in results or local.contains(one, ignore_sign=True) or self._is_derived(one, factors, dates):
                    self._explained += [one] if isinstance(one, NumberMention) else []
                    continue
                left.append(one)
                if len(left) == 2 * MAX_REPORTED:
                    break
            if len(left) == len(pending):
                break
            pending = left
        return pending

    def _is_claim(self, mention: ValueMention) -> bool:
        match mention:
            case DateMention(readings=readings):
                return all(one.day is not None or one.year is not None for one in readings)
            case CodeMention(text=text):
                if mention.is_number or _LONG_CODE.search(text) is not None or self._is_dotted_claim(mention):
                    return True
                return has_code_of_shape(text, self._evidence.text)
            case NumberMention():
                return self._is_figure(mention)
            case TimeMention(start=start):
                return not _OFFSET.search(self._text[max(0, start - 6) : start])

    def _is_dotted_claim(self, mention: CodeMention) -> bool:
        """Whether a code is a version or an address of which the evidence has a sister: 3.11.9 beside 3.11.4.

        One of which it has none is mostly an example, and one that begins a line the number of a heading."""
        line_start = self._text.rfind("\n", 0, mention.start) + 1
        if not self._text[line_start : mention.start].strip(" \t#*>-") or not _DOTTED.fullmatch(mention.text):
            return False
        return has_sister(mention.text, self._evidence.text)

    def _is_figure(self, mention: NumberMention) -> bool:
        """Whether a number is more than a count under ten, a line number or a word that may be no number."""
        if self._text[mention.start - 1 : mention.start] == "^":  # an exponent
            return False
        whole = mention.value == mention.value.to_integral_value()
        if mention.is_word:
            return whole and abs(mention.value) > 12 and self._is_whole_word(mention)
        is_count = mention.unit is None or mention.unit.dimension in COUNT_UNITS
        if whole and abs(mention.value) < 10 and is_count and len(mention.readings) == 1:
            return False
        return not self._labels.cover(mention)

    def _is_whole_word(self, mention: NumberMention) -> bool:
        """Whether no other number word is beside this one, which would make it a part of another number."""
        if _CLOCK_WORD.match(self._text, mention.end):
            return False
        before = re.findall(r"[^\W\d_]+", self._text[max(0, mention.start - 20) : mention.start].lower())[-2:]
        after = re.findall(r"[^\W\d_]+", self._text[mention.end : mention.end + 20].lower())[:2]
        beside = {*before[-1:], *after[:1], *(before[:1] if before[-1:] in (["and"], ["et"], ["och"]) else ())}
        return not any(word in SCALES or word in _NUMBER_NEIGHBOURS for word in beside)

    def _is_known(self, mention: ValueMention) -> bool:
        evidence_figures = self._evidence.known
        if evidence_figures.contains(mention, ignore_sign=True, ignore_unit=True):
            return True
        if isinstance(mention, TimeMention):
            return any(map(self._is_known_time, self._list_readings(mention)))
        if isinstance(mention, DateMention):
            return (
                self._dates.explain(mention)
                or self._dates.explain_named_day(mention, self._text)
                or self._instants.explain(mention)
            )
        if isinstance(mention, NumberMention) and (self._dates.has_any(mention.dates) or self._is_in_scale(mention)):
            return True
        if names_known_period(self._text, mention.start, evidence_figures):
            return True
        if isinstance(mention, NumberMention) and (
            self._is_short_year(mention)
            or self._is_known_clock(mention)
            or self._is_year_before(mention)
            or is_regrouped(self._text, mention, self._evidence.digit_groups)
        ):
            return True
        return isinstance(mention, NumberMention) and self._dates.explain_number(mention)

    def _is_year_before(self, mention: NumberMention) -> bool:
        """Whether a number is the year before a known one, of which the evidence gives figures without naming it."""
        if mention.unit is not None or not mention.text.isdigit():
            return False
        year = int(mention.value)
        return year + 1 in self._evidence.known.years and self._evidence.comparatives.has_period_before

    def _is_known_clock(self, mention: NumberMention) -> bool:
        """Whether a number without a unit is a known time that is written with a point: 16.45."""
        clock = _CLOCK.fullmatch(mention.text)
        return clock is not None and TimeValue(int(clock[1]), int(clock[2])) in self._evidence.known.times

    def _list_readings(self, mention: TimeMention) -> list[TimeMention]:
        """A time of day, in both halves of the day if it is in words."""
        is_spoken = _DIGIT.search(mention.text) is None or not CLOCK_WORDS.isdisjoint(mention.text.lower().split())
        return [replace(mention, value=half) for half in list_halves(mention.value)] if is_spoken else [mention]

    def _is_known_time(self, time: TimeMention) -> bool:
        evidence = self._evidence
        if evidence.known.contains(time) or time.value in evidence.spoken_times or self._dates.explain(time):
            return True
        return self._instants.explain(time) or evidence.known.has_span(time)

    def _is_in_scale(self, mention: NumberMention) -> bool:
        """Whether a bare number is a known one in a scale that the answer names elsewhere: 702 below `SEK m`."""
        if mention.unscaled is not None or mention.is_word:
            return False
        return any(self._evidence.known.contains(_scale(mention, one)) for one in self._scales)

    def _is_short_year(self, mention: NumberMention) -> bool:
        """Whether a number is a known year without its century: '87."""
        if not re.fullmatch(r"\d\d", mention.text) or not _SHORT_YEAR.search(self._text[: mention.start][-1:]):
            return False
        return any(year % 100 == int(mention.value) for year in self._evidence.known.years)

    def _is_derived(self, mention: ValueMention, factors: Sequence[NumberMention], dates: DerivedDates) -> bool:
        if isinstance(mention, DateMention | TimeMention):
            return dates.explain(mention)
        if not isinstance(mention, NumberMention) or mention.is_word or _ORDINAL.search(mention.text):
            return False
        if mention.unit is not None and dates.explain_number(mention):
            return True
        quantities = read_quantities(mention)
        if mention.unit is None:  # "that's 33 days; after five years, 36"
            units = (one.unit for one in reversed(self._list_neighbours(mention)) if one.start < mention.start)
            unit = next((one for one in units if one is not None), None)
            if unit is not None and unit.dimension in COUNT_UNITS and unit.dimension != "x":
                quantities.append(make_quantity(quantities[0].value, quantities[0].tolerance, unit))
        if mention.unscaled:  # of a table in thousands or millions
            scales = [float(one) for one in self._evidence.known.scales if 1 < one <= mention.value / mention.unscaled]
            quantities += [one.divide(scale) for one in quantities for scale in scales]
        if (count := _PER_COUNT.match(self._text, mention.end)) is not None:  # 7.5 l/100 km
            quantities += [one.divide(float(count[1])) for one in quantities]
        if any(one is mention for one in factors) and any(
            _is_conversion(one.value) or self._is_growth(one.value) for one in quantities
        ):
            return True
        return any(self._follows(one, mention) for one in quantities)

    def _follows(self, figure: Quantity, mention: NumberMention) -> bool:
        """Whether a figure is a count, or follows from its text, or from the records that its sentence is about."""
        if figure.value.is_integer() and contains_near(self._counts, figure.value, 0.0) and mention.unit is None:
            return True
        if figure.dimension in ("°C", "°F"):
            explained = [one for operand in self._explained for one in read_quantities(operand)[:1]]
            if _is_other_temperature(figure, explained):
                return True
        totals = (self._evidence.totals, self._list_other_totals(mention))
        if any(is_among(figure, one, _IN_TOTALS) for one in totals):
            return True
        start, end = self._get_sentence(mention)
        others = [one for other in self._list_neighbours(mention) for one in list_operands(other)]
        sentence = self._text[start:end]
        evidence = self._evidence
        return (
            evidence.related.explain(figure, sentence, others)
            or evidence.comparatives.explain(figure)
            or evidence.aggregates.explain(figure, sentence, others)
            or self._follows_in_steps(figure, mention, sentence)
        )

    def _follows_in_steps(self, figure: Quantity, mention: NumberMention, sentence: str) -> bool:
        """Whether a figure follows in several steps from what is said up to its sentence, alone or with the results."""
        start, end = self._get_context(mention)
        numbers = sorted((one for one in self._explained if start <= one.start < end), key=lambda one: one.start)
        context = read_operands(self._text, numbers)
        operands = self._evidence.operands
        factors = list_factors(sentence, f"{self._evidence.text}\n{self._text[start:end]}")
        factors |= {one.quantity.value for one in context if may_be_count(one.quantity)}
        each = find_divisors(sentence)
        days = self._evidence.days_of_months if "day" in each else set()
        request = find_request(self._evidence.text)
        divisors = {one.quantity.value for one in operands if not one.names.isdisjoint(each)} | days
        periods, wanted = find_periods(f"{sentence}\n{request}"), list_wanted_counts(sentence, request)
        words = Words(factors - {0}, periods, divisors - {0}, wanted)
        own = frozenset(one.base for one in context)
        merged = merge(context, operands)
        sources = ((pair_said(context), frozenset[float]()), (merged, own), (merged, frozenset[float]()))
        return any(Formulas(source, words, required).explain(figure) for source, required in sources)

    def _get_context(self, mention: NumberMention) -> tuple[int, int]:
        """The span of the mention's sentence with the two before it."""
        start, end = self._get_sentence(mention)
        starts = [one for one, _ in self._sentences if one <= start]
        return (starts[-_CONTEXT_SENTENCES:][0] if starts else start), end

    def _is_growth(self, value: float) -> bool:
        """Whether a factor of an equation is a known percentage, or what it makes of a whole: 0.25 or 1.25 of 25 %."""
        shares = list(map(float, self._evidence.known.list_quantities("%")))
        return any(contains_near(shares, 100 * one, 1e-6) for one in (value, abs(value - 1)))

    def _list_neighbours(self, mention: NumberMention) -> list[NumberMention]:
        """The explained numbers of the mention's own sentence."""
        start, end = self._get_sentence(mention)
        return [one for one in self._explained if start <= one.start < end]

    def _get_sentence(self, mention: NumberMention) -> tuple[int, int]:
        return next((one for one in self._sentences if one[0] <= mention.start < one[1]), (0, 0))

    @cached_property
    def _counts(self) -> list[float]:
        return list_counts(self._evidence.text, self._text)

    def _list_other_totals(self, mention: NumberMention) -> list[float]:
        """The totals of the answer without the mention: where it is far the largest, it would be its own sum."""
        text = self._text
        return list_totals(text[: mention.start] + " " * (mention.end - mention.start) + text[mention.end :])

    @cached_property
    def _scales(self) -> list[Decimal]:
        return sorted(find_scales(self._text))

    @cached_property
    def _instants(self) -> Instants:
        return Instants(self._evidence.text, self._text)

    @cached_property
    def _dates(self) -> DerivedDates:
        return DerivedDates(self._evidence.known)


_NUMBER_NEIGHBOURS = (frozenset(NUMBER_WORDS) - AMBIGUOUS_WORDS) | {"cent", "cents", "hundreds"}
_CONVERSIONS = (
    7, 10, 12, 24, 30, 52, 60, 100, 365, 1_000, 1_024, 1_440, 3_600, 10_000, 86_400, 1.609344, 2.54, 0.3048, 0.45359237,
    3.6, 3.785412, 4.184, 28.349523, 1.8, 32,
)  # fmt: skip
"""Factors between units. They need no evidence as numbers of an equation."""


def _scale(mention: NumberMention, factor: Decimal) -> NumberMention:
    """A number of a table in thousands or millions as what it stands for."""
    readings = tuple(NumberReading(one.value * factor, one.step * factor) for one in mention.readings)
    return replace(mention, readings=readings, unscaled=mention.value)


def _is_conversion(value: float) -> bool:
    return any(abs(value - factor) <= 0.005 * factor for factor in _CONVERSIONS if value)


def _is_other_temperature(figure: Quantity, operands: Sequence[Quantity]) -> bool:
    """Whether the figure is one of the temperatures on the other scale."""
    if figure.dimension == "°F":
        return any(abs(one.value * 1.8 + sign * 32 - sign * figure.value) <= figure.tolerance + 1e-9
                   for one in operands if one.dimension == "°C" for sign in (1, -1))  # fmt: skip
    if figure.dimension == "°C":
        return any(abs((one.value - sign * 32) / 1.8 - sign * figure.value) <= figure.tolerance + 1e-9
                   for one in operands if one.dimension == "°F" for sign in (1, -1))  # fmt: skip
    return False


def _get_shown(mention: ValueMention) -> str:
    """A figure as it is reported: a number without its unit."""
    if isinstance(mention, NumberMention) and not mention.is_word:
        return get_digits(mention.text) or mention.text
    return mention.text.strip()
