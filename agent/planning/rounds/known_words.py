"""What is known before a call: the words of the request, of what stands beside it, and of the results so far.

Loose, unlike `agent.text.own_words`: words may stand anywhere, with other endings. What they state as values, both
compare with `agent.text.stated_values`.
"""

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from datetime import tzinfo
from decimal import Decimal
from functools import cached_property
from itertools import islice

from pydantic import JsonValue

from agent.core.json_schema import get_properties
from agent.core.json_walk import iter_leaves, iter_nodes
from agent.planning.request import PlanningRequest, RoundCall
from agent.text.codes import CodeMention
from agent.text.dates import DateMention, DateValue, find_dates
from agent.text.stated_values import StatedValues
from agent.text.values import find_values
from agent.tools import ToolSpec
from agent.tools.catalogue import is_foreign, split_name

DATED_CHARS, MAX_DATED = 20_000, 200
"""Characters of each text in which dates are looked for, and of a value that may be a date."""
MAX_DIGITS = 30
MAX_SPANS = 20
MAX_OPERANDS, MAX_CHANGES = 500, 20
"""Numbers of the texts, and of the request, of which another one may be computed."""
SHORTEST_STEM = 3
"""Letters that two forms of a word share."""
WORD = re.compile(r"[^\W_]+")
_SPAN = re.compile(
    r"(?<![\w.,:/-])([1-9]\d{0,8}) ?(?:[-\u2013\u2014]|\b(?:to|through|thru|until|till|bis|tot|al?|\u00e0)\b) ?"
    r"([1-9]\d{0,8})(?![-.,:/]?\w)"
)
"""Two numbers that a span is between: "from 8 to 17", "rooms 101-105", but no date."""
MAX_SPAN = 50
"""Numbers between the ends of a span. Two ends that are further apart are other things: "transfer 100 to 5551234"."""
_WITHOUT_MEANING = frozenset({"So", "Sk", "Mn", "Cf", "Zs"})
"""Categories of emoji and what belongs to them, and of spaces."""
_CODE = re.compile(r"(?<![\w-])(?=[\w-]*\d)(?=[\w-]*[^\W\d_])[\w-]{2,40}(?![\w-])")
"""A word of letters and digits."""
_TIME_MARK = re.compile(r"^t(?=\d)", re.IGNORECASE)
_MOMENT = re.compile(r"(?<=\d\d-\d\d)t(?=\d\d:\d\d)")


def split_words(text: str) -> list[str]:
    """The words and numbers of a text in small letters; a moment such as `2026-05-19T10:00` has five."""
    return WORD.findall(_MOMENT.sub(" ", text.casefold()))


