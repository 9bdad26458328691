"""How somebody voted: for, against, or not at all. A question for one of these is answered by no other."""

import re
from typing import Literal

Stance = Literal["for", "against", "abstained", "absent"]

_SAID: tuple[tuple[Stance, str], ...] = (
    ("abstained", r"\babst(?:ain\w*|ent\w*)|\bavstod|\bavst\u00e5r|\bavst\u00e5tt|\bnedlagda|\benth(?:ie|a)lt\w*|"
                  r"\benthaltung\w*"),
    ("against", r"\bagainst\b|\boppos(?:ed|es|ing|ition)\b|\bnays?\b|\bnoes\b|\bvoted no\b|"
                r"\br\u00f6sta\w* (?:nej|mot)\b|\bmot:|\bgegen\b|\bdagegen\b|\bgegenstimmen?\b|\bnein-stimmen?\b"),
    ("for", r"\bin favou?r\b|\bfor:|\bayes?\b|\bvot(?:e|es|ed|ing) (?:for|yes|in favou?r)\b|\bsupported\b|"
            r"\br\u00f6sta\w* (?:ja|f\u00f6r)\b|\bf\u00f6r:|\bbif\u00f6ll\w*|\bdaf\u00fcr\b|\bstimm\w* f\u00fcr\b|"
            r"\bja-stimmen?\b"),
    ("absent", r"\babsent\b|\bapologies\b|\bexcused\b|\bnot present\b|\bfr\u00e5nvarande\b|\bf\u00f6rhinder\w*|"
               r"\babwesend\b|\bentschuldigt\b"),
)  # fmt: skip
_PATTERNS = tuple((stance, re.compile(pattern, re.IGNORECASE)) for stance, pattern in _SAID)
_ASKS_WHO = re.compile(
    r"\b(?:who|whom|which (?:members?|directors?|people|parties|states|countries)|how many|vem|vilka|hur m\u00e5nga|"
    r"wer|welche|wie viele)\b",
    re.IGNORECASE,
)
_OF_VOTES = re.compile(
    r"\b(?:vot|abst|in favou?r|oppos|supported|absent|r\u00f6st|avst|fr\u00e5nvar|stimm|enth|abwesend)", re.IGNORECASE
)
_WORDS_OF_VOTES = re.compile(
    r"\b(?:vot(?:e|es|ed|ing|ers?)|abst\w+|in favou?r|against|oppos\w+|absent|r\u00f6st\w*|avst\w+|stimm\w*|enth\w+)\b",
    re.IGNORECASE,
)


def asked_stance(question: str) -> Stance | None:
    """The stance a question asks the voters of; None where it asks for none."""
    if not (_ASKS_WHO.search(question) and _OF_VOTES.search(question)):
        return None
    return next((stance for stance, pattern in _PATTERNS if pattern.search(question)), None)


def beside_votes(question: str) -> str:
    """A question without its words of voting: what was voted on."""
    return _WORDS_OF_VOTES.sub(" ", question)


def takes(stance: Stance, text: str) -> bool:
    """Whether a text says who took that stance."""
    return next(pattern for one, pattern in _PATTERNS if one == stance).search(text) is not None
