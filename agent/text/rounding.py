"""How far a number may lie from what it stands for, by the words beside it: about, nearly, more than, at least.

A step is the place value of the last digit that a number shows: `49,000` behind "nearly" shows thousands.
"""

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Final


@dataclass(frozen=True, slots=True)
class Rounding:
    """The steps that a value may lie below and above its number; `most`, if any, is the largest share of the number
    that a step may be: "at most 30" is a limit, and not a rounded 25."""

    below: Decimal
    above: Decimal
    most: Decimal | None = None

    def measure(self, value: Decimal, step: Decimal) -> tuple[Decimal, Decimal]:
        """The distances below and above a positive number with this step."""
        is_short = 10 * step < value < _MAX_STEPS * step
        if self.below != self.above and is_short and not value % (5 * step) and value % (10 * step):
            step *= 5  # nearly 29,500 is rounded to a half of a thousand
        if self.most is not None:
            step = min(step, max(value * self.most, Decimal(1) if value == int(value) else Decimal(0)))
        return self.below * step, self.above * step


_MAX_STEPS: Final = 10**20
"""Of longer numbers no remainder is taken, for which a decimal has too few digits."""
_HALF, _TENTH, _SHORT = Decimal("0.5"), Decimal("0.1"), Decimal("0.95")
# What is nearly 15 is not said to be over 14.
ABOUT: Final = Rounding(_HALF, _HALF)
_NEAR: Final = Rounding(Decimal(1), _HALF)
_OVER: Final = Rounding(Decimal(0), _SHORT)
_UNDER: Final = Rounding(_SHORT, Decimal(0))
_LEAST: Final = Rounding(Decimal(0), Decimal(1), _TENTH)
_MOST: Final = Rounding(Decimal(1), Decimal(0), _TENTH)
_TABLE: Final = (
    (
        ABOUT,
        "about, around, approximately, approx, approx., roughly, rounded, rounded to, some, circa, ca, ca., c:a, "
        "estimated, estimated at, "
        "somewhere around, in the region of, in the order of, on the order of, of the order of, "
        "ungefär, ungefärligen, omkring, cirka, runt, kring, uppskattningsvis, i runda tal, i runda slängar, "
        "etwa, rund, ungefähr, grob, grob gerechnet, gerundet, zirka, um die, schätzungsweise, größenordnungsmäßig, "
        "environ, quelque, quelques, dans les, autour de, à peu près, approximativement, aux alentours de, "
        "de l'ordre de, grosso modo, "
        "unos, unas, alrededor de, aproximadamente",
    ),
    (
        _NEAR,
        "nearly, almost, close to, near, approaching, not quite, next to, "
        "nästan, närmare, uppemot, inemot, bortåt, "
        "fast, beinahe, nahezu, annähernd, an die, nicht ganz, "
        "presque, près de, pas loin de, casi, quasi",
    ),
    (
        _OVER,
        "over, more than, above, exceeding, exceeds, exceeded, exceed, upwards of, in excess of, north of, a good, "
        "drygt, över, mer än, fler än, gott och väl, "
        "gut, über, mehr als, oberhalb von, "
        "plus de, au-delà de, au-dessus de, dépasse, dépassent, dépassant, dépassé",
    ),
    (
        _UNDER,
        "under, below, less than, fewer than, short of, shy of, "
        "knappt, mindre än, färre än, "
        "knapp, unter, weniger als, unterhalb von, "
        "moins de, à peine, en dessous de, au-dessous de",
    ),
    (
        _LEAST,
        "at least, a minimum of, minimum, no less than, no fewer than, not less than, "
        "minst, åtminstone, inte mindre än, "
        "mindestens, wenigstens, nicht weniger als, "
        "au moins, au minimum, pas moins de",
    ),
    (
        _MOST,
        "up to, at most, a maximum of, maximum, no more than, not more than, as many as, as much as, "
        "upp till, högst, som mest, maximalt, max, inte mer än, "
        "höchstens, maximal, bis zu, nicht mehr als, "
        "jusqu'à, au plus, au maximum, pas plus de",
    ),
)
_BY_WORDS: Final = {words.strip(): rounding for rounding, listed in _TABLE for words in listed.split(", ")}
_MAX_WORDS: Final = max(words.count(" ") for words in _BY_WORDS) + 1
LOOK_BEHIND: Final = 32
"""Characters before a number that hold the words that round it."""
_SIGNS: Final = "~≈±><≥≤"
_CURRENCY: Final = re.compile(
    r"(?:[$€£¥₹*_ \u00a0\u202f]|\b(?:US|EUR|USD|GBP|CHF|SEK|NOK|DKK|JPY|INR|PLN|CZK|CNY|CAD|AUD|kr)\b)+$", re.IGNORECASE
)
_FIRST_OF_RANGE: Final = frozenset({"between", "zwischen", "mellan", "entre"})
_LAST_OF_RANGE: Final = re.compile(
    r"\b(?:between|zwischen|mellan|entre)\b[^!?;\n]{1,24}\s(?:and|und|och|et)$", re.IGNORECASE
)
_AFTER: Final = re.compile(
    r"[ \u00a0]?(?:(?P<over>\+(?!\s?[\d(])|-odd\b|odd\b|(?:or more|oder mehr|eller (?:mer|fler)|ou plus)\b)"
    r"|(?P<under>(?:or (?:less|fewer)|oder weniger|eller (?:mindre|färre)|ou moins)\b)"
    r"|(?P<about>(?:or so|or thereabouts|give or take|eller så|ungefär|environ)\b)"
    r"|,?[ \u00a0]?(?P<rounded>\(?(?:rounded|gerundet|avrundat|arrondie?)\b))",
    re.IGNORECASE,
)


def find_rounding(before: str, text: str, end: int) -> Rounding | None:
    """How the number behind `before` (the `LOOK_BEHIND` characters before it) that ends at `text[end]` is rounded.

    None if nothing beside it says that it is."""
    after = _AFTER.match(text, end) if text[end : end + 2].strip() else None
    if after is not None:
        return _OVER if after["over"] else _UNDER if after["under"] else ABOUT
    last = before.rstrip()[-1:]  # looked at first, because most numbers stand behind no such word
    if not last or not (last.isalpha() or last in f"{_SIGNS}$€£¥₹.*_"):
        return None
    before = _CURRENCY.sub("", before)
    if before[-1:] and before[-1] in _SIGNS:
        return ABOUT if before[-1] in "~≈±" else _OVER if before[-1] in ">≥" else _UNDER
    words = before.lower().replace("\u2019", "'").split()[-_MAX_WORDS:]
    for count in range(len(words), 0, -1):
        if (rounding := _BY_WORDS.get(" ".join(words[-count:]).lstrip("(\"'*_\u201c\u201e"))) is not None:
            return rounding
    if words and words[-1] in _FIRST_OF_RANGE:
        return _OVER
    return _UNDER if _LAST_OF_RANGE.search(before) else None
