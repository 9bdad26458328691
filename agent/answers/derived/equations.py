"""Computes the equations that an answer shows: in "17.5 × 240 = 4500" the result is wrong.

Both sides may be expressions ("240 × 17.5 = 240 × 17 + 120"), with powers, roots and shares ("10 % of 4,200")."""

# ruff: noqa: RUF001, RUF002, RUF003 - the multiplication sign is meant

import math
import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from operator import attrgetter

from agent.text.numbers import NumberMention
from agent.text.superscripts import RAISED_DIGITS, lower_figures

_EQUALS = re.compile(r"\\approx|\\simeq|[=≈≃]")
_BREAK = re.compile(r"[=≈≃\n;?!]|(?<![\d%]\s):|:(?!\s\d)|\\approx|(?<=[^\W\d])[.,]\s|\.\s|,\s")
_OPERATORS = {
    "+": "+", "-": "-", "\u2212": "-", "\u2013": "-", "*": "*", "×": "*", "x": "*", "X": "*", "·": "*", "⋅": "*",
    "∗": "*",    "/": "/", "÷": "/", "∕": "/", ":": ":", "^": "^", "√": "√", "(": "(", ")": ")",
}  # fmt: skip
_LATEX = (
    (re.compile(r"\\times|\\cdot"), "*"),
    (re.compile(r"\\div"), "/"),
    (re.compile(r"\\sqrt"), "√"),
    (re.compile(r"\\[dt]?frac\{"), "("),
    (re.compile(r"\}\{"), ")/("),
    (re.compile(r"\\left|\\right|\\text|\\,|\\;|[$]"), " "),
    (re.compile(r"\{"), "("),
    (re.compile(r"\}"), ")"),
)
_TOKEN = re.compile(rf"\x00\d+%?\x00|[{RAISED_DIGITS}]+|[-+\u2212\u2013*×xX·⋅∗/÷∕:^√()](?![^\W\d_])|[^\W\d_]+|\S")
_SHARE_OF = re.compile(r"(%\x00)\s(?:of|von|vom|av|de|du|des|der)\s(?:the\s)?(?=[$€£]?\x00)", re.IGNORECASE)
_MAX_OPERANDS = 12
_MAX_SIDE_CHARS = 300
_MAX_MARKUP_CHARS = 20
"""Characters behind a result that are looked through for an operator."""
_CONTINUING = ("+", "×", "*", "·", "÷")
_MAX_READINGS = 64
_OF_LENGTHS = {"area": (2, 1.0), "volume": (3, 1000.0)}
"""How many lengths give an area or a volume, and base units in the product of as many metres."""
Token = str | int


@dataclass(frozen=True, slots=True)
class Equation:
    """An equation in an answer: the numbers on its left side, and those on its right side."""

    operands: tuple[NumberMention, ...]
    results: tuple[NumberMention, ...]
    is_right: bool


def find_equations(text: str, numbers: Sequence[NumberMention]) -> list[Equation]:
    """The equations of a text whose numbers are `numbers`, in the order of the text, computed."""
    starts = [number.start for number in numbers]

    def read(equals: re.Match[str]) -> Equation | None:
        following = bisect_left(starts, equals.end())
        if following == len(numbers):
            return None
        first = max(0, bisect_left(starts, equals.start() - _MAX_SIDE_CHARS) - 1)
        last = bisect_left(starts, equals.end() + _MAX_SIDE_CHARS)
        return _read_equation(text, equals, numbers[first:following], numbers[following : max(last, following + 1)])

    return [equation for match in _EQUALS.finditer(text) if (equation := read(match)) is not None]


def _read_equation(
    text: str, equals: re.Match[str], numbers: Sequence[NumberMention], following: Sequence[NumberMention]
) -> Equation | None:
    """The equation with this sign; `numbers` are those that may stand on its left side, `following` on its right."""
    result = following[0]
    if re.search(r"[^\W\d_]|\n", text[equals.end() : result.start].replace("\\sqrt", "")):
        return None
    start = _find_start(text, equals.start(), numbers)
    operands = [one for one in numbers if start <= one.start and one.end <= equals.start()]
    sides = _list_sides(_strip_words(_tokenize(text, start, equals.start(), operands)))
    used = [operands[token] for token in sides[0] if isinstance(token, int)] if sides else []
    is_power = bool(sides) and any(_get_operator(token) in ("^", "√") for token in sides[0])
    if not (1 if is_power else 2) <= len(used) <= _MAX_OPERANDS:
        return None
    values = [value for side in sides for value in _evaluate_readings(side, operands)]
    if not values:
        return None
    terms, right_values = _read_right_side(text, equals.end(), following)
    if any(_is_same(value, other) for value in values for other in right_values):
        return Equation(tuple(used), terms, is_right=True)
    is_right = any(_agrees(value, result, used) for value in values)
    after = text[result.end : result.end + _MAX_MARKUP_CHARS].lstrip(" *`$")
    is_term = result.is_factor or (after[:1] in _CONTINUING and not text.startswith("**", result.end))
    if not is_right and is_term:
        return None  # a term of a longer right side
    return Equation(tuple(used), (result,), is_right)