class KnownWords:
    """The words, numbers and dates of texts. A lookup takes the same time however many there are."""

    def __init__(self, texts: Iterable[str], *, zone: tzinfo | None = None, counted: Iterable[str] = ()) -> None:
        """`zone` is where the times of day in the texts are meant. `counted` are those of the user's texts in which
        "from 8 to 17" states each number between."""
        texts = list(texts)
        self._texts = texts
        self._zone = zone
        self.tokens = frozenset(token for text in texts for token in split_words(text))
        self._sorted = sorted(token for token in self.tokens if len(token) >= SHORTEST_STEM)
        self._stems = frozenset(self._sorted)
        self.spans = [span for text in counted for span in _list_spans(text)]
        self._numbers = frozenset(int(token) for token in self.tokens if token.isdecimal() and len(token) < MAX_DIGITS)

    def hold(self, token: str) -> bool:
        """Whether a word stands there, perhaps with another ending; a number must stand there as it is."""
        if token in self.tokens:
            return True
        if token.isdigit():
            return token.isdecimal() and len(token) < MAX_DIGITS and self._hold_number(int(token))
        if len(token) < SHORTEST_STEM:
            return False
        return any(token[:length] in self._stems for length in range(SHORTEST_STEM, len(token))) or self.hold_longer(
            token
        )

    def hold_longer(self, token: str) -> bool:
        """Whether a word with this beginning stands there."""
        at = bisect_left(self._sorted, token)  # the words that begin with it follow
        return len(token) >= SHORTEST_STEM and at < len(self._sorted) and self._sorted[at].startswith(token)

    def hold_signs(self, value: str) -> bool:
        """Whether a value without any word, such as `*`, stands there as it is, or each of its signs by a word of its
        name: `%` where "percent" is. "" stands everywhere, and of emoji any may be meant by "react to it"."""
        signs = [sign for sign in value if unicodedata.category(sign) not in _WITHOUT_MEANING]
        return any(value.strip() in text for text in self._texts) or all(
            any(map(self.hold, split_words(unicodedata.name(sign, "").replace("-", " ")))) for sign in signs
        )

    def _hold_number(self, number: int) -> bool:
        return number in self._numbers or any(first < number < last for first, last in self.spans)

    def hold_date(self, mention: DateMention) -> bool:
        """Whether a date stands there in any form; a month stands there with each of its days. One that names no year
        may be of any."""
        return any(_is_within(one, date) for date in mention.readings for one in self._dates.get(date.month, ()))

    def hold_quantity(self, value: str | float, label: str = "") -> bool:
        """Whether a number, date, time or currency stands there in any form, as the input `label` takes it."""
        if isinstance(value, str):
            return self._stated.hold(value, label)
        return Decimal(value).is_finite() and self._stated.hold_number(Decimal(repr(value)), label=label)

    def compute(self, value: float, by: "KnownWords") -> bool:
        """Whether a number is one of these, raised or lowered by another one of theirs or by so many percent, or times
        it: 4,200 of 4,000 and "5 percent more"."""
        wanted, numbers = Decimal(repr(value)), [*islice(self._stated.numbers, MAX_OPERANDS)]
        changes = [*islice(by._stated.numbers, MAX_CHANGES)]
        return any(
            wanted in (one + change, one - change, one * change, one * (100 + change) / 100, one * (100 - change) / 100)
            for one in numbers
            for change in changes
        )

    @cached_property
    def _stated(self) -> StatedValues:
        return StatedValues([text[:DATED_CHARS] for text in self._texts], zone=self._zone, is_loose=True)

    @cached_property
    def _dates(self) -> dict[int | None, frozenset[DateValue]]:
        """By month. Looked for only where words alone are not enough."""
        dates = (date for text in self._texts for date in find_dates(text[:DATED_CHARS]))
        readings = {reading for date in dates for reading in date.readings}
        months = {one.month for one in readings}
        return {month: frozenset(one for one in readings if one.month == month) for month in months}


def _list_spans(text: str) -> list[tuple[int, int]]:
    """The ends of the spans of a text."""
    spans = ((int(match[1]), int(match[2])) for match in islice(_SPAN.finditer(text.casefold()), MAX_SPANS))
    return [(first, last) for first, last in spans if 1 < last - first <= MAX_SPAN]


def _is_within(date: DateValue, mentioned: DateValue) -> bool:
    """Whether a date is the mentioned one, or a day of the mentioned month."""
    if date.month != mentioned.month or mentioned.day not in (None, date.day):
        return False
    return mentioned.year is None or date.year in (None, mentioned.year)


def list_known_texts(request: PlanningRequest) -> list[str]:
    """The texts that a value of a call may come from, without those of `list_today_texts`."""
    results = (call.text for call in request.rounds if not call.failed and not _tells_now(request, call))
    texts = [
        request.question,
        request.original,
        request.ground.partition("\n")[2],
        *(message.content for message in request.history),
        *(item.text for item in request.memories),
        *(one.text for one in request.earlier_results),
        *results,
        *request.replies,
        *request.named_days,
    ]
    clock = [call.text for call in request.rounds if not call.failed and _tells_now(request, call)]
    # Asked for the time, a clock is read for it. Where a text has another date, the clock was read in its place.
    is_meant = clock and _asks_for_time(request) and not any(find_dates(text[:DATED_CHARS]) for text in texts)
    return [*texts, *clock] if is_meant else texts


def list_today_texts(request: PlanningRequest) -> list[str]:
    """The texts that have today's date, which a request that names no day need not mean."""
    clock = (call.text for call in request.rounds if not call.failed and _tells_now(request, call))
    return [request.ground.partition("\n")[0], *clock]


def find_stated_day(request: PlanningRequest) -> str:
    """The day that results state, as ISO date; "" if they state none or several: of these, a small model takes the
    first."""
    results = [call.text for call in request.rounds if not call.failed and not _tells_now(request, call)]
    mentions = [mention for text in results for mention in find_dates(text[:DATED_CHARS])]
    days = [one.readings[0] for one in mentions if len(one.readings) == 1]
    stated = {day.iso for day in days if day.year is not None and day.day is not None}
    return stated.pop() if len(stated) == 1 else ""


