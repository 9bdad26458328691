"""Labelled answers in four languages, each with its evidence: with true figures, and with one figure invented.

Made anew from a seed: rows of numbers as JSON, CSV, lines or prose, and sentences that repeat, round, convert or total
them in the notations of the language.
"""

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import date, timedelta

from tests.support.figure_sentences import EXTRA, MONTHS, PROSE, SENTENCES, WORDS

LANGUAGES = ("en", "de", "sv", "fr")
_NARROW, _HARD = "\u202f", "\u00a0"
_GROUPS = {
    "en": (",",),
    "de": (".", "'", " ", _HARD),
    "sv": (" ", _HARD, _NARROW),
    "fr": (" ", _HARD, _NARROW),
}
_WORD_VALUES = (31, 47, 52, 64, 73, 88, 96)


@dataclass(frozen=True)
class FigureCase:
    """An answer and its evidence. `invented` is the figure as the answer writes it; empty if all of them are true."""

    language: str
    kind: str
    evidence: str
    answer: str
    invented: str = ""


@dataclass
class _World:
    """The numbers that the evidence of one case holds."""

    random: random.Random
    language: str
    numbers: list[float] = field(default_factory=list)
    amounts: list[float] = field(default_factory=list)
    dates: list[date] = field(default_factory=list)
    evidence: str = ""

    def pick_other(self, like: float, decimals: int) -> float:
        """A number of about the size of `like` that differs from every number of the evidence."""
        while True:
            other = round(like * self.random.uniform(0.55, 1.8), decimals)
            if float(other).is_integer() and decimals and self.random.random() < 0.9:
                continue
            known = {*self.numbers, *(number * 100 for number in self.numbers), *(n / 100 for n in self.numbers)}
            if all(abs(other - one) > 0.02 * max(abs(one), 1e-9) for one in (*known, like)):
                return other

    def pick_other_date(self, like: date) -> date:
        """A date that is none of the evidence's."""
        while True:
            other = like + timedelta(self.random.randint(-200, 200))
            if all(abs((other - one).days) > 1 for one in (*self.dates, like)):
                return other


def format_number(value: float, language: str, decimals: int, pick: random.Random) -> str:
    """A number as people write it in a language."""
    group = pick.choice(_GROUPS[language])
    mark = "." if language == "en" or (group == "'" and abs(value) >= 1000) else ","
    whole, _, places = f"{abs(value):.{decimals}f}".partition(".")
    digits = f"{int(whole):,}".replace(",", group)
    return ("-" if value < 0 else "") + digits + (mark + places if places else "")


def format_money(value: float, language: str, decimals: int, pick: random.Random) -> str:
    """An amount with a currency before or after it."""
    number = format_number(value, language, decimals, pick)
    forms = {
        "en": ("${}", "€{}", "£{}", "{} dollars", "USD {}", "{} EUR"),
        "de": ("{} €", "{} Euro", "EUR {}", "CHF {}", "{} EUR"),
        "sv": ("{} kr", "{} kronor", "SEK {}", "{} SEK"),
        "fr": ("{} €", "{}\u202f€", "{} euros", "{} EUR"),
    }
    return pick.choice(forms[language]).format(number)


def format_date(day: date, language: str, pick: random.Random, *, with_year: bool = True) -> str:
    """A date, written out or in digits."""
    month = MONTHS[language].split()[day.month - 1]
    number, year = day.day, f" {day.year}" if with_year else ""
    suffix = {1: "st", 2: "nd", 3: "rd"}.get(number % 10 if number not in (11, 12, 13) else 0, "th")
    forms = {
        "en": [
            f"{month} {number}{',' + year if year else ''}",
            f"{number} {month}{year}",
            f"{month} {number}{suffix}{year}",
        ],
        "de": [f"{number}. {month}{year}"],
        "sv": [f"den {number} {month}{year}", f"{number} {month}{year}"],
        "fr": [f"{number if number > 1 else '1er'} {month}{year}"],
    }[language]
    if with_year:
        forms += {
            "en": [day.isoformat()],
            "de": [f"{day:%d.%m.%Y}", f"{number}.{day.month}.{day.year}"],
            "sv": [day.isoformat()],
            "fr": [f"{day:%d/%m/%Y}"],
        }[language]
    return pick.choice(forms)


_NAMES = (
    "Birch",
    "Nordwind",
    "Kajsa",
    "Lumen",
    "Alder",
    "Feldmark",
    "Strand",
    "Quai",
    "Rowan",
    "Talgo",
    "Ilmen",
    "Saga",
)


