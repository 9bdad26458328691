"""The topic `incident`: recognises requests about incidents, in rooms that require further tools for them."""

import re
from collections.abc import Mapping
from typing import Final

TOPIC: Final = "incident"
_HINT = re.compile(
    r"(?:(?<![^\W\d_])|(?<=[a-z\d])(?=[A-Z]))"
    r"(?i:incidents?|outages?|latenc(?:y|ies)|error(?:s|ed|ing)?|sev(?:ere|erity|erities)?)"
    r"(?:(?![^\W\d_])|(?<=[a-z])(?=[A-Z]))"
)
"""Hint words of an incident. Whole words, so that "several" is none, but TimeoutError, error_rate and SEV2 hold one."""
_URGENT = re.compile(r"^\s*(?:p\s?-?\d|sev)", re.IGNORECASE)


def is_incident(text: str, facts: Mapping[str, str]) -> bool:
    """Whether a request is about an incident: by a hint word, or by its priority or severity."""
    if _HINT.search(text):
        return True
    return any(_URGENT.match(facts.get(name, "")) for name in ("priority", "severity"))
