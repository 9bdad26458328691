"""Words of a question that a text answers by its form rather than says: a bound for "maximum", code for "command", a
line "Against: ..." for "voted". It works one way only: who asks for a vote is answered by an abstention, not the other
way round."""

import re

from agent.text.terms import extract_terms

_BOUND_ABOVE = (
    r"\b(?:up to|at most|no more than|not more than|no longer than|not exceed\w*|never exceed\w*|exceed\w*|limited to|"
    r"limit\w*|at the latest|until|below|under|less than|within|between|or (?:less|fewer|below)|"
    r"h\u00f6gst|som mest|upp till|senast|h\u00f6chstens|maximal\w*|bis zu|sp\u00e4testens|unter|zwischen|mellan|"
    r"tills?|bis)"
    r"\b|\bh\u00f6chst\w+"
)
_BOUND_BELOW = (
    r"\b(?:at least|no less than|not less than|or (?:more|newer|later|above|over)|from|above|over|more than|between|"
    r"minst|tidigast|fr\u00e5n|mellan|mindestens|fr\u00fchestens|ab|zwischen)\b|\bmindest\w+"
)
_FORMS: tuple[tuple[str, str], ...] = (
    ("maximum max most longest latest highest h\u00f6gsta maximala l\u00e4ngst senast h\u00f6chste maximale "
     "l\u00e4ngste", _BOUND_ABOVE),
    ("minimum min least earliest lowest minsta l\u00e4gsta tidigast mindeste "
     "niedrigste fr\u00fcheste", _BOUND_BELOW),
    ("command commands kommando befehl commande comando", r"`[^`\n]+`|^\s*(?:\$|sudo)\s"),
    ("version versions versionen", r"\d"),
    ("release releases released publish published issued", r"\d{4}-\d\d-\d\d\W*$"),
    ("link url address webbadress adresse", r"https?://|www\.|@"),
    ("email e-mail mail mejl", r"@"),
    ("phone telephone telefon telefonnummer", r"\+?\d[\d ()/-]{5,}"),
    ("percentage procent prozentsatz", r"\d\s*(?:%|percent|procent|prozent)"),
    ("hourly", r"\b(?:per|an|each|every) hour\b|/\s?h\b"),
    ("daily", r"\b(?:per|a|each|every) day\b"),
    ("weekly", r"\b(?:per|a|each|every) week\b"),
    ("monthly", r"\b(?:per|a|each|every) month\b"),
    ("yearly annual", r"\b(?:per|a|each|every) (?:\w+ )?year\b"),
    ("rate rates", r"\d\s*%|[\u20ac$\u00a3]|\b(?:eur|usd|gbp|sek|percent)\b|\bper \w+"),
    ("buy buys buying purchase order ordering k\u00f6pa k\u00f6per kaufen",
     r"\b(?:price|prices|cost|costs|units?|pris\w*|kosta\w*|preis\w*|kostet)\b|[\u20ac$\u00a3]"),
    ("vote voted votes voting votera r\u00f6sta r\u00f6stade stimmte stimmten abgestimmt",
     r"\b(?:in favou?r|against|abst(?:ain|ent)\w*|for:|ayes?|nays?|nej|ja|unanimous\w*|carried|mot|avst\u00e5r|avstod|"
     r"bif\u00f6ll\w*|gegen|daf\u00fcr|dagegen|enthalt\w*|einstimmig)"),
)  # fmt: skip
_BY_TERM = {
    term: re.compile(pattern, re.IGNORECASE | re.MULTILINE)
    for words, pattern in _FORMS
    for word in words.split()
    for term in extract_terms(word)
}


_OPPOSITES: tuple[tuple[str, str], ...] = (
    ("approve approves approved accept accepted adopt adopted pass passed carried agreed",
     r"\b(?:reject|declin|refus|defeat|lost|fail|turned down|withdrawn)"),
    ("allow allowed permitted may", r"\b(?:forbid|forbidden|prohibit|not|banned|only)"),
    ("reject rejected decline declined refuse refused", r"\b(?:approv|accept|adopt|carried|passed|granted)"),
    ("open opened", r"\bclosed?\b"), ("closed close", r"\bopen"),
)  # fmt: skip
_OPPOSITE = {
    term: re.compile(pattern, re.IGNORECASE)
    for words, pattern in _OPPOSITES
    for word in words.split()
    for term in extract_terms(word)
}


def said_to_the_contrary(term: str, text: str) -> bool:
    """Whether a text answers a term of a yes-or-no question by saying the opposite."""
    pattern = _OPPOSITE.get(term)
    return pattern is not None and pattern.search(text) is not None


def said_by_form(term: str, text: str) -> bool:
    """Whether a text answers a question's term by its form."""
    pattern = _BY_TERM.get(term)
    return pattern is not None and pattern.search(text) is not None