def iter_figure_cases(language: str, seed: int, count: int) -> Iterator[tuple[FigureCase, FigureCase]]:
    """Yields pairs of a true answer and the same answer with an invented figure."""
    pick = random.Random(f"{language} {seed}")
    kinds = list(_MAKERS)
    for number in range(count):
        yield _MAKERS[kinds[number % len(kinds)]](kinds[number % len(kinds)], language, pick)


Made = tuple[FigureCase, FigureCase]


def _make_world(language: str, pick: random.Random, own: dict[str, object], form: str = "") -> tuple[_World, str]:
    """Returns evidence of several rows, one of them with the case's `own` fields, and the name of that row."""
    names = pick.sample(_NAMES, pick.randint(3, 8))
    world = _World(pick, language)
    rows: list[dict[str, object]] = []
    for place, name in enumerate(names):
        day = date(2023, 1, 1) + timedelta(pick.randint(0, 1400))
        row: dict[str, object] = {
            "name": name,
            "amount": round(pick.uniform(120, 48_000), 2),
            "pieces": pick.randint(11, 990),
        }
        row |= {"since": day.isoformat(), **(own if place == 0 else {})}
        rows.append(row)
    for row in rows:
        world.amounts.append(float(str(row["amount"])))
        world.numbers += [float(value) for value in row.values() if isinstance(value, int | float)]
        world.dates += [
            date.fromisoformat(value[:10]) for value in row.values() if isinstance(value, str) and value[:2] == "20"
        ]
    world.evidence = _write_evidence(rows, language, pick, form)
    return world, names[0]


def _write_evidence(rows: list[dict[str, object]], language: str, pick: random.Random, form: str) -> str:
    form = form or pick.choice(("json", "csv", "lines", "prose"))
    pick.shuffle(rows)
    if form == "json":
        return json.dumps({"rows": rows}, ensure_ascii=False)
    if form == "csv":
        keys = list(dict.fromkeys(key for row in rows for key in row))
        return "\n".join([",".join(keys), *(",".join(str(row.get(key, "")) for key in keys) for row in rows)])
    if form == "lines":
        return "\n".join(f"{key}: {value}" for row in rows for key, value in row.items())
    sentences = []
    language = language if pick.random() < 0.7 else pick.choice(LANGUAGES)  # a source may be in another language
    for row in rows:
        day = format_date(date.fromisoformat(str(row["since"])), language, pick)
        amount = format_money(float(str(row["amount"])), language, 2, pick)
        pieces = format_number(float(str(row["pieces"])), language, 0, pick)
        sentences.append(PROSE[language].format(name=row["name"], a=amount, b=pieces, d=day))
        extra = [
            (key, _localize(value, language, pick))
            for key, value in row.items()
            if key not in ("name", "amount", "pieces", "since")
        ]
        sentences += [EXTRA[language].format(name=row["name"], key=key, x=value) for key, value in extra]
    return "\n".join(sentences)


def _localize(value: object, language: str, pick: random.Random) -> object:
    """A number as prose writes it; a decimal that has three places is written like thousands elsewhere."""
    if isinstance(value, float):
        return format_number(value, language, len(str(value).partition(".")[2]), pick)
    return value


def _pair(kind: str, world: _World, evidence: str, true: str, false: str, invented: str) -> Made:
    language = world.language
    return FigureCase(language, kind, evidence, true), FigureCase(language, kind, evidence, false, invented)


def _say(kind: str, language: str, **words: str) -> str:
    return SENTENCES[kind][language].format(**words)


def _make_number(
    low: float, high: float, decimals: int, write: Callable[[float, str, int, random.Random], str] = format_number,
    *, factor: float = 1.0, shown: int | None = None, own_decimals: int | None = None,
) -> Callable[[str, str, random.Random], Made]:  # fmt: skip
    """A maker of sentences with one number: `factor` times the evidence's, with `shown` decimals."""
    places = decimals if shown is None else shown

    def make(kind: str, language: str, pick: random.Random) -> Made:
        value = round(pick.uniform(low, high), decimals if own_decimals is None else own_decimals)
        value = int(value) if decimals == 0 and own_decimals is None else value
        world, name = _make_world(language, pick, {"figure": value})
        stored = round(value * factor, places)
        false = world.pick_other(stored, places)
        state = pick.getstate()
        true_text = write(stored, language, places, pick)
        pick.setstate(state)
        false_text = write(false, language, places, pick)
        sentence = kind.partition("/")[0]
        return _pair(
            kind, world, world.evidence,
            _say(sentence, language, name=name, x=true_text),
            _say(sentence, language, name=name, x=false_text), false_text,
        )  # fmt: skip

    return make


