"""Which language a short text is written in, as far as its small words tell; enough to know when words of a claim and
of a passage can be compared."""

import re
from collections import Counter

_SMALL = {
    "en": "the of and is are to in for a an not with that it be by on was were this has have from or as at",
    "sv": "och att det en ett är som för på av med till den inte har om de i kan från var ska vid eller",
    "de": "der die das und ist nicht ein eine zu den mit von für auf im des dem sich auch werden wird sind oder",
    "fr": "le la les et est un une des pour pas que dans qui du sur au avec sont ce par il elle nous vous",
    "es": "el la los las y es un una de no que en por con para se del al son más su lo como",
}
_OF = {
    word: [name for name, words in _SMALL.items() if word in words.split()]
    for words in _SMALL.values()
    for word in words.split()
}
_WORD = re.compile(r"[^\W\d_]+")
READ_CHARS = 2_000


def tongue(text: str) -> str:
    """The language's code; empty where nothing tells."""
    counts: Counter[str] = Counter()
    for word in _WORD.findall(text[:READ_CHARS].lower()):
        for name in _OF.get(word, ()):
            counts[name] += 1
    ranked = counts.most_common(2)
    if not ranked or (len(ranked) > 1 and ranked[0][1] == ranked[1][1]):
        return ""
    return ranked[0][0]