def _tells_now(request: PlanningRequest, call: RoundCall) -> bool:
    spec = request.catalogue.get_tool(call.tool)
    return spec is not None and spec.hints.tells_now


def _asks_for_time(request: PlanningRequest) -> bool:
    """Whether words of the request fit a tool whose result is the time."""
    scores = request.catalogue.index.compute_scores(f"{request.question}\n{request.original}")
    return any(scores.get(spec.name) for spec in request.catalogue.tools if spec.hints.tells_now)


def is_known(value: JsonValue, known: KnownWords, described: KnownWords, label: str = "") -> bool:
    """Whether `known` holds all words of a value, or `described` those of a text, and `known` its dates; or `known`
    states it as a quantity, in the unit that the input `label` takes."""
    if not isinstance(value, str):
        if all(map(known.hold, split_words(str(value)))):
            return True
        return isinstance(value, int | float) and not isinstance(value, bool) and known.hold_quantity(value, label)
    words = split_words(value)
    if (all(map(described.hold, words)) if words else described.hold_signs(value)) or known.hold_quantity(value, label):
        return True
    dates = [date for date in find_dates(value) if known.hold_date(date)] if len(value) <= MAX_DATED else []
    if not dates:
        return False
    starts, ends = [date.start for date in dates], [0, *(date.end for date in dates)]
    between = (_TIME_MARK.sub("", value[end:start]) for end, start in zip(ends, [*starts, len(value)], strict=True))
    return all(map(described.hold, split_words(" ".join(between))))


def list_words_before_numbers(request: PlanningRequest) -> dict[str, frozenset[str]]:
    """For each number of the request that no result has, the words that it stands behind; "" where it comes first."""
    words = split_words(f"{request.question}\n{request.original}")
    before: dict[str, set[str]] = {}
    for previous, word in zip(["", *words], words, strict=False):
        if word.isdigit():
            before.setdefault(word, set()).add(previous)
    results = {word for call in request.rounds if before and not call.failed for word in split_words(call.text)}
    return {number: frozenset(previous) for number, previous in before.items() if number not in results}


def is_of_another_input(
    name: str, value: JsonValue, before: Mapping[str, AbstractSet[str]], others: Iterable[str]
) -> bool:
    """Whether the request gives a number only behind the names of other inputs: the 1 of "room 1" is not a flat."""
    previous = before.get(str(value).casefold())
    return previous is not None and previous <= {*others} - {*split_words(split_name(name))}


def list_input_names(spec: ToolSpec, request: PlanningRequest) -> Iterator[str]:
    """Yields the names of one word of the inputs, nested ones too, that the tools of a tool's server take."""
    for tool in request.catalogue.tools if is_foreign(spec) else ():
        for node in iter_nodes(tool.input_schema) if tool.origin == spec.origin else ():
            words = (split_words(split_name(name)) for name in get_properties(node))
            yield from (one[0] for one in words if len(one) == 1)


def list_codes(texts: Iterable[str]) -> frozenset[str]:
    """The words of letters and digits of texts, in small letters."""
    return frozenset(code.casefold() for text in texts for code in _CODE.findall(text))


def list_untouched_codes(request: PlanningRequest) -> dict[str, str]:
    """The codes of the request that no call of the run had and no result has, by their form, where it has one of that
    form only. One that was looked at may lead on to another: "move from 2A to the largest flat"."""
    named: dict[str, set[str]] = {}
    for mention in find_values(f"{request.question[:DATED_CHARS]}\n{request.original[:DATED_CHARS]}"):
        if isinstance(mention, CodeMention) and (form := write_form(mention.text)):
            named.setdefault(form, set()).add(mention.text)
    if not named:
        return {}
    given = (str(leaf) for call in request.rounds for _, leaf in iter_leaves(call.args))
    touched = list_codes((*given, *(call.text for call in request.rounds if not call.failed)))
    alone = ((form, codes.pop()) for form, codes in named.items() if len({*map(str.casefold, codes)}) == 1)
    return {form: code for form, code in alone if code.casefold() not in touched}


def write_form(value: JsonValue) -> str:
    """The form of a code, with 0 for each digit and a for each letter: `0a` of `2A`; "" for other values."""
    is_code = isinstance(value, str) and _CODE.fullmatch(value)
    kinds = ("0" if char.isdigit() else "a" if char.isalpha() else char for char in str(value))
    return "".join(kinds) if is_code else ""
