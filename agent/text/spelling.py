"""The spellings of a text that are compared as one: loose ones of prose, exact ones of addresses, paths and ids.

Two hosts that differ in a letter of another script are two hosts, and an invisible character makes another file of a
name. So only prose loses its case, its invisible characters and the digits of other scripts.
"""

import re
import unicodedata
from typing import Final

_QUOTES: Final = str.maketrans(dict.fromkeys("“”„‟«»‹›「」『』", '"') | dict.fromkeys("‘’‚‛`´", "'"))  # noqa: RUF001 - typographic quotes are meant
_ADDRESS: Final = re.compile(r"[@/\\]|\w\.\w")
_ID: Final = re.compile(r"(?=.*[a-z])(?=.*\d)", re.IGNORECASE | re.DOTALL)
_BETWEEN_WORDS: Final = re.compile(r"(?<=[^\W_])[-_\s]+(?=[^\W_])")
_PATH_START: Final = re.compile(r"[/\\?#]")


def normalise_spelling(text: str) -> str:
    """The text with single spaces: prose without case and invisible characters, with one kind of quotes and digits;
    hosts without case, and the rest of addresses, paths and ids as it is.
    """
    return " ".join(filter(None, map(_normalise_token, unicodedata.normalize("NFC", text).split())))


def space_words(name: str) -> str:
    """A name without case, its words with single spaces between them: `Support_Team` becomes `support team`. What is an
    address keeps its separators.
    """
    if is_address(name):
        return normalise_spelling(name)
    return _BETWEEN_WORDS.sub(" ", name.strip().casefold())


def is_address(text: str) -> bool:
    """Whether a text holds an address, a path or the name of a file."""
    return _ADDRESS.search(text) is not None


def fold_digits(text: str) -> str:
    """The text with the digits of every script as 0 to 9."""
    if text.isascii():
        return text
    return "".join(str(unicodedata.decimal(char)) if char.isdecimal() else char for char in text)


def _normalise_token(token: str) -> str:
    if is_address(token):
        scheme = token.find("://")
        path = _PATH_START.search(token, scheme + 3 if scheme >= 0 else 0)
        end = path.start() if path is not None else len(token)
        return _lower(token[:end]) + token[end:]
    if _ID.match(token):
        return _lower(token)
    folded = unicodedata.normalize("NFC", token.casefold())
    visible = "".join(char for char in folded if unicodedata.category(char) != "Cf")
    return fold_digits(visible).translate(_QUOTES)


def _lower(text: str) -> str:
    """The text in lower case, of the same length: nothing becomes two letters."""
    return "".join(lower if len(lower := char.lower()) == 1 else char for char in text)
