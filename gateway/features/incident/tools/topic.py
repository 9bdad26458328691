"""The topic `incident`: recognises requests about incidents, in rooms that require further tools for them."""

import re
from collections.abc import Mapping
from typing import Final

from gateway.features.incident.tools.entities import extract_entities
from gateway.features.incident.tools.priority import classify

TOPIC: Final = "incident"
_HINT = re.compile(
    r"(?:(?<![^\W\d_])|(?<=[a-z\d])(?=[A-Z]))"
    r"(?i:incidents?|outages?|latenc(?:y|ies)|error(?:s|ed|ing)?|sev(?:ere|erity|erities)?)"
    r"(?:(?![^\W\d_])|(?<=[a-z])(?=[A-Z]))"
)
"""Hint words of an incident. Whole words, so that "several" is none, but TimeoutError, error_rate and SEV2 hold one."""
_URGENT = re.compile(r"^\s*(?:p\s?-?\d|sev)", re.IGNORECASE)


MAX_READ_CHARS: Final = 10_000
"""Every request is looked at; the beginning says what it is about."""
_AFFECTED: Final = frozenset({"service", "host", "error", "symptom", "severity"})
"""What is named where something does not work, by the types of `extract_entities`."""


def is_incident(text: str, facts: Mapping[str, str]) -> bool:
    """Whether a request is about an incident: by a hint word, by its priority or severity, or because it is urgent by
    its words and names what does not work.
    """
    if _HINT.search(text):
        return True
    if any(_URGENT.match(facts.get(name, "")) for name in ("priority", "severity")):
        return True
    text = text[:MAX_READ_CHARS]
    level, _ = classify(text, {})
    return level in ("high", "critical") and any(entity.type in _AFFECTED for entity in extract_entities(text))