def _list_sides(tokens: Sequence[Token]) -> list[Sequence[Token]]:
    """The readings of a left side: as it is, and behind a colon, which divides or introduces."""
    if not tokens:
        return []
    colons = [place for place, part in enumerate(tokens) if part == ":"]
    shorter = tokens[colons[-1] + 1 :] if colons else ()
    return [tokens, shorter] if _is_expression(shorter) else [tokens]


def _read_right_side(
    text: str, start: int, following: Sequence[NumberMention]
) -> tuple[tuple[NumberMention, ...], list[float]]:
    """The numbers and values of the expression behind a sign of equality; none where it is a single number."""
    end = min(len(text), start + _MAX_SIDE_CHARS)
    for match in _BREAK.finditer(text, start, end):
        before = bisect_left(following, match.end(), key=attrgetter("start"))
        if not before or following[before - 1].end <= match.start():
            end = match.start()
            break
    operands = [one for one in following[:_MAX_OPERANDS] if one.end <= end]
    tokens = _plain(_tokenize(text, start, end, operands))
    for last in range(len(tokens), 2, -1):
        if _is_expression(tokens[:last]):
            terms = tuple(operands[token] for token in tokens[:last] if isinstance(token, int))
            return (terms, list(_evaluate_readings(tokens[:last], operands))) if len(terms) > 1 else ((), [])
    return (), []


def _is_same(value: float, other: float) -> bool:
    """Whether both sides have one value, but for the rounding of a term."""
    return abs(abs(value) - abs(other)) <= 1e-4 * max(abs(value), abs(other))


def _find_start(text: str, end: int, numbers: Sequence[NumberMention]) -> int:
    """Finds where the left side can begin: behind the last break that is not inside of a number."""
    start = max(0, end - _MAX_SIDE_CHARS)
    for match in reversed(list(_BREAK.finditer(text, start, end))):
        before = bisect_left(numbers, match.end(), key=attrgetter("start"))
        if not before or numbers[before - 1].end <= match.start():
            return match.end()
    return start


def _tokenize(text: str, start: int, end: int, operands: Sequence[NumberMention]) -> list[Token]:
    parts: list[str] = []
    at = start
    for number, mention in enumerate(operands):
        sign = "-" if mention.value < 0 and parts and text[at : mention.start].strip()[-1:] not in _OPERATORS else ""
        percent = "%" if mention.unit is not None and mention.unit.dimension == "%" else ""
        parts += [text[at : mention.start], sign, f"\x00{number}{percent}\x00"]
        # "17.5 ×" reads as "17.5 times": the sign is the operator here.
        at = mention.start + len(mention.text.rstrip(" \u00a0×xX")) if mention.is_factor else mention.end
    joined = "".join([*parts, text[at:end]]).replace("**", " ").replace("`", " ")
    joined = _SHARE_OF.sub(r"\1 * ", joined)
    for pattern, plain in _LATEX:
        joined = pattern.sub(plain, joined)
    return [int(token.strip("\x00%")) if "\x00" in token else token for token in _TOKEN.findall(joined)]


def _get_operator(token: Token) -> Token:
    """An operator in its plain form; "" for a word."""
    return _OPERATORS.get(token, token if token[0] in RAISED_DIGITS else "") if isinstance(token, str) else token


def _plain(tokens: Sequence[Token]) -> list[Token]:
    """The tokens without words; a raised figure is a power."""
    plain: list[Token] = []
    for token in map(_get_operator, tokens):
        if isinstance(token, str) and token[:1] in RAISED_DIGITS and token:
            plain += ["^", f"={lower_figures(token)}"]
        elif token != "":
            plain.append(token)
    return plain


def _strip_words(tokens: Sequence[Token]) -> list[Token]:
    """The longest end of the tokens that is an expression, without the words in it."""
    plain = _plain(tokens)
    for start in range(len(plain)):
        if _is_expression(plain[start:]):
            return plain[start:]
    return []


