"""Times of day in words: "half past two", "Viertel vor fünf", "halv tre", "à quatre heures et demie", "drei Uhr".

Only what little else in a sentence means: full hours with their word, halves and quarters, and five to twenty-five
minutes past an hour, or behind a preposition of time to one ("at ten to three", but neither "from ten to three" nor
"after ten to twelve weeks").
"""

import re

from agent.text.dates import TimeMention, TimeValue
from agent.text.number_words import NUMBER_WORDS

_HOURS = {word: int(value) for word, value in NUMBER_WORDS.items() if value in range(1, 13) and len(word) > 1}
_HOURS |= {str(hour): hour for hour in range(1, 13)} | {"midi": 12, "minuit": 12}
_HOUR = "|".join(sorted(map(re.escape, _HOURS), key=len, reverse=True))
_HOUR_WORD = "|".join(sorted((word for word in _HOURS if word.isalpha()), key=len, reverse=True))
_SPACE = r"[ \t\u00a0\u202f]+"
_MINUTES = {
    word: minutes
    for minutes, words in {
        5: "five fem fünf", 10: "ten tio zehn", 20: "twenty tjugo zwanzig", 25: "twenty-five tjugofem fünfundzwanzig"
    }.items()
    for word in words.split()
}  # fmt: skip
_MINUTE = "|".join(sorted(_MINUTES, key=len, reverse=True))
_COUNTED = rf"{_SPACE}(?:{_HOUR_WORD}){_SPACE}(?!o['\u2019]clock)(?:[^\W\d_]|%)"
"""A number with what it counts: "after ten to twelve weeks" says no time."""
_PATTERN = re.compile(
    rf"""
    \bhalf{_SPACE}past{_SPACE}(?P<half_past>{_HOUR})\b
    | \b(?:a{_SPACE})?quarter{_SPACE}(?P<english>past|to){_SPACE}(?P<english_hour>{_HOUR})\b
    | \b(?:halb|halv){_SPACE}(?P<half_to>{_HOUR})\b(?!{_SPACE}(?:million|miljon|milliard|miljard))
    | \b(?:(?P<regional>drei(?:{_SPACE})?viertel)|(?<=\bum[ ])viertel){_SPACE}(?P<regional_hour>{_HOUR_WORD})\b
      (?!{_SPACE}(?:million|milliard|stunde))
    | \b(?:viertel{_SPACE}(?P<german>nach|vor)|kvart{_SPACE}(?P<swedish>över|i)){_SPACE}(?P<quarter_hour>{_HOUR})\b
    | \b(?:à|vers|dès|avant|après|jusqu['\u2019]à){_SPACE}(?P<french_hour>{_HOUR})(?:{_SPACE}heures?)?{_SPACE}
      (?P<french>et{_SPACE}demie?|et{_SPACE}quart|moins{_SPACE}le{_SPACE}quart)\b
    | \b(?P<past>{_MINUTE}){_SPACE}(?:past|nach|över){_SPACE}(?P<past_hour>{_HOUR_WORD})\b
    | (?:(?<=\bat[ ])|(?<=\bby[ ])|(?<=\buntil[ ])|(?<=\bbefore[ ])|(?<=\bafter[ ])
         |(?<=\bum[ ])|(?<=\bkl[ ])|(?<=\bklockan[ ]))
      (?P<to>{_MINUTE}){_SPACE}(?:to(?!{_COUNTED})|vor|i){_SPACE}(?P<to_hour>{_HOUR_WORD})\b
    | \b(?:klockan|klokken){_SPACE}(?P<nordic_full>{_HOUR_WORD})\b(?!{_SPACE}(?:i|över){_SPACE}(?:{_HOUR_WORD})\b)
    | \b(?P<full>{_HOUR_WORD}){_SPACE}(?:uhr|o['\u2019]clock)\b
    | \bà{_SPACE}(?P<french_full>{_HOUR_WORD}){_SPACE}heures?\b(?!{_SPACE}(?:et|moins)\b)
    """,
    re.IGNORECASE | re.VERBOSE,
)
CLOCK_WORDS = frozenset(
    {"half", "quarter", "halb", "halv", "viertel", "dreiviertel", "kvart", "demie", "demi", "quart"}
)
"""Words of which each time with a half or a quarter has one."""
HOUR_WORDS = CLOCK_WORDS | _MINUTES.keys() | {"klockan", "klokken", "uhr", "clock", "heure", "heures"}
"""Words of which each spoken time has one."""

_FULL = ("nordic_full", "full", "french_full")
_PARTED = (
    "past_hour",
    "to_hour",
    "half_past",
    "english_hour",
    "half_to",
    "quarter_hour",
    "regional_hour",
    "french_hour",
)
"""The hours of times with minutes."""


def find_spoken_times(text: str) -> list[TimeMention]:
    """The times in words of a text in order, in the first half of the day: the words leave it open."""
    return [TimeMention(match[0], match.start(), match.end(), _read(match)) for match in _PATTERN.finditer(text)]


def list_halves(time: TimeValue) -> tuple[TimeValue, TimeValue]:
    """The times of both halves of the day that words may mean."""
    return (TimeValue(time.hour % 12, time.minute), TimeValue(time.hour % 12 + 12, time.minute))


def _read(match: re.Match[str]) -> TimeValue:
    hour_word = next(match[name] for name in (*_FULL, *_PARTED) if match[name] is not None)
    hour = _HOURS[hour_word.lower()]
    if any(match[name] for name in _FULL):
        minutes = 0
    elif match["past"]:
        minutes = _MINUTES[match["past"].lower()]
    elif match["to"]:
        minutes = -_MINUTES[match["to"].lower()]
    elif match["half_past"]:
        minutes = 30
    elif match["half_to"]:
        minutes = -30
    elif match["regional_hour"]:  # "dreiviertel acht" has three of the four quarters that end at eight
        minutes = -15 if match["regional"] else -45
    elif match["french"]:
        minutes = {"e": 30 if "demi" in match["french"].lower() else 15, "m": -15}[match["french"][0].lower()]
    else:
        word = (match["english"] or match["german"] or match["swedish"]).lower()
        minutes = -15 if word in {"to", "vor", "i"} else 15
    total = (hour % 12 * 60 + minutes) % 720
    return TimeValue(total // 60, total % 60)
