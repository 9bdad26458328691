"""Computes the formulas that a file stores without a value, where they are simple: + − × ÷, SUM, AVERAGE, MIN, MAX and
COUNT over cells of the same workbook. Everything else has no value here."""  # noqa: RUF002 - signs of arithmetic

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

CellValue = str | float | bool | None
Lookup = Callable[[str, int, int], CellValue]
"""The value of a cell by sheet, row and column, both from 1. Raises `NoValueError`."""

_MAX_CELLS = 100_000
_MAX_DEPTH = 50
_MAX_LENGTH = 2_000
_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+)"
    r"|(?P<sheet>(?:'(?:[^']|'')+'|[^\W\d][\w.]*)!)?(?P<cell>\$?[A-Za-z]{1,3}\$?\d{1,7})(?![\w(])"
    r"|(?P<name>[A-Za-z][\w.]*)(?=\()|(?P<sign>[-+*/%(),:;]))"
)


class NoValueError(Exception):
    """Raised for a formula that is not simple, or that needs one that is not."""


class Reference(NamedTuple):
    """A cell: its sheet (empty: the formula's own), its row and its column, from 1."""

    sheet: str
    row: int
    column: int


def compute(formula: str, sheet: str, lookup: Lookup, *, shift: tuple[int, int] = (0, 0)) -> float:
    """The value of a formula on a sheet. `shift` are the rows and columns that a shared formula has moved.

    Raises `NoValueError`.
    """
    if len(formula) > _MAX_LENGTH:
        raise NoValueError
    parser = _Parser(_tokenize(formula.removeprefix("="), shift), sheet, lookup)
    value = parser.read_sum()
    parser.expect_end()
    return value


def find_area(formula: str) -> tuple[Reference, Reference]:
    """The first and the last cell of an area of a sheet. Raises `NoValueError` for any other formula."""
    match _tokenize(formula.removeprefix("="), (0, 0)):
        case [Reference() as cell]:
            return cell, cell
        case [Reference() as first, ":", Reference() as last]:
            return first, last
    raise NoValueError


def _tokenize(formula: str, shift: tuple[int, int]) -> "list[str | float | Reference]":
    tokens: list[str | float | Reference] = []
    place = 0
    text = formula.rstrip()
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            raise NoValueError
        place = match.end()
        if match["number"]:
            tokens.append(float(match["number"]))
        elif match["cell"]:
            tokens.append(_read_reference(match["sheet"] or "", match["cell"], shift))
        else:
            tokens.append((match["name"] or match["sign"]).upper())
    return tokens


def _read_reference(sheet: str, cell: str, shift: tuple[int, int]) -> Reference:
    match = re.fullmatch(r"(\$?)([A-Za-z]+)(\$?)(\d+)", cell)
    assert match is not None
    row = int(match[4]) + (0 if match[3] else shift[0])
    column = count_column(match[2]) + (0 if match[1] else shift[1])
    name = sheet[:-1]
    if name.startswith("'"):
        name = name[1:-1].replace("''", "'")
    return Reference(name, row, column)


def count_column(letters: str) -> int:
    """The number of a column from 1: B is 2."""
    number = 0
    for letter in letters.upper():
        number = number * 26 + ord(letter) - 64
    return number


class _Parser:
    """Reads a formula from left to right, computing as it goes."""

    def __init__(self, tokens: "Sequence[str | float | Reference]", sheet: str, lookup: Lookup) -> None:
        self._tokens = tokens
        self._sheet = sheet
        self._lookup = lookup
        self._place = 0
        self._depth = 0

    def expect_end(self) -> None:
        """Raises `NoValueError` if something is left."""
        if self._place < len(self._tokens):
            raise NoValueError

    def read_sum(self) -> float:
        """Reads terms between plus and minus."""
        value = self._read_product()
        while (sign := self._take("+", "-")) is not None:
            other = self._read_product()
            value = value + other if sign == "+" else value - other
        return value

    def _read_product(self) -> float:
        value = self._read_factor()
        while (sign := self._take("*", "/")) is not None:
            other = self._read_factor()
            if sign == "/" and other == 0:
                raise NoValueError
            value = value * other if sign == "*" else value / other
        return value

    def _read_factor(self) -> float:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise NoValueError
        if (sign := self._take("+", "-")) is not None:
            value = self._read_factor()
            value = -value if sign == "-" else value
        else:
            value = self._read_value()
            while self._take("%") is not None:
                value /= 100
        self._depth -= 1
        return value

    def _read_value(self) -> float:
        token = self._next()
        if isinstance(token, float):
            return token
        if isinstance(token, Reference):
            return self._read_number(token)
        if token == "(":  # noqa: S105 - a sign
            value = self.read_sum()
            self._expect(")")
            return value
        return self._call(token)

    def _read_number(self, reference: Reference) -> float:
        value = self._lookup(reference.sheet or self._sheet, reference.row, reference.column)
        if isinstance(value, str):
            raise NoValueError
        return float(value or 0)

    def _call(self, name: str) -> float:
        if name not in _FUNCTIONS:
            raise NoValueError
        self._expect("(")
        numbers: list[float] = []
        if self._take(")") is None:
            numbers += self._read_argument()
            while self._take(",", ";") is not None:
                numbers += self._read_argument()
            self._expect(")")
        return _FUNCTIONS[name](numbers)

    def _read_argument(self) -> list[float]:
        """Reads a range, whose texts and empty cells do not count, or a value."""
        start = self._peek()
        if isinstance(start, Reference):
            following = self._tokens[self._place + 1] if self._place + 1 < len(self._tokens) else None
            if following == ":":
                self._place += 2
                end = self._next()
                if not isinstance(end, Reference):
                    raise NoValueError
                return list(self._iter_range(start, end))
            if following in {",", ";", ")"}:
                self._place += 1
                return list(self._iter_range(start, start))
        return [self.read_sum()]

    def _iter_range(self, start: Reference, end: Reference) -> Iterator[float]:
        rows = range(min(start.row, end.row), max(start.row, end.row) + 1)
        columns = range(min(start.column, end.column), max(start.column, end.column) + 1)
        if len(rows) * len(columns) > _MAX_CELLS:
            raise NoValueError
        for row in rows:
            for column in columns:
                value = self._lookup(start.sheet or self._sheet, row, column)
                if isinstance(value, str) and value.startswith("#"):
                    raise NoValueError  # an error in a range is the result's
                if isinstance(value, float | int) and not isinstance(value, bool):
                    yield float(value)

    def _peek(self) -> "str | float | Reference | None":
        return self._tokens[self._place] if self._place < len(self._tokens) else None

    def _next(self) -> "str | float | Reference":
        token = self._peek()
        if token is None:
            raise NoValueError
        self._place += 1
        return token

    def _take(self, *signs: str) -> str | None:
        token = self._peek()
        if isinstance(token, str) and token in signs:
            self._place += 1
            return token
        return None

    def _expect(self, sign: str) -> None:
        if self._take(sign) is None:
            raise NoValueError


def _average(numbers: Sequence[float]) -> float:
    if not numbers:
        raise NoValueError
    return sum(numbers) / len(numbers)


_FUNCTIONS: dict[str, Callable[[Sequence[float]], float]] = {
    "SUM": sum,
    "AVERAGE": _average,
    "MIN": lambda numbers: min(numbers, default=0.0),
    "MAX": lambda numbers: max(numbers, default=0.0),
    "COUNT": lambda numbers: float(len(numbers)),
}
