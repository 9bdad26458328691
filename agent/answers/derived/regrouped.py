"""Numbers that name something, and are not written as in the evidence: `113 59` for 11359, 11.6.1 beside 11.4.2."""

import re
from bisect import bisect_right

from agent.text.numbers import NumberMention

_SPACES = " \u00a0\u2007\u2009\u202f"
_MARK = re.compile(rf"[{_SPACES}-]")
_GROUPS = re.compile(rf"(?<![\d.,])\d+(?:[{_SPACES}.-]\d+)*(?![\d.,]\d)")
_MIN_DIGITS, _MAX_DIGITS = 5, 20
_REACH = 30
_SHORT_VERSION = 3
_RUN = re.compile(r"\d+|[^\W\d_]+|[^\w]+|_+")
_CODE = re.compile(r"(?<![^\W_])[^\W_]+(?:[-_./][^\W_]+)*")
_MIN_RUNS = 3


class DigitGroups:
    """A text in which numbers are looked for in whatever groups of digits."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._joined = _MARK.sub("", text)
        # In the text, a place of the joined one lies as many characters further on as marks are before it.
        self._places = [match.start() - count for count, match in enumerate(_MARK.finditer(text))]

    def contains(self, digits: str) -> bool:
        """Whether these digits are a number of the text. A pattern for all of a long text would take far longer."""
        at = self._joined.find(digits)
        if at < 0:
            return False
        pattern = re.compile(rf"(?<![\d.,]){f'[{_SPACES}-]?'.join(digits)}(?![\d.,]\d|\d)")
        while at >= 0:
            if pattern.match(self._text, at + bisect_right(self._places, at)):
                return True
            at = self._joined.find(digits, at + 1)
        return False


def is_regrouped(text: str, mention: NumberMention, evidence: DigitGroups) -> bool:
    """Whether the digits around a number are one number of the evidence in other groups: of a post code, an account."""
    start = max(0, mention.start - _REACH)
    for match in _GROUPS.finditer(text, start, mention.end + _REACH):
        if match.start() <= mention.start < match.end() or mention.start <= match.start() < mention.end:
            digits = re.sub(r"\D", "", match[0])
            return _MIN_DIGITS <= len(digits) <= _MAX_DIGITS and evidence.contains(digits)
    return False


def has_sister(code: str, evidence: str) -> bool:
    """Whether the evidence has a code that differs in the last part only; of three parts, in the last two."""
    parts = code.lstrip("vV").split(".")
    if len(parts) == _SHORT_VERSION:
        return re.search(rf"(?<![\d.]){parts[0]}\.\d+\.\d+(?![\d.]*\.\d)", evidence) is not None
    return re.search(rf"(?<![\d.]){re.escape('.'.join(parts[:-1]))}\.\d", evidence) is not None


def has_code_of_shape(code: str, evidence: str) -> bool:
    """Whether the evidence has a code of the same letters and marks between other digits: M8x40 for M10x65."""
    shape = _describe_shape(code)
    if len(shape) < _MIN_RUNS:
        return False
    return any(_describe_shape(match[0]) == shape for match in _CODE.finditer(evidence))


def _describe_shape(code: str) -> tuple[str, ...]:
    return tuple("0" if run[0].isdecimal() else run for run in _RUN.findall(code))
