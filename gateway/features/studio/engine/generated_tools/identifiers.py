"""Names of generated tools."""

import keyword
import re
import unicodedata

from gateway.features.studio.engine.errors import ValidationError

MAX_NAME_CHARS = 48
"""As in the registry of tools."""
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_SEPARATORS = re.compile(r"[\s\-]+")


def sanitize_identifier(name: str) -> str:
    """The name as an identifier in snake case: `Part Number` and `part-number` become `part_number`.

    Raises `ValidationError` with the stage `identifier` for a name that needs more than another spelling.
    """
    quoted_name = repr(name[:60]) + ("..." if len(name) > 60 else "")
    if not name.strip():
        raise _refuse("a tool needs a name, such as convert_part_number")
    if len(name) > 4 * MAX_NAME_CHARS:
        raise _refuse(f"the name {quoted_name} has {len(name):,} characters; at most {MAX_NAME_CHARS} are allowed")
    plain = _SEPARATORS.sub("_", unicodedata.normalize("NFKC", name).strip())
    if plain != plain.lower() and "_" not in plain and not plain.isupper():
        plain = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", plain)  # camelCase
    plain = plain.lower()
    if plain.startswith("_") or plain.endswith("_"):
        plain = plain.strip("_")
    if not _NAME.fullmatch(plain):
        raise _refuse(
            f"{quoted_name} is not a tool's name: use the letters a to z, digits and underscores, and begin with a "
            "letter"
        )
    if len(plain) > MAX_NAME_CHARS:
        raise _refuse(f"the name {quoted_name} is longer than {MAX_NAME_CHARS} characters")
    if keyword.iskeyword(name.strip()) or keyword.iskeyword(plain) or keyword.issoftkeyword(plain):
        raise _refuse(f"{plain!r} is a keyword of Python; choose another name")
    return plain


def _refuse(message: str) -> ValidationError:
    return ValidationError(message, "identifier")
