"""Finds the mail addresses in a text that its evidence does not hold. A model that knows only a name makes one up."""

import re

MAX_REPORTED = 5
"""The search stops after this number of addresses."""
_ADDRESS = re.compile(r"(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+")


def find_unexplained_addresses(text: str, evidence: str) -> list[str]:
    """The mail addresses of `text`, as written and each once, that `evidence` holds in no notation of case."""
    explained = {address.lower() for address in _ADDRESS.findall(evidence)}
    return [one for one in dict.fromkeys(_ADDRESS.findall(text)) if one.lower() not in explained][:MAX_REPORTED]
