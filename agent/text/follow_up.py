"""Finds out whether a message can be understood without the one before it, and which words are its own.

Only closed classes of words are listed here (pronouns, conjunctions, question words), never subjects of questions.
"""

import re

from agent.text.stop_words import detect_candidate_languages
from agent.text.terms import UNIT_WORDS, expand_query_terms, fold, is_filler, map_query_terms

# Without "es" and "det", which are mostly impersonal subjects ("Wann gibt es Mittagessen?").
_PRONOUNS = {
    "en": "it its they them their theirs he him his she her hers this that these those same former latter",
    "sv": "den dem dess deras han honom hans hon henne hennes denna detta dessa samma",
    "de": "er ihm ihn sie ihr ihre ihren ihrem dessen deren dieser dieses diesem diesen damit dafür davon darüber",
    "fr": "il elle ils elles lui leur leurs celui celle ceux celles",
    "es": "ello ellos ellas eso esa ese lo",
    "it": "esso essa essi loro questo questa quello quella",
    "nl": "het hij zij deze dit die dat hun",
}
_COMPOUNDING = frozenset({"sv", "de", "nl", "da", "no", "fi"})
"""Languages that write a compound as one word: "Elternzeit" names a subject as "parental leave" does."""
_COMPOUND_CHARS = 6
_MEASURING_TEXT = "per pro get gets take takes took long short lang lange kurz kort tar gor"
"""Words of measure and light verbs, which name no subject."""
_CONJUNCTIONS = "and or but so also och eller men så samt und oder aber et ou mais y o pero e ma en of maar og"
_QUESTION_WORDS = (
    "who whom whose what when where which why how vem vilka vilken vilket vad när var varför hur wer wem wen was wann "
    "wo warum wie welche welcher welches qui quand où pourquoi comment combien quién quando qué cuándo dónde cómo chi "
    "cosa dove come perché wie wat wanneer waar waarom hoe"
)
_MEASURING = frozenset(_MEASURING_TEXT.split())
_WORD = re.compile(r"[^\W\d_]+")
_FOLDED_PRONOUNS = {language: frozenset(fold(words).split()) for language, words in _PRONOUNS.items()}
_ALL_PRONOUNS = frozenset({"es", "det"}).union(*_FOLDED_PRONOUNS.values())
"""Those of a phrase that stands alone, where none is an impersonal subject."""
_FOLDED_CONJUNCTIONS = frozenset(fold(_CONJUNCTIONS).split())
_NEXT_QUESTION = re.compile(
    rf"(?:(?:[,;]|(?<!\s))\s++(?:and|och|und|et|y|e|en)|[,;])\s++(?=(?:{'|'.join(_QUESTION_WORDS.split())})\b)",
    re.IGNORECASE,
)
_ASKS = re.compile(rf"\b(?:{'|'.join(_QUESTION_WORDS.split())})\b", re.IGNORECASE)
MAX_JOINED_CHARS = 2_000
"""Characters of the longest question that is searched for further ones in it."""
MIN_OWN_WORDS = 2
"""Content words that a message has if it names a subject of its own: "parental leave", not "month"."""


def list_content_words(message: str) -> list[str]:
    """The words of a message that name what it is about: no stop words, question words or units."""
    return [word for word in map_query_terms(message).values() if not is_filler(word) and word not in _MEASURING]


def names_subject(message: str) -> bool:
    """Whether a message has enough content words to be searched by itself."""
    words = list_content_words(message)
    compounds = bool(_COMPOUNDING.intersection(detect_candidate_languages(message)))
    return len(words) >= MIN_OWN_WORDS or (compounds and any(len(word) >= _COMPOUND_CHARS for word in words))


def list_own_terms(message: str, languages: tuple[str, ...] = ()) -> tuple[frozenset[str], ...]:
    """The search terms of a message's content words and units, each with its stems in these languages."""
    words = map_query_terms(message).items()
    own = {term for term, word in words if word in UNIT_WORDS or not (is_filler(word) or word in _MEASURING)}
    return tuple(frozenset(forms) for forms in expand_query_terms(message, languages).values() if own & {*forms})


def refers_back(message: str) -> bool:
    """Whether a message begins with a conjunction, has a pronoun, or names no subject of its own."""
    words = [fold(word) for word in _WORD.findall(message)]
    if not words or words[0] in _FOLDED_CONJUNCTIONS or not list_content_words(message):
        return True
    return _has_pronoun(message, words)


def is_pronoun(phrase: str) -> bool:
    """Whether a phrase, such as one side of a comparison, consists of pronouns of any language."""
    words = [fold(word) for word in _WORD.findall(phrase)]
    return bool(words) and all(word in _ALL_PRONOUNS for word in words)


def is_written_as_name(phrase: str, message: str) -> bool:
    """Whether a phrase of a message is in capitals, as `IT`, or begins with one in the middle of a sentence, as the
    magazine `Elle` does."""
    before = message[: message.find(phrase)].rstrip()
    return phrase.isupper() or (phrase[:1].isupper() and bool(_WORD.search(before)) and before[-1] not in ".!?")


def split_joined_questions(question: str) -> list[str]:
    """The questions that a conjunction joins: "Who books trips and how long is parental leave?" has two.

    A part that names no subject of its own stays with the part before it, and a long text is one.
    """
    if len(question) > MAX_JOINED_CHARS:
        return [question.strip()]
    parts: list[str] = []
    start = 0
    for match in _NEXT_QUESTION.finditer(question):
        piece = question[start : match.start()]
        rest = question[match.end() :]
        if _ASKS.search(piece) and _names_subject(piece) and _names_subject(rest):
            parts.append(piece.strip())
            start = match.end()
    parts.append(question[start:].strip())
    return parts


def _names_subject(part: str) -> bool:
    return names_subject(part) and not _has_pronoun(part, [fold(word) for word in _WORD.findall(part)])


def _has_pronoun(message: str, words: list[str]) -> bool:
    """Whether a word is a pronoun in each language that the message may be in: "die" is one in Dutch only."""
    languages = detect_candidate_languages(message)
    return bool(languages) and any(
        all(word in _FOLDED_PRONOUNS.get(language, ()) for language in languages) for word in words
    )
