"""Number format codes (ECMA-376 part 1, 18.8.31) cut into sections and tokens."""

import contextlib
import re
from typing import Literal, NamedTuple

TokenKind = Literal[
    "text", "digit", "point", "comma", "percent", "exponent", "slash", "date", "elapsed", "general", "cell"
]


class Token(NamedTuple):
    """A piece of a format: literal text, or something that the value fills."""

    kind: TokenKind
    text: str


class Section(NamedTuple):
    """A section of a format; `condition` is an operator and a number, `locale` a Windows language code or 0, `colour`
    what the format calls it, in small letters."""

    tokens: tuple[Token, ...]
    condition: tuple[str, float] | None = None
    locale: int = 0
    colour: str = ""

    @property
    def words(self) -> str:
        """What the section writes beside the value, without white space."""
        return "".join("".join(token.text for token in self.tokens if token.kind in _WORD_KINDS).split())

    def has(self, *kinds: TokenKind) -> bool:
        """Whether one of the tokens is of these kinds."""
        return any(token.kind in kinds for token in self.tokens)


_WORD_KINDS = frozenset({"text", "percent"})
_PIECE = re.compile(
    r'"(?P<quoted>[^"]*)"?|\\(?P<escaped>.?)|_(?P<width>.?)|\*(?P<fill>.?)|\[(?P<bracket>[^\]]*)\]?'
    r"|(?P<general>General)|(?P<half>AM/PM|A/P|am/pm|a/p)|(?P<exponent>[Ee][+-])"
    r"|(?P<date>y+|m+|d+|h+|s+|Y+|M+|D+|H+|S+|e+|b+|g{1,3}(?=e))|(?P<digit>[0#?])|(?P<semicolon>;)|(?P<other>.)",
    re.IGNORECASE | re.DOTALL,
)
_CONDITION = re.compile(r"(<=|>=|<>|<|>|=)\s*(-?\d+(?:\.\d+)?)")
_ELAPSED = re.compile(r"h+|m+|s+", re.IGNORECASE)
_OTHERS: dict[str, TokenKind] = {".": "point", ",": "comma", "%": "percent", "/": "slash", "@": "cell"}

_KINDS: dict[str | None, TokenKind] = {
    "quoted": "text",
    "escaped": "text",
    "general": "general",
    "half": "date",
    "date": "date",
    "exponent": "exponent",
    "digit": "digit",
}


class _Builder:
    def __init__(self) -> None:
        self.sections: list[Section] = []
        self._tokens: list[Token] = []
        self._condition: tuple[str, float] | None = None
        self._locale = 0
        self._colour = ""

    def add(self, kind: TokenKind, text: str) -> None:
        """Adds a token; adjacent literal texts become one."""
        if kind == "text" and self._tokens and self._tokens[-1].kind == "text":
            self._tokens[-1] = Token("text", self._tokens[-1].text + text)
        elif text or kind != "text":
            self._tokens.append(Token(kind, text))

    def add_bracket(self, inner: str) -> None:
        """Adds what brackets hold: a condition, a currency and its locale, elapsed time, else a colour."""
        if match := _CONDITION.fullmatch(inner.strip()):
            self._condition = (match[1], float(match[2]))
        elif _ELAPSED.fullmatch(inner):
            self.add("elapsed", inner.lower())
        elif inner.startswith("$"):
            symbol, _, locale = inner[1:].partition("-")
            self.add("text", symbol)
            with contextlib.suppress(ValueError):
                self._locale = int(locale[-4:], 16) if locale else self._locale
        elif inner[:1].isalpha():
            self._colour = inner.strip().lower()

    def end(self) -> None:
        """Ends a section."""
        self.sections.append(Section(tuple(self._tokens), self._condition, self._locale, self._colour))
        self._tokens, self._condition, self._locale, self._colour = [], None, 0, ""


def split_format(code: str) -> tuple[Section, ...]:
    """The sections of a format code, at least one."""
    builder = _Builder()
    for match in _PIECE.finditer(code):
        kind, text = match.lastgroup, match[match.lastgroup or 0] or ""
        if kind in _KINDS:
            builder.add(_KINDS[kind], text.lower() if kind == "date" else text)
        elif kind == "width":
            builder.add("text", " ")
        elif kind == "bracket":
            builder.add_bracket(text)
        elif kind == "semicolon":
            builder.end()
        elif kind == "other":
            builder.add(_OTHERS.get(text, "text"), text)
    builder.end()
    return tuple(builder.sections[:4])
