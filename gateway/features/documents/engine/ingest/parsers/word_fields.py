"""Fields of Word that show something without a stored result: equations, symbols, buttons, and text that is not filled
in."""

import re

from gateway.features.documents.engine.ingest.parsers.symbol_fonts import convert_symbol

_SWITCH = re.compile(r'\\\*\s*(?:"[^"]*"|\S+)')
"""How the field is formatted: `\\* MERGEFORMAT`, `\\* "Font:MS Mincho"`."""
_SYMBOL = re.compile(r"(?P<place>0x[0-9a-f]+|\d+)(?:.*?\\f\s+(?:\"(?P<quoted>[^\"]*)\"|(?P<font>\S+)))?", re.IGNORECASE)
_PIECE = re.compile(
    r"\\(?P<escaped>[^A-Za-z*])|\\(?P<option>[A-Za-z]+)[ ]?-?\d*(?:\\[^A-Za-z])?[ ]*"
    r"|(?P<sign>[(),;])|(?P<text>[^\\(),;]+|\\)"
)
_MAX_DEPTH = 20
_SILENT_NAMES = (
    "ADVANCE ASK BARCODE EMBED HYPERLINK NEXT NEXTIF NUMPAGES PAGE PRIVATE RD SECTION SECTIONPAGES SET SKIPIF TA TC XE"
)
_SILENT = frozenset(_SILENT_NAMES.split())
"""Fields that show nothing by themselves, or only the number of a page."""


def shows_result(instruction: str) -> bool:
    """Whether Word shows something for a field, which it computes where no result is stored."""
    name = instruction.strip().partition(" ")[0].upper()
    return bool(name) and name not in _SILENT


def format_field(instruction: str) -> str:
    """What a field without a result shows by its instruction; empty for fields whose result only Word knows."""
    name, _, rest = instruction.strip().partition(" ")
    rest = _SWITCH.sub("", rest).strip()
    match name.upper():
        case "EQ":
            return _Equation(rest).read()
        case "SYMBOL":
            return _format_symbol(rest)
        case "MACROBUTTON" | "GOTOBUTTON":  # the first word is where it leads
            return rest.partition(" ")[2].strip()
        case "QUOTE":
            return rest.strip('"')
    return ""


def _format_symbol(rest: str) -> str:
    match = _SYMBOL.match(rest)
    if match is None:
        return ""
    place = int(match["place"], 16 if match["place"].lower().startswith("0x") else 10)
    return convert_symbol(match["quoted"] or match["font"] or "", place)


class _Equation:
    """Reads the instruction of a field `EQ`: nested calls such as `\\f(3,4)`, and text between them."""

    def __init__(self, text: str) -> None:
        self._pieces = list(_PIECE.finditer(text))
        self._place = 0

    def read(self) -> str:
        """The equation in one line."""
        parts: list[str] = []
        while self._place < len(self._pieces):
            parts.append(self._read_term(0))
        return " ".join("".join(parts).split())

    def _read_term(self, depth: int) -> str:
        """A text, a sign, or a call with its options and arguments."""
        piece = self._take()
        if piece["option"] is None:
            return piece["escaped"] or piece["sign"] or piece["text"] or ""
        options = [piece["option"].lower()]
        while (following := self._look()) is not None and following["option"] is not None:
            options.append(self._take()["option"].lower())
        following = self._look()
        if following is None or following["sign"] != "(" or depth > _MAX_DEPTH:
            return ""
        self._take()
        return _format_call(options, *self._read_arguments(depth + 1))

    def _read_arguments(self, depth: int) -> tuple[list[str], list[bool]]:
        """The arguments up to the closing bracket, and for each whether it is raised or lowered text."""
        arguments, raised = [""], [False]
        marks = {";"} if self._has_semicolon() else {","}
        while (piece := self._look()) is not None:
            if piece["sign"] == ")":
                self._take()
                break
            if piece["sign"] in marks:
                self._take()
                arguments.append("")
                raised.append(False)
                continue
            raised[-1] = raised[-1] or (piece["option"] or "").lower() == "s"
            if piece["sign"] == "(" and depth <= _MAX_DEPTH:
                self._take()
                arguments[-1] += f"({', '.join(self._read_arguments(depth + 1)[0])})"
            else:
                arguments[-1] += self._read_term(depth)
        return [one.strip() for one in arguments], raised

    def _has_semicolon(self) -> bool:
        """Whether the arguments that begin here are separated by semicolons, as where a comma is the decimal mark."""
        depth = 0
        for piece in self._pieces[self._place :]:
            depth += {"(": 1, ")": -1}.get(piece["sign"] or "", 0)
            if depth < 0:
                return False
            if depth == 0 and piece["sign"] == ";":
                return True
        return False

    def _look(self) -> "re.Match[str] | None":
        return self._pieces[self._place] if self._place < len(self._pieces) else None

    def _take(self) -> "re.Match[str]":
        self._place += 1
        return self._pieces[self._place - 1]


def _format_call(options: list[str], arguments: list[str], raised: list[bool]) -> str:
    match options[0]:
        case "f":
            return "/".join(arguments)
        case "r":
            return f"√({arguments[-1]})" if len(arguments) == 1 else f"{arguments[0]}√({arguments[-1]})"
        case "o":  # the reading of a word stands above it: after it, as in other ruby texts
            above = [text for text, is_raised in zip(arguments, raised, strict=True) if is_raised]
            base = [text for text, is_raised in zip(arguments, raised, strict=True) if not is_raised]
            return "".join(base) + (f"({' '.join(above)})" if above and base else " ".join(above))
        case "a" | "l" | "i":
            return " ".join(arguments)
    return ", ".join(arguments)