def _make_date(*, with_year: bool) -> Callable[[str, str, random.Random], Made]:
    def make(kind: str, language: str, pick: random.Random) -> Made:
        day = date(2024, 1, 1) + timedelta(pick.randint(0, 1500))
        world, name = _make_world(language, pick, {"until": day.isoformat()})
        world.dates = [
            one.replace(year=day.year) if not with_year and (one.month, one.day) != (2, 29) else one
            for one in world.dates
        ]
        true = format_date(day, language, pick, with_year=with_year)
        false = format_date(world.pick_other_date(day), language, pick, with_year=with_year)
        return _pair(kind, world, world.evidence, _say("date", language, name=name, x=true),
                     _say("date", language, name=name, x=false), false)  # fmt: skip

    return make


def _make_time(kind: str, language: str, pick: random.Random) -> Made:
    hour, minute = pick.randint(7, 18), pick.choice((5, 10, 15, 20, 40, 45, 50))
    world, name = _make_world(language, pick, {"start": f"2026-03-0{pick.randint(1, 9)}T{hour:02}:{minute:02}:00"})
    form = {"en": "{}:{:02}", "de": "{}:{:02}", "sv": "{:02}.{:02}", "fr": "{}h{:02}"}[language]
    false = form.format(hour % 12 + 8, minute + 7)
    return _pair(kind, world, world.evidence, _say("time", language, name=name, x=form.format(hour, minute)),
                 _say("time", language, name=name, x=false), false)  # fmt: skip


def _make_hours(kind: str, language: str, pick: random.Random) -> Made:
    hours = pick.randint(3, 30) / 2 + 10
    world, name = _make_world(language, pick, {"duration": f"{int(hours * 60)} min"})
    false = format_number(world.pick_other(hours, 1), language, 1, pick)
    return _pair(kind, world, world.evidence,
                 _say("hours", language, name=name, x=format_number(hours, language, 1, pick)),
                 _say("hours", language, name=name, x=false), false)  # fmt: skip


def _make_range(kind: str, language: str, pick: random.Random) -> Made:
    low, high = pick.randint(1_100, 4_000), pick.randint(4_100, 9_900)
    world, name = _make_world(language, pick, {"from": low, "to": high})
    state = pick.getstate()
    group = format_number(low, language, 0, pick)
    pick.setstate(state)
    true = format_number(high, language, 0, pick)
    pick.setstate(state)
    false = format_number(world.pick_other(high, 0), language, 0, pick)
    return _pair(kind, world, world.evidence, _say("range", language, name=name, y=group, x=true),
                 _say("range", language, name=name, y=group, x=false), false)  # fmt: skip


def _make_word(kind: str, language: str, pick: random.Random) -> Made:
    words = WORDS[language].split()
    place = pick.randrange(len(words))
    world, name = _make_world(language, pick, {"staff": _WORD_VALUES[place]})
    false = next(word for word, value in zip(words, _WORD_VALUES, strict=True)
                 if all(abs(value - one) > 1 for one in world.numbers))  # fmt: skip
    return _pair(kind, world, world.evidence, _say("word", language, name=name, x=words[place]),
                 _say("word", language, name=name, x=false), false)  # fmt: skip


def _make_total(kind: str, language: str, pick: random.Random) -> Made:
    world, _ = _make_world(language, pick, {}, form=pick.choice(("json", "csv")))
    amounts = world.amounts
    total = sum(amounts) if kind.endswith("sum") else sum(amounts) / len(amounts)
    false = format_number(world.pick_other(total, 2), language, 2, pick)
    return _pair(kind, world, world.evidence, _say("total", language, x=format_number(total, language, 2, pick)),
                 _say("total", language, x=false), false)  # fmt: skip


def _make_difference(kind: str, language: str, pick: random.Random) -> Made:
    before, after = pick.randint(1_000, 5_000), pick.randint(6_000, 19_000)
    world, name = _make_world(language, pick, {"before": before, "after": after})
    y, z, x = (format_number(one, language, 0, pick) for one in (before, after, after - before))
    false = format_number(world.pick_other(after - before, 0), language, 0, pick)
    return _pair(kind, world, world.evidence, _say("difference", language, name=name, y=y, z=z, x=x),
                 _say("difference", language, name=name, y=y, z=z, x=false), false)  # fmt: skip


def _make_pair_sum(kind: str, language: str, pick: random.Random) -> Made:
    """The sum or the difference of two amounts that the answer does not name."""
    world, _ = _make_world(language, pick, {}, form=pick.choice(("json", "csv", "lines")))
    one, other = world.amounts[:2]
    value = one + other if kind.endswith("sum") else abs(one - other)
    false = format_number(world.pick_other(value, 2), language, 2, pick)
    return _pair(kind, world, world.evidence, _say("total", language, x=format_number(value, language, 2, pick)),
                 _say("total", language, x=false), false)  # fmt: skip


