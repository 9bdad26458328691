"""Units and currencies as people write them, each with its dimension and its factor to the dimension's base unit."""

# ruff: noqa: RUF001 - the multiplication sign is meant

import re
from dataclasses import dataclass
from decimal import Decimal


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit of measurement. One of it is `factor` base units of `dimension`; units of one dimension are compared."""

    name: str
    dimension: str
    factor: Decimal


_TABLE = """
s       time        1         second seconds sec secs sekund sekunder sekunde sekunden seconde secondes segundos secondi
ms      time        0.001     ms millisecond milliseconds millisekunder millisekunden
min     time        60        minute minutes min mins minut minuter minuten minutos minuti
h       time        3600      hour hours hr hrs h timme timmar timmars stunde stunden heure heures horas ore uren timer
day     time        86400     day days workday workdays dag dagar dagars tag tage tagen jour jours día días giorni dage
week    time        604800    week weeks vecka veckor veckors woche wochen semaine semaines semanas settimane uger uker
month   months      1         month months månad månader månaders monat monate monaten mois mes meses mesi måneder
year    months      12        year years yr yrs år års jahr jahre jahren ans année années año años anni ano anos
night   nights      1         night nights natt nätter nacht nächte nuit nuits noches notti
EUR     EUR         1         eur euro euros €
cent    EUR         0.01      cent cents ct cts centime centimes
USD     USD         1         usd dollar dollars $ us$
GBP     GBP         1         gbp £
CHF     CHF         1         chf francs fr
SEK     SEK         1         sek
NOK     NOK         1         nok
DKK     DKK         1         dkk
öre     kr          0.01      öre øre
kr      kr          1         crown crowns krona kronor kroner krone kr
JPY     JPY         1         jpy yen ¥
INR     INR         1         inr rupees ₹
PLN     PLN         1         pln zł
CZK     CZK         1         czk kč
CNY     CNY         1         cny yuan rmb
CAD     CAD         1         cad
AUD     AUD         1         aud
%       %           1         % percent procent prozent pct
‰       %           0.1       ‰ promille
bp      %           0.01      bp bps basis-points basispunkte basispunkten räntepunkter baspunkter
pp      pp          1         pp percentage-points procentenheter procentenhet prozentpunkte prozentpunkten
mm      length      0.001     mm millimetre millimetres millimeter millimeters millimètre millimètres
cm      length      0.01      cm centimetre centimetres centimeter centimeters zentimeter centimètre centimètres
m       length      1         m metre metres meter meters mètre mètres metros metri
km      length      1000      km kilometre kilometres kilometer kilometers kilomètre kilomètres kilómetros chilometri
mile    length      1609.344  mile miles
mil     length      10000     mil
yard    length      0.9144    yard yards yd yds
inch    length      0.0254    inch inches
foot    length      0.3048    foot feet ft
km/h    speed       1         km/h kmh kph km/t km/tim
mph     speed       1.609344  mph
m/s     speed       3.6       m/s
knot    speed       1.852     knots knot kn knop knoten
m²      area        1         m² m2 sqm kvm kvadratmeter quadratmeter
km²     area        1000000   km² km2 sqkm quadratkilometer kvadratkilometer
ha      area        10000     ha hectare hectares hektar
acre    area        4046.8564224  acre acres
ft²     area        0.09290304  ft² ft2 sqft
mg      mass        0.000001  mg milligram milligrams milligramm
g       mass        0.001     g gram grams gramm gramme grammes
hg      mass        0.1       hg hekto hektogram
kg      mass        1         kg kilo kilos kilogram kilograms kilogramm kilogramme kilogrammes
t       mass        1000      t tonne tonnes ton tons
kt      mass        1000000   kt kiloton kilotons kilotonne kilotonnes
Mt      mass        1000000000  mt megaton megatons megatonne megatonnes
lb      mass        0.45359237  lb lbs
oz      mass        0.028349523125  oz ounce ounces
ml      volume      0.001     ml millilitre millilitres milliliter
cl      volume      0.01      cl
dl      volume      0.1       dl
l       volume      1         l litre litres liter liters
m³      volume      1000      m³ m3 kubikmeter
cm³     volume      0.001     cm³ cm3 cc
gallon  volume      3.785411784  gallon gallons gal
W       power       1         w watt watts
kW      power       1000      kw kilowatt kilowatts
MW      power       1000000   mw megawatt megawatts
GW      power       1000000000  gw gigawatt gigawatts
TW      power       1000000000000  tw terawatt terawatts
hp      power       745.69987158  hp bhp horsepower
PS      power       735.49875  ps hk hästkrafter cv
Pa      pressure    0.00001   pa pascal
hPa     pressure    0.001     hpa mbar
kPa     pressure    0.01      kpa
MPa     pressure    10        mpa
bar     pressure    1         bar bars
psi     pressure    0.0689475729  psi
Wh      energy      0.001     wh
kWh     energy      1         kwh
MWh     energy      1000      mwh
GWh     energy      1000000   gwh
TWh     energy      1000000000  twh
V       voltage     1         v volt volts
A       current     1         ampere amperes amp amps
Hz      frequency   1         hz hertz
kHz     frequency   1000      khz
MHz     frequency   1000000   mhz
GHz     frequency   1000000000  ghz
B       bytes       0.000001  byte bytes octets
kbit    bytes       0.000125  kbit kbits kbps
Mbit    bytes       0.125     mbit mbits mbps megabit megabits
Gbit    bytes       125       gbit gbits gbps gigabit gigabits
kB      bytes       0.001     kb kilobyte kilobytes
MB      bytes       1         mb megabyte megabytes
GB      bytes       1000      gb gigabyte gigabytes
TB      bytes       1000000   tb terabyte terabytes
KiB     bytes       0.001024  kib
MiB     bytes       1.048576  mib
GiB     bytes       1073.741824  gib
TiB     bytes       1099511.627776  tib
°C      °C          1         °c ° c° degree degrees grad grader celsius
°F      °F          1         °f fahrenheit
x       x           1         times gånger mal fois veces volte x ×
"""
"""Name, dimension, factor, spellings in small letters. Exact factors only; months and days do not convert."""

UNITS: dict[str, Unit] = {}
"""Each spelling, in small letters, with its unit."""
for _line in _TABLE.strip().splitlines():
    _name, _dimension, _factor, *_spellings = _line.split()
    UNITS |= dict.fromkeys(_spellings, Unit(_name, _dimension, Decimal(_factor)))

_SI = re.compile(
    r"(?:[fpnu\u00b5\u03bcmcdhkMGT]?(?:mol|cd|Hz|Pa|lm|lx|Bq|Gy|Sv|Wh|VA|var|bar|eV|m|g|s|A|K|N|J|W|C|V|F|\u03a9|\u2126|"
    r"Ohm|S|T|H|l|L|B|bit)|rad|sr|ppm|ppb|dBm?|rpm|pH)(?:\^?-?\d|[\u00b2\u00b3])?"
)
"""Units of the SI with their prefixes, and a few that tables of measurements have beside them."""
_BETWEEN = re.compile(r"[/\u00b7*\u22c5 ]")
CURRENCIES = frozenset(
    ("EUR", "USD", "GBP", "CHF", "SEK", "NOK", "DKK", "kr", "JPY", "INR", "PLN", "CZK", "CNY", "CAD", "AUD")
)
"""The dimensions of money."""
UNITS_OF_LABELS = {"s": UNITS["seconds"], **UNITS}
"""The spellings in labels such as `duration_s`."""
OTHER_FACTORS = {f"{letter}B": UNITS[f"{letter}ib".lower()].factor for letter in "kMGT"} | {
    "hp": UNITS["ps"].factor,
    "Mt": UNITS["t"].factor,
}
"""The factors of kB, MB, GB and TB where they count in powers of 1,024, of a metric horsepower, and of a metric ton,
which trade writes as MT."""
CODE_LETTERS = 3
"""Letters of a currency's code."""
_CROWNS = frozenset(("SEK", "NOK", "DKK"))
_QUALIFIER = (
    r"(?:(?:full|working|calendar|business|paid|whole|more|extra|consecutive|gross|hela|fulla|ganze|ganzen|volle|vollen|"
    r"weitere|betalda|bezahlte)[ -])?"
)
_PHRASE = (
    "percentage points?|points? de pourcentage|basis points?|points de base|per cent|pour cent|"
    r"(?:sq\.?|square) (?:ft|feet|foot|m|met(?:er|re)s?|km|kilomet(?:er|re)s?)(?!\w)|us gallons?"
)
_AFTER = re.compile(
    rf"[ \t\u00a0\u2007\u2009\u202f-]{{0,2}}{_QUALIFIER}(?P<word>{_PHRASE}|us\$|%|‰|°\s?[cf]?|"
    r"[€$£¥₹×]|m[²³]|k?m/(?:h|s|tim|t)(?![^\W\d_])|[^\W\d_]+[²³]?)",
    re.IGNORECASE,
)
_COMPOUND = re.compile(
    r"[^\W\d_]{4,}?(?P<unit>tage|tagen|dagar|dagars|stunden|timmar|wochen|veckor|monate|monaten|månader|nächte|nätter)"
)
_JOINT = re.compile(r"[ \u00a0\u202f](?:d['\u2019](?=\w)|(?:de|di|of)(?=[ \u00a0]))", re.IGNORECASE)
"""What joins a scale to its unit: "millions d'euros", "millones de euros"."""
_BEFORE = re.compile(
    r"(?:(?P<sign>US\$|[€$£¥₹])|\b(?P<code>EUR|USD|GBP|CHF|SEK|NOK|DKK|JPY|INR|PLN|CZK|CNY|CAD|AUD|kr))[ \t\u00a0]?$",
    re.IGNORECASE,
)
_PHRASES = {"per cent": "%", "pour cent": "%", "percentage point": "pp", "percentage points": "pp",
            "basis point": "bp", "basis points": "bp", "points de base": "bp", "point de pourcentage": "pp",
            "points de pourcentage": "pp", "us gallon": "gallon", "us gallons": "gallon"}  # fmt: skip


