"""A question without what it says of the answer's form, and a question of several parts as its parts."""

import re

from agent.grounded_answers.form_patterns import LIMIT, ORDERS, is_order
from agent.grounded_answers.question import asked_of

_ASKING = (
    r"(?:(?:in|on|at|by|to|for|from|until|since|with)\s+)?(?:who|whom|whose|when|where|what|which|how|why)\b|"
    r"(?:is|are|was|were|does|do|did|can|may|must|should|has|have|will)\s+(?:there|it|they|he|she|we|you|i|the|an?)\b|"
    r"(?:vem|n\u00e4r|var|vad|hur|vilken|vilket|vilka|varf\u00f6r|wer|wann|wo|was|wie|welche[rs]?|warum|qui|quand|o\u00f9|"
    r"combien|comment|pourquoi|quel(?:le)?s?)\b"
)
_CUT = re.compile(rf"\s*[,;]?\s+(?:and|och|und|et|as well as)\s+(?={_ASKING})|\s*;\s+|(?<=\?)\s+", re.IGNORECASE)
_LISTED = re.compile(rf",\s+(?={_ASKING}).*,?\s+(?:and|och|und|et)\s+(?={_ASKING})", re.IGNORECASE)
_LIST_CUT = re.compile(rf"{_CUT.pattern}|\s*,\s+(?={_ASKING})", re.IGNORECASE)
"""A list of questions is cut at its commas too."""
_LEANS = re.compile(
    r"\b(?:it|its|they|them|their|this|that|these|those|he|him|his|she|her|den|det|dess|de|dem|sie|es|ihn|ihr|"
    r"il|elle|ils|elles)\b",
    re.IGNORECASE,
)
_LEFT_OVER = re.compile(r"^\s*(?:please\s+)?(?:of|about|for)\s+(?:the\s+)?", re.IGNORECASE)
_ONLY_ASKS = re.compile(
    r"(?:^|(?<=[.!?]))\s*(?:please\s+)?(?:answer|reply|respond|return|output|write|svara)\s*(?:it|me|that)?\s*(?=[.!?]|$)",
    re.IGNORECASE,
)
MOST_PARTS = 4


def without_form(question: str) -> str:
    """The question without its wishes for the answer's form ("in one sentence", "as JSON"): they are obeyed, and not
    looked for. As it is where nothing else is left."""
    rest = LIMIT.sub(lambda match: " " if is_order(match[0]) else match[0], question)
    for order in ORDERS:
        rest = order.sub(" ", rest)
    rest = _ONLY_ASKS.sub(" ", rest)
    rest = _LEFT_OVER.sub("", re.sub(r"\s+([.,;!?])", r"\1", " ".join(rest.split()))).strip(" ,;.:")
    return rest if any(letter.isalnum() for letter in rest) else question


def parts_of(question: str) -> list[str]:
    """The questions in a question, cut where "and" begins another; one that names nothing stays with what it was said
    with."""
    parts: list[str] = []
    listed = _LISTED.search(question) is not None
    for part in (_LIST_CUT if listed else _CUT).split(question):
        bare = part.strip(" ,;")
        if not any(letter.isalnum() for letter in bare):
            continue
        if parts and (len(parts) == MOST_PARTS or asked_of(bare).is_empty):
            parts[-1] = f"{parts[-1].rstrip('?')} and {bare}"
        else:
            parts.append(bare[:1].upper() + bare[1:])
    ends = [part if part.endswith(("?", ".", "!")) else f"{part}?" for part in parts]
    return ends if len(parts) > 1 else [question]


def leans(part: str) -> bool:
    """Whether a part of a question speaks of what was asked before ("who owns it")."""
    return _LEANS.search(part) is not None