def _is_expression(tokens: Sequence[Token]) -> bool:
    """Whether numbers and operators alternate, with brackets that close. A minus sign may stand before a number."""
    depth, wants_number = 0, True
    for part in tokens:
        if isinstance(part, int) or part == "(" or part[0] == "=":
            if not wants_number:
                return False
            depth, wants_number = depth + (part == "("), part == "("
        elif part == "√":
            if not wants_number:
                return False
        elif part == ")":
            depth -= 1
            if wants_number or depth < 0:
                return False
        elif wants_number:
            return False
        else:
            wants_number = True
    return depth == 0 and not wants_number


def _evaluate_readings(tokens: Sequence[Token], operands: Sequence[NumberMention]) -> Iterator[float]:
    """Yields the value of the expression for each reading of its numbers. 20 % is 0.2, 20, or a growth by a fifth."""
    places = [token for token in tokens if isinstance(token, int)]
    choices = [_list_values(operands[place]) for place in places]
    if tokens[0] == places[0] and operands[places[0]].value < 0:  # "-5 + 17"
        choices[0] = [(-value, is_share) for value, is_share in choices[0]]
    for count, values in enumerate(product(*choices)):
        if count >= _MAX_READINGS:
            return
        try:
            yield _Evaluator(tokens, dict(zip(places, values, strict=True))).evaluate()
        except (ArithmeticError, ValueError):  # a division by zero, a power that no float holds
            continue


def _list_values(mention: NumberMention) -> list[tuple[float, bool]]:
    """The values of a number; with True for one that is a percentage."""
    values = [(abs(float(one.value)), False) for one in mention.readings]
    if mention.unscaled is not None:
        values.append((abs(float(mention.unscaled)), False))
    if mention.unit is not None and mention.unit.dimension == "%":
        values = [(value / 100, True) for value, _ in values] + values
    return values


class _Evaluator:
    """A recursive descent over the four operations, powers and roots."""

    def __init__(self, tokens: Sequence[Token], values: dict[int, tuple[float, bool]]) -> None:
        self._tokens = list(tokens)
        self._values = values
        self._at = 0

    def evaluate(self) -> float:
        """The value of a sum of products."""
        total, _ = self._read_product()
        while (sign := self._peek()) in ("+", "-"):
            self._at += 1
            value, is_share = self._read_product()
            value *= total if is_share else 1  # 100 + 25 %
            total = total + value if sign == "+" else total - value
        return total

    def _read_product(self) -> tuple[float, bool]:
        value, is_share = self._read_factor()
        while (sign := self._peek()) in ("*", "/", ":"):
            self._at += 1
            other, _ = self._read_factor()
            value, is_share = (value * other if sign == "*" else value / other), False
        return value, is_share

    def _read_factor(self) -> tuple[float, bool]:
        value, is_share = self._read_number()
        if self._peek() == "^":
            self._at += 1
            power, _ = self._read_number()
            return (value**power if value > 0 or power.is_integer() else 0.0), False
        return value, is_share

    def _read_number(self) -> tuple[float, bool]:
        part = self._tokens[self._at]
        self._at += 1
        if isinstance(part, int):
            return self._values[part]
        if part[0] == "=":  # a raised figure
            return float(part[1:]), False
        if part == "√":
            return math.sqrt(self._read_number()[0]), False
        value = self.evaluate()
        self._at += 1  # the closing bracket
        return value, False

    def _peek(self) -> Token | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None


def _agrees(value: float, result: NumberMention, operands: Sequence[NumberMention]) -> bool:
    """Whether a computed value rounds to the result that is shown, as it is, in percent, or in its scale."""
    unit = result.unit
    factors = [1.0]
    if unit is not None and unit.dimension == "%":
        factors.append(100.0)
    # "90 min × 4 = 6 h": the result may be in another unit of its dimension.
    same = [one.unit for one in operands if unit is not None and one.unit is not None]
    factors += [float(one.factor / unit.factor) for one in same if unit is not None and one.dimension == unit.dimension]
    lengths = [float(one.unit.factor) for one in operands if one.unit is not None and one.unit.dimension == "length"]
    count, base = _OF_LENGTHS.get(unit.dimension, (0, 1.0)) if unit is not None else (0, 1.0)
    if unit is not None and count and len(lengths) == count:  # "400 × 300 mm = 0.12 m²"
        factors.append(base * math.prod(lengths) / float(unit.factor))
    for reading in result.readings:
        written, near = abs(float(reading.centre)), float(reading.width) / 2
        if any(abs(abs(value) * factor - written) <= near * (1 + 1e-9) + 1e-9 for factor in factors):
            return True
    return False