def find_unit(text: str, start: int, end: int) -> tuple[Unit | None, int, int]:
    """The unit of the number `text[start:end]`, and the span of the number with its unit.

    A currency may stand before the number. The unit is None where none is known."""
    joint = _JOINT.match(text, end) if text[end - 1 : end].isalpha() else None
    after = _AFTER.match(text, joint.end() if joint is not None else end)
    if after is not None:
        word = after["word"].lower().replace(" ", "")
        unit = UNITS.get(_PHRASES.get(after["word"].lower(), word)) or _read_area(after["word"]) or _read_compound(word)
        if word == "s" and text[end].isspace():  # right behind a number it is a plural: the 1990s
            unit = UNITS["seconds"]
        if unit is not None:
            return unit, start, after.end()
    before = _BEFORE.search(text, max(0, start - 5), start)
    if before is not None:
        return UNITS[(before["sign"] or before["code"]).lower()], before.start(), end
    return None, start, end


def _read_compound(word: str) -> Unit | None:
    """The unit of time that ends a German or Swedish compound: `Arbeitstage`, `semesterdagar`."""
    match = _COMPOUND.fullmatch(word)
    return UNITS[match["unit"]] if match is not None else None


def _read_area(phrase: str) -> Unit | None:
    """The unit of "sq ft" and "square metres"; None for other words."""
    square, _, length = phrase.lower().partition(" ")
    if square.rstrip(".") not in ("sq", "square") or length not in UNITS:
        return None
    return UNITS.get(f"{UNITS[length].name.replace('foot', 'ft')}²")


def is_currency(unit: Unit) -> bool:
    """Whether a unit is one of money, in whole or in hundredths."""
    return unit.dimension == "kr" or (len(unit.dimension) == CODE_LETTERS and unit.dimension.isupper())


def can_share_value(unit: Unit, other: Unit | None) -> bool:
    """Whether a number with `unit` can be written with `other` at the same value: a bare number fits every unit, and
    `kr` every crown."""
    if other is None or unit.name == other.name:
        return True
    return (unit.name == "kr" and other.name in _CROWNS) or (other.name == "kr" and unit.name in _CROWNS)


def is_unit(text: str) -> bool:
    """Whether a text is a unit and nothing else, as in a row of units below a header: `kg`, `mV`, `EUR/t`, `[1]`."""
    text = text.strip()
    if text[:1] == "[" and text[-1:] == "]":
        return True
    text = text[1:-1] if text[:1] == "(" and text[-1:] == ")" else text
    if text.lower() in {"x", "\u00d7"}:  # more often a mark in a cell than `times`
        return False
    parts = [part for part in _BETWEEN.split(text) if part]
    return text.lower() in UNITS or (
        bool(parts) and all(part.lower() in UNITS or _SI.fullmatch(part) for part in parts)
    )