def _make_deadline(kind: str, language: str, pick: random.Random) -> Made:
    """A date that lies a known number of days behind a known one."""
    day, days = date(2025, 1, 1) + timedelta(pick.randint(0, 700)), pick.choice((14, 30, 45, 60, 90))
    world, name = _make_world(language, pick, {"signed": day.isoformat(), "notice": f"{days} days"})
    true = format_date(day + timedelta(days), language, pick)
    false = format_date(world.pick_other_date(day + timedelta(days)), language, pick)
    return _pair(kind, world, world.evidence, _say("date", language, name=name, x=true),
                 _say("date", language, name=name, x=false), false)  # fmt: skip


def _make_share(kind: str, language: str, pick: random.Random) -> Made:
    part, whole = pick.randint(40, 190), pick.randint(200, 900)
    world, name = _make_world(language, pick, {"own": part, "orders": whole})
    share = 100 * part / whole
    false = format_number(world.pick_other(share, 1), language, 1, pick)
    words = {"y": str(part), "z": str(whole), "name": name}
    true = format_number(share, language, 1, pick)
    return _pair(kind, world, world.evidence, _say("share", language, **words, x=true),
                 _say("share", language, **words, x=false), false)  # fmt: skip


def _make_equation(kind: str, language: str, pick: random.Random) -> Made:
    price, count = pick.randint(120, 990) / 10, pick.randint(12, 480)
    world, name = _make_world(language, pick, {"price": price, "count": count})
    y, z = format_number(price, language, 1, pick), str(count)
    x = format_number(price * count, language, 1, pick)
    false = format_number(world.pick_other(price * count, 1), language, 1, pick)
    return _pair(kind, world, world.evidence, _say("equation", language, name=name, y=y, z=z, x=x),
                 _say("equation", language, name=name, y=y, z=z, x=false), false)  # fmt: skip


def _make_year(kind: str, language: str, pick: random.Random) -> Made:
    year = pick.randint(1921, 2008)
    world, name = _make_world(language, pick, {"founded": year})
    false = str(pick.choice([one for one in range(1905, 2021) if abs(one - year) > 2]))
    return _pair(kind, world, world.evidence, _say("year", language, name=name, x=str(year)),
                 _say("year", language, name=name, x=false), false)  # fmt: skip


def _make_ordinal(kind: str, language: str, pick: random.Random) -> Made:
    place = pick.choice((21, 23, 34, 42, 57))
    world, name = _make_world(language, pick, {"rank": place})
    form = {"en": "{}th", "de": "{}.", "sv": "{}:e", "fr": "{}e"}[language]
    false = form.format(next(one for one in (46, 38, 67, 29, 54, 76) if all(abs(one - n) > 1 for n in world.numbers)))
    return _pair(kind, world, world.evidence, _say("ordinal", language, name=name, x=form.format(place)),
                 _say("ordinal", language, name=name, x=false), false)  # fmt: skip


_MAKERS: dict[str, Callable[[str, str, random.Random], Made]] = {
    "amount/whole": _make_number(1_000, 90_000, 0, format_money),
    "amount/cents": _make_number(100, 900_000, 2, format_money),
    "quantity": _make_number(1_000, 9_999, 0),
    "quantity/small": _make_number(101, 999, 0),
    "weight": _make_number(1.1, 99, 3),
    "weight/rounded": _make_number(20, 900, 1, shown=1, own_decimals=4),
    "percent": _make_number(11, 98, 1),
    "percent/fraction": _make_number(0.11, 0.98, 3, factor=100, shown=1),
    "million": _make_number(1_200_000, 9_900_000, 0, factor=1e-6, shown=2),
    "thousand": _make_number(12_000, 990_000, 0, factor=1e-3, shown=1),
    "date": _make_date(with_year=True),
    "date/short": _make_date(with_year=False),
    "time": _make_time,
    "hours": _make_hours,
    "range": _make_range,
    "word": _make_word,
    "total/sum": _make_total,
    "total/average": _make_total,
    "difference": _make_difference,
    "share": _make_share,
    "pair/sum": _make_pair_sum,
    "pair/difference": _make_pair_sum,
    "deadline": _make_deadline,
    "equation": _make_equation,
    "year": _make_year,
    "ordinal": _make_ordinal,
    "table": _make_number(1_000, 90_000, 0),
    "table/decimals": _make_number(100, 9_000, 2),
}
