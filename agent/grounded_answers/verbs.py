"""The verbs of a question, told by where they stand: "owns" of "Who owns it?", "send" of "How many did they send?".

They are not quoted as what documents do not speak of: "The documents don't speak of "owns"" says nothing to anybody."""

import re

from agent.text.terms import fold

_ARTICLE = r"(?:the|a|an|our|my|your|their|his|her|its|this|that|these|those|any|all|every|each|no|some)"
_OPENS = rf"(?={_ARTICLE}\b|in\b|on\b|at\b|to\b|for\b|from\b|by\b|with\b|of\b|into\b|about\b|it\b|us\b|me\b|them\b)"
_NO_ARTICLE = r"(?<!\bthe)(?<!\ban)(?<!\ba)(?<!\bof)(?<!\bin)(?<!\bour)(?<!\bfor)(?<!\bto)"
_AUXILIARY = r"(?:do|does|did|will|would|can|could|shall|should|may|might|must)"
_NO_VERB = frozenset(
    fold("""
    is are was were be been has have had do does did will would can could shall should may might must of the a an in on
    at to for from by with or and else all
    """).split()
)
_PLACES = (
    # who owns ..., who seconded ...
    re.compile(r"\bwho\s+(?:(?:has|have|had|is|was|will)\s+)?(?P<verb>[^\W\d_]+)", re.IGNORECASE),
    # what caused the ...
    re.compile(rf"^\W*what\s+(?P<verb>[^\W\d_]+)\s+{_ARTICLE}\b", re.IGNORECASE),
    # which version added ...
    re.compile(r"\b(?:which|what)\s+[^\W\d_]+\s+(?P<verb>[^\W\d_]+ed)\b", re.IGNORECASE),
    # when did Carlos join the ..., how many did they send?
    re.compile(
        rf"\b{_AUXILIARY}\b[^?.!,;]*?{_NO_ARTICLE}\s+(?P<verb>[^\W\d_]+)(?:\s+{_OPENS}|\s*[?.!]?\s*$)", re.IGNORECASE
    ),
    # was it terminated, has been approved
    re.compile(
        rf"\b(?:is|are|was|were|been|be|has|have|had)\b[^?.!,;]*?{_NO_ARTICLE}\s"
        r"(?P<verb>[^\W\d_]+(?:ed|own|ung|ilt|ught|ent|old))\b",
        re.IGNORECASE,
    ),
    # vem ansvarar ..., wer leitet ..., n\u00e4r st\u00e4nger ...
    re.compile(
        r"^\W*(?:vem|vad|n\u00e4r|var|wer|was|wann|wo|qui|quand|hvem|hvad|hva)\s+(?P<verb>[^\W\d_]+)", re.IGNORECASE
    ),
    # hur l\u00e4nge \u00e4r bastun st\u00e4ngd?
    re.compile(
        r"\b(?:\u00e4r|blir|har|ist|wird|wurde|hat)\s.*\s(?P<verb>[^\W\d_]+(?:d|t|ts|ad|at|en))\s*\?$", re.IGNORECASE
    ),
)


def verbs_of(question: str) -> frozenset[str]:
    """The verbs of a question, folded, as far as their places tell."""
    found = {fold(match["verb"]) for pattern in _PLACES for match in pattern.finditer(question)}
    return frozenset(found - _NO_VERB)
