"""Proper names and identifiers of a text, and whether another text holds them.

A name is what is written with a capital where a sentence does not ask for one, what holds capitals or digits inside
("NASA", "INC-1042"), and what stands in backticks. The first word of a sentence is one unless it is among the words
sentences begin with or stands in small letters in the passages or the question: a name that nobody has said is worse
than a word that is put differently. German writes every noun with a capital; there only the last two kinds count.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable
from typing import NamedTuple

from agent.text.snowball import stem_snowball
from agent.text.stop_words import detect_question_language
from agent.text.terms import MAX_TERM_CHARS, extract_terms, fold

_TOKEN = re.compile(r"[^\W_]+(?:['\u2019.&/_-](?=[^\W_])[^\W_]+)*\+{0,2}")
_CODE = re.compile(
    r"`([^`\n]{1,200}+)`"
    r"|((?<!\w)(?:https?://|www\.)[^\s<>\"'`|\])]{0,2000}[^\s<>\"'`|\]).,;:!?]"
    r"|(?<![\w.+-])[\w.+-]{1,64}+@[\w-]{1,100}+(?:\.[\w-]{1,60}+){1,6}+)"
)
"""What stands in backticks, web addresses, mail addresses: looked up as they are."""
_POSSESSIVE = re.compile(r"['\u2019](?:s|S)?$")
_SENTENCE_START = re.compile(
    r"(?:^|[.!?:;\u2026][\"'\u201d\u2019\u00bb)*_]*\s+|\n\s*|[|(\[\u201c\u201e\"\u00ab]\s*|^\W+)$"
)
_GERMAN = frozenset(
    ("der", "die", "das", "und", "ist", "nicht", "ein", "eine", "sind", "wird", "werden", "mit", "von", "zu", "den",
     "dem", "im", "auf", "für")
)  # fmt: skip
_OPENERS = frozenset(
    fold("""
    hello hi hey hej hallo sure certainly according accordingly additional additionally after afterwards all
    allow allowed also although always among an and annual another answer any anyone anything apart applicants
    applications apply approval are article as ask at available based because before below besides between
    beyond both but by call can certain changes check choose claims click colleagues companies company compared
    consequently contact contrary costs currently customers data dear depending details do document documents
    does due during each either else employee employees employers employment enter especially even every
    everybody everyone everything examples except expenses fees files finally find first firstly follow
    following for from further furthermore generally given go good guests had have hence her here hers his how
    however i if in include included including indeed information instead is it items its keep last lastly later
    let like likewise managers many members moreover most much must neither never nevertheless next no nobody
    none nor normally not note nothing now of on once one only or ordinarily other others otherwise our out
    overall part participants parts pass passage passages patients payment payments people per perhaps persons
    please point points prices primarily prior provided purchases questions rather records refer regarding
    regardless related remember report reports requests required requirements results rules same second secondly
    section see send several shall she should since so some someone something sometimes source sources
    specifically staff standard start steps still students submit such add create delete get install log move
    open press put read remove run save select set sign stop turn type write summary take teams than that the
    their them then there therefore these they third this those though through throughout thus to today together
    total travel travellers two under unless unlike until up upon use user users using usually various very via
    visitors was we were what whatever when whenever where whereas wherever whether which while who whoever
    whole whose why will with within without workers would yes you your alla anställda att av bara både de den
    denna dessa det detta där då efter eftersom eller en enligt ett för från före genom han har hon hur här
    ingen inga innan inte ja kan man med medan medarbetare men mellan minst många måste ni nej nu när och också
    om på resor samt sedan ska som svar till upp utan varje vem vi vid vilka vilken vad är över aber alle als
    auch auf aus bei bis da damit dann das dem der des die dies diese dieser durch ein eine einem einen einer er
    es für hat ich im ist jede jeder kann mit nach nein nicht noch nur ob oder seit sie sind und unter vom von
    vor wann wenn wer wie wir wird wo zu zum zur
    """).split()
)
"""Words that sentences begin with, in English, Swedish and German."""
PART_LETTERS = 6
"""Letters of a noun that a longer one may begin or end with ("Urlaub", "Urlaubstage")."""
_NO_NAMES = frozenset(
    {"i", "i'm", "i'll", "i've", "ok", "a", "e.g", "i.e", "etc", "am", "pm", "vs", "n/a", "no", "yes"}
)


class Name(NamedTuple):
    """A name or identifier where it stands. `words` are its folded words."""

    text: str
    start: int
    end: int
    words: tuple[str, ...]
    code: bool = False


class _Token(NamedTuple):
    text: str
    start: int
    end: int


class Spoken:
    """The words of a text by which names are looked up in it."""

    def __init__(self, text: str) -> None:
        self.folded = " ".join(fold(text).split())
        self._words = [_bare(token) for token in _TOKEN.findall(self.folded)]
        self._places: dict[str, list[int]] = {}
        for at, word in enumerate(self._words):
            for part in {word, *re.split(r"['\u2019.&/_-]", word)}:
                self._places.setdefault(part, []).append(at)
                for stem in _stems(part):
                    self._places.setdefault(stem, []).append(at)

    def holds(self, name: Name) -> bool:
        """Whether the text holds the name: its words, close together and in any order, or the identifier as it is."""
        if name.code:
            return _code_pattern(name.words[0]).search(self.folded) is not None
        found = [self._at(word) for word in name.words]
        if not all(found):
            return False
        reach = 2 * len(found) + 1
        return any(all(any(abs(place - start) <= reach for place in places) for places in found) for start in found[0])

    def _at(self, word: str) -> list[int]:
        return self._places.get(word) or [at for stem in _stems(word) for at in self._places.get(stem, ())]


def names(text: str, common: Iterable[str] = ()) -> list[Name]:
    """The names a text speaks of, in order. `common` are words (folded) that are no names, whatever their first
    letter: those the passages and the question write small."""
    known = common if isinstance(common, (set, frozenset)) else frozenset(common)
    found = [
        Name(match[0], match.start(), match.end(), (" ".join(fold(match[1] or match[2]).split()),), code=True)
        for match in _CODE.finditer(text)
    ]
    plain = _CODE.sub(lambda match: " " * len(match[0]), text)
    tokens = [_Token(match[0], match.start(), match.end()) for match in _TOKEN.finditer(plain)]
    german = sum(token.text in _GERMAN for token in tokens) >= max(2, len(tokens) // 8)
    run: list[_Token] = []
    for token in tokens:
        kind = _kind(token, plain, known, german=german)
        if run and (kind != "name" or plain[run[-1].end : token.start] not in (" ", "\u00a0")):
            found.append(_joined(run, plain))
            run = []
        if kind == "code":
            found.append(Name(token.text, token.start, token.end, (fold(token.text),), code=True))
        elif kind == "name":
            run.append(token)
    if run:
        found.append(_joined(run, plain))
    return sorted(found, key=lambda name: name.start)


def other_forms(question: str, texts: Iterable[str]) -> frozenset[str]:
    """The words of a German question, folded, that texts hold in another form only, or in a longer word. German writes
    every noun with a capital: these are no names that the texts lack. A word they hold in no form may be one."""
    asked = _words((question,)) if detect_question_language(question) == "de" else set()
    held = _words(texts) if asked else set()
    stems = {stem_snowball("de", word) for word in held}
    new = asked - held
    found = {word for word in new if stem_snowball("de", word) in stems}
    long = {word for word in new if len(word) >= PART_LETTERS}
    endings = _begun({word[::-1] for word in long}, {word[::-1] for word in held})
    return frozenset(found | _begun(long, held) | {word[::-1] for word in endings})


def _words(texts: Iterable[str]) -> set[str]:
    return {fold(token)[:MAX_TERM_CHARS] for text in texts for token in _TOKEN.findall(text)}


def _begun(words: Iterable[str], longer: Iterable[str]) -> set[str]:
    """The words that one of the longer ones begins with; that one stands next behind it in the alphabet."""
    ordered = [*sorted(longer), ""]
    return {word for word in words if ordered[bisect_left(ordered, word, hi=len(ordered) - 1)].startswith(word)}


def small_words(texts: Iterable[str]) -> frozenset[str]:
    """The words that texts write in small letters, folded and stemmed: no names, even at the start of a sentence."""
    small: set[str] = set()
    for text in texts:
        for token in _TOKEN.findall(text):
            if token[0].islower():
                word = _bare(fold(token))
                small.add(word)
                small.update(_stems(word))
    return frozenset(small)


def _kind(token: _Token, text: str, common: Iterable[str], *, german: bool) -> str:
    """`name`, `code` or nothing."""
    word = token.text
    if word.islower() and word.isalpha():  # most words
        return ""
    folded = _bare(fold(word))
    if not any(letter.isalpha() for letter in word) or folded in _NO_NAMES:
        return ""
    if word[0].isalpha() and any(letter.isdigit() for letter in word):
        return "code"
    if any(letter.isupper() for letter in word[1:]):
        return "name"
    if german or not word[0].isupper():
        return ""
    before = text[max(0, token.start - 24) : token.start]
    if token.start == 0 or _SENTENCE_START.search(before):
        first = re.split(r"['\u2019-]", folded)[0]
        small = {folded, first, *_stems(folded), *_stems(first)}
        return "" if small & _OPENERS or any(one in common for one in small) or len(word) == 1 else "name"
    return "" if len(word) == 1 else "name"


def _joined(run: list[_Token], text: str) -> Name:
    start, end = run[0].start, run[-1].end
    return Name(text[start:end], start, end, tuple(_bare(fold(token.text)) for token in run))


def _bare(word: str) -> str:
    """Without the possessive."""
    return _POSSESSIVE.sub("", word) or word


def _stems(word: str) -> set[str]:
    """Other forms of a word that count as the same: its stem, and a Swedish genitive's."""
    found = set(extract_terms(word)[:1])
    if len(word) > 4 and word.endswith("s"):
        found.add(word[:-1])
    return found


def _code_pattern(code: str) -> re.Pattern[str]:
    """An identifier as a pattern that does not mind how its parts are joined: "INC-1042" is "INC 1042"."""
    parts = re.findall(r"[^\W\d_]+|\d+|[^\w\s]|\s+", code)
    joined = r"[\s_.\-]{0,2}".join(re.escape(part) for part in parts if not part.isspace() and part not in "-_")
    return re.compile(rf"(?<!\w)(?<!\d\.){joined}(?!\w|\.\d)")
