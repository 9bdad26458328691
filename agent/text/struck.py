"""Text that is shown struck out, such as an old price, as Markdown marks it: `~~200~~ 150 kr`."""

from collections.abc import Iterable

MARK = "~~"


def strike_out(text: str) -> str:
    """The text with marks around its words; white space around them stays outside."""
    words = text.strip()
    if not words:
        return text
    start = text.index(words)
    return f"{text[:start]}{MARK}{words}{MARK}{text[start + len(words) :]}"


def join_pieces(pieces: Iterable[str]) -> str:
    """The text of pieces that follow each other; struck ones side by side are marked together."""
    joined: list[str] = []
    for piece in filter(None, pieces):
        if joined and piece.startswith(MARK) and joined[-1].endswith(MARK) and len(joined[-1]) > len(MARK):
            joined[-1] = joined[-1].removesuffix(MARK)
            joined.append(piece.removeprefix(MARK))
        else:
            joined.append(piece)
    return "".join(joined)
