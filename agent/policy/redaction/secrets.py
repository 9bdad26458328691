"""Finds secrets: those of this gateway's settings, in any common encoding, and texts that look like a credential."""

import re
from functools import cache
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from agent.policy.guardrails import SecretScanner
    from agent.policy.guardrails.secrets import SecretScope

MIN_SECRET_CHARS = 8
_PLAIN_WORD = re.compile(r"[A-Za-z-]{1,12}")
"""Shorter settings, and plain words, are not treated as secrets: local servers are given `none` or `lm-studio`."""


@cache
def make_secret_finder(values: tuple[str, ...], scope: "SecretScope") -> "SecretScanner":
    """The finder of these settings' secrets, of the passwords inside URLs, and of what `scope` adds.

    `scope`: `known` adds nothing, `forms` what has the form of a provider's key, `all` also what is called a password.
    """
    from agent.policy.guardrails import SecretScanner  # noqa: PLC0415 - loaded with the first request

    parts = {part for value in values for part in (value, _find_password_in_url(value))}
    return SecretScanner(
        [part for part in parts if len(part) >= MIN_SECRET_CHARS and not _PLAIN_WORD.fullmatch(part)], scope
    )


def _find_password_in_url(value: str) -> str:
    """The password inside a URL; empty for anything else."""
    try:
        return (urlsplit(value).password or "") if "://" in value else ""
    except ValueError:
        return ""
