"""Numbers of list items in the formats that Office files name (ECMA-376 part 1, 17.18.59)."""

from collections.abc import Callable
from functools import partial

from agent.text.list_numbers import format_roman

_ONES = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_ORDINALS = {
    "one": "first", "two": "second", "three": "third", "five": "fifth", "eight": "eighth", "nine": "ninth",
    "twelve": "twelfth",
}  # fmt: skip
_ENDINGS = {1: "st", 2: "nd", 3: "rd"}
_KATAKANA = "アイウエオカキクケコサシスセソタチツテトナニヌネノハヒフヘホマミムメモヤユヨラリルレロワヲン"
_IROHA = "イロハニホヘトチリヌルヲワカヨタレソツネナラムウヰノオクヤマケフコエテアサキユメミシヱヒモセス"
_ALPHABETS = {
    "lowerLetter": "abcdefghijklmnopqrstuvwxyz",
    "upperLetter": "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
    "russianLower": "абвгдежзиклмнопрстуфхцчшщэюя",
    "russianUpper": "АБВГДЕЖЗИКЛМНОПРСТУФХЦЧШЩЭЮЯ",
    "aiueo": _KATAKANA,
    "aiueoFullWidth": _KATAKANA,
    "iroha": _IROHA,
    "irohaFullWidth": _IROHA,
    "ganada": "가나다라마바사아자차카타파하",
    "hebrew2": "אבגדהוזחטיכלמנסעפצקרשת",
    "arabicAlpha": "أبتثجحخدذرزسشصضطظعغفقكلمنهوي",
}
"""Letters that items are counted by; behind the last one they are doubled."""
_DIGITS = "〇一二三四五六七八九"
_CIRCLED = 20
"""The last number that Unicode has in a circle."""
_SPELLED = 99
"""The last number that is written in words here."""


def format_count(count: int, name: str) -> str:
    """A number in one of the formats; in digits where the format is another."""
    return _FORMATS.get(name, str)(count)


def _count_by(letters: str, count: int) -> str:
    return letters[(count - 1) % len(letters)] * ((count - 1) // len(letters) + 1) if count > 0 else str(count)


def _format_ordinal(count: int) -> str:
    return f"{count}{'th' if count // 10 % 10 == 1 else _ENDINGS.get(count % 10, 'th')}"


def _format_circled(count: int) -> str:
    return chr(ord("①") + count - 1) if 0 < count <= _CIRCLED else str(count)


def _spell(count: int, *, is_ordinal: bool) -> str:
    """A number in English words."""
    if not 0 < count <= _SPELLED:
        return str(count)
    tens, last = ("", count) if count < len(_ONES) else (_TENS[count // 10 - 2], count % 10)
    word = _ONES[last] if last else tens
    if is_ordinal:
        word = _ORDINALS.get(word) or (f"{word[:-1]}ieth" if word.endswith("y") else f"{word}th")
    return (f"{tens}-{word}" if tens and last else word).capitalize()


def _format_chinese(count: int) -> str:
    tens, ones = divmod(count, 10)
    if not 0 < count <= _SPELLED:
        return str(count)
    return ("" if not tens else "十" if tens == 1 else f"{_DIGITS[tens]}十") + (_DIGITS[ones] if ones else "")


_FORMATS: dict[str, Callable[[int], str]] = {
    "none": lambda _: "",
    "decimalZero": "{:02}".format,
    "numberInDash": "- {} -".format,
    "decimalEnclosedCircle": _format_circled,
    "lowerRoman": format_roman,
    "upperRoman": lambda count: format_roman(count).upper(),
    "ordinal": _format_ordinal,
    "ordinalText": partial(_spell, is_ordinal=True),
    "cardinalText": partial(_spell, is_ordinal=False),
    "ideographDigital": _format_chinese,
    "japaneseCounting": _format_chinese,
    "chineseCounting": _format_chinese,
    "chineseCountingThousand": _format_chinese,
    "taiwaneseCounting": _format_chinese,
    "taiwaneseCountingThousand": _format_chinese,
    **{name: partial(_count_by, letters) for name, letters in _ALPHABETS.items()},
}
