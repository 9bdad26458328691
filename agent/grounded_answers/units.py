"""What a number counts, as far as that belongs to a closed set: days, euros, kilograms, percent. Two numbers are the
same only where these agree."""

import re

WORDS = {
    "second": "second seconds sec secs sekund sekunder sekunde sekunden seconde secondes",
    "minute": "minute minutes min mins minut minuter minuten",
    "hour": "hour hours hr hrs h timme timmar stunde stunden heure heures",
    "day": "day days workday workdays dag dagar dagars tag tage tagen jour jours",
    "night": "night nights natt n\u00e4tter nacht n\u00e4chte nuit nuits",
    "week": "week weeks vecka veckor veckors woche wochen semaine semaines",
    "month": "month months m\u00e5nad m\u00e5nader m\u00e5naders monat monate monaten mois",
    "year": "year years yr yrs \u00e5r \u00e5rs jahr jahre jahren an ans ann\u00e9e ann\u00e9es",
    "EUR": "eur euro euros \u20ac",
    "USD": "usd dollar dollars $",
    "GBP": "gbp \u00a3",
    "crowns": "sek nok dkk crown crowns krona kronor kroner kr",
    "CHF": "chf francs",
    "%": "% percent procent prozent",
    "mm": "mm millimetre millimetres millimeter millimeters",
    "cm": "cm centimetre centimetres centimeter centimeters",
    "m": "m metre metres meter meters",
    "km": "km kilometre kilometres kilometer kilometers",
    "mile": "mile miles",
    "g": "g gram grams gramm",
    "kg": "kg kilo kilos kilogram kilograms kilogramm",
    "tonne": "tonne tonnes ton tons",
    "litre": "l litre litres liter liters",
    "W": "w watt watts",
    "kW": "kw kilowatt kilowatts",
    "MW": "mw megawatt megawatts",
    "V": "v volt volts",
    "MB": "mb megabyte megabytes",
    "GB": "gb gigabyte gigabytes",
    "TB": "tb terabyte terabytes",
    "degree": "\u00b0 \u00b0c degree degrees grad grader",
}
"""A unit, and how it is written."""
_OF = {word: unit for unit, words in WORDS.items() for word in words.split()}
_AFTER = re.compile(
    r"[ \u00a0\u202f-]{0,2}(?:(?:full|working|calendar|business|paid|whole|more|consecutive|gross|hela|ganze)[ -])?"
    r"(?P<word>[%\u20ac$\u00a3]|\u00b0\s?C?|[^\W\d_]+)"
)
_BEFORE = re.compile(r"(?P<sign>[\u20ac$\u00a3]|\b(?:EUR|USD|GBP|SEK|NOK|DKK|CHF))[ \u00a0]?$")
_PLURAL = re.compile(r"[ \u00a0]([a-z]{3,}s)\b")


def unit_at(text: str, start: int, end: int) -> str:
    """The unit of the number `text[start:end]`; empty where it has none that is known."""
    before = _BEFORE.search(text, max(0, start - 5), start)
    if before is not None:
        return _OF.get(before["sign"].lower(), "")
    after = _AFTER.match(text, end)
    return _OF.get(after["word"].lower().replace(" ", ""), "") if after is not None else ""


def counted_at(text: str, end: int) -> str:
    """The plural behind a number ("26 managers"); empty where there is none."""
    match = _PLURAL.match(text, end)
    return match[1] if match is not None and match[1] not in _OF else ""
