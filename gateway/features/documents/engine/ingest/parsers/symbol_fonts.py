"""Characters of the fonts Symbol and Wingdings, which have places of their own, as Unicode; bullets with a meaning."""

import unicodedata

_SYMBOL_20 = " !∀#∃%&∋()∗+,−./0123456789:;<=>?≅ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ[∴]⊥_‾αβχδεφγηιϕκλμνοπθρστυϖωξψζ{|}∼"  # noqa: RUF001 - the font's own letters
_SYMBOL_A0 = "€ϒ′≤⁄∞ƒ♣♦♥♠↔←↑→↓°±″≥×∝∂•÷≠≡≈…⏐⎯↵ℵℑℜ℘⊗⊕∅∩∪⊃⊇⊄⊂⊆∈∉∠∇®©™∏√⋅¬∧∨⇔⇐⇑⇒⇓◊⟨®©™∑"  # noqa: RUF001 - the font's own letters
_WINGDINGS = {
    0x6C: "●",
    0x6E: "■",
    0x6F: "☐",
    0x71: "☐",
    0x72: "☐",
    0xA7: "▪",
    0xA8: "☐",
    0xD8: "➢",
    0xE0: "→",
    0xF0: "⇨",
    0xFB: "✗",
    0xFC: "✓",
    0xFD: "☒",
    0xFE: "☑",
}
_PRIVATE = 0xF000
"""Word adds this to the places of a symbol font."""


def convert_symbol(font: str, place: int) -> str:
    """The character at a font's place. One that is not known stays in the private use area."""
    low = place & 0xFF if place & 0xFF00 in {0, _PRIVATE} else -1
    name = font.lower()
    if name == "symbol":
        if 0x20 <= low < 0x20 + len(_SYMBOL_20):
            return _SYMBOL_20[low - 0x20]
        if 0xA0 <= low < 0xA0 + len(_SYMBOL_A0):
            return _SYMBOL_A0[low - 0xA0]
    elif name == "wingdings" and low in _WINGDINGS:
        return _WINGDINGS[low]
    return chr(place) if 0 < place < 0x110000 and not 0xD800 <= place < 0xE000 else ""


def convert_symbol_text(font: str, text: str) -> str:
    """The text of a run in a symbol font; characters outside of its private area stay."""
    return "".join(convert_symbol(font, ord(letter)) if ord(letter) >> 8 == 0xF0 else letter for letter in text)


def read_bullet(font: str, text: str) -> str:
    """The bullet of a list's item with a space behind it if it says something of the item, as ticks, crosses and boxes
    for them do; empty for an ornament."""
    sign = convert_symbol_text(font, text).strip()
    name = unicodedata.name(sign, "") if len(sign) == 1 else ""
    return f"{sign} " if any(word in name for word in ("BALLOT", "CHECK MARK", "CROSS MARK")) else ""
