"""Finds out whether a message can be understood without the one before it, and which words are its own.

Only closed classes of words are listed here (pronouns, conjunctions, question words), never subjects of questions.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

from agent.text.stop_words import detect_candidate_languages
from agent.text.terms import UNIT_WORDS, expand_query_terms, fold, has_content_words, is_filler, map_query_terms

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
_PERSONAL = {
    "en": "he him his she her hers", "sv": "han honom hans hon henne hennes",
    "de": "er ihm ihn sie ihr ihre ihren ihrem", "fr": "il elle lui", "es": "él ella", "it": "lui lei", "nl": "hij zij",
}  # fmt: skip
"""Those that may stand for a person whom an answer has named."""
_COMPOUNDING = frozenset({"sv", "de", "nl", "da", "no", "fi"})
"""Languages that write a compound as one word: "Elternzeit" names a subject as "parental leave" does."""
_COMPOUND_CHARS = 6
_MEASURING_TEXT = (
    "per pro get gets take takes took long short lang lange kurz kort tar gor high big large stor stort stora gross"
)
"""Words of measure and light verbs, which name no subject."""
_CONJUNCTIONS = "and or but so also och eller men så samt und oder aber et ou mais y o pero e ma en of maar og"
_ADDING = "also besides moreover dessutom förresten außerdem übrigens aussi además inoltre bovendien"
"""Adverbs that begin something further, of whatever subject."""
_PREPOSITIONS = {
    "en": "in on at for from to with without per during after before under over by of since until",
    "sv": "i på för från till med utan per under efter före innan vid av hos om inom",
    "de": "in im am an auf für von vom zu zum zur bei beim mit ohne pro per während nach vor unter um seit ab aus",
    "fr": "en à au aux pour par de du dans sur sous chez avec sans",
    "es": "en a al para por de del desde con sin sobre",
    "it": "in a al per da di del con su nel", "nl": "in op voor van bij met zonder per na tot aan",
}  # fmt: skip
"""A phrase that begins with one adds to the subject of the message before: "And in Japan?"."""
_MEASURING = frozenset(_MEASURING_TEXT.split())
_WORD = re.compile(r"[^\W\d_]+")
_FOLDED_PRONOUNS = {language: frozenset(fold(words).split()) for language, words in _PRONOUNS.items()}
_FOLDED_PERSONAL = {language: frozenset(fold(words).split()) for language, words in _PERSONAL.items()}
_ALL_PRONOUNS = frozenset({"es", "det"}).union(*_FOLDED_PRONOUNS.values())
"""Those of a phrase that stands alone, where none is an impersonal subject."""
_FOLDED_CONJUNCTIONS = frozenset(fold(_CONJUNCTIONS).split())
_FOLDED_ADDING = frozenset(fold(_ADDING).split())
_FOLDED_LEADS = _FOLDED_CONJUNCTIONS | _FOLDED_ADDING
_ALL_PREPOSITIONS = frozenset().union(*(fold(words).split() for words in _PREPOSITIONS.values()))
_WORD_AND_NUMBER = re.compile(r"[^\W\d_][\w-]*(?:[ \u00a0]\d[\w.]*\b)?")
_NEAR_CHARS = 200
"""Characters on either side of a name in which the word beside it stands."""
_TITLE_CHARS = 3
"""Letters of what a full stop abbreviates in front of a name, as `Dr.` and `Mrs.`."""
_LEAD = re.compile(r"[\s\u00bf\u00a1,;:]*+(?P<word>[^\W\d_]++)")
MIN_OWN_WORDS = 2
"""Content words that a message has if it names a subject of its own: "parental leave", not "month"."""


class NameInText(NamedTuple):
    """A name with the words beside it."""

    name: str
    before: str
    after: str


def list_content_words(message: str) -> list[str]:
    """The words of a message that name what it is about: no stop words, question words or units."""
    words = map_query_terms(message).values() if has_content_words(message) else ()
    return [word for word in words if not is_filler(word) and word not in _MEASURING]


def asks(message: str) -> bool:
    """Whether a later message can refer to this one: it names a subject, refers back itself, or is a question. A
    "Thanks!" is none of these."""
    return names_subject(message) or refers_back(message) or "?" in message or "\uff1f" in message


def names_subject(message: str) -> bool:
    """Whether a message has enough content words to be searched by itself."""
    words = list_content_words(message)
    compounds = bool(_COMPOUNDING.intersection(detect_candidate_languages(message)))
    return len(words) >= MIN_OWN_WORDS or (compounds and any(len(word) >= _COMPOUND_CHARS for word in words))


def list_own_terms(message: str, languages: tuple[str, ...] = ()) -> tuple[frozenset[str], ...]:
    """The search terms of a message's content words and units, each with its stems in these languages."""
    words = map_query_terms(message).items() if has_content_words(message) else ()
    own = {term for term, word in words if word in UNIT_WORDS or not (is_filler(word) or word in _MEASURING)}
    return tuple(frozenset(forms) for forms in expand_query_terms(message, languages).values() if own & {*forms})


def refers_back(message: str) -> bool:
    """Whether a message begins with a conjunction, has a pronoun, or names no subject of its own."""
    words = [fold(word) for word in _WORD.findall(message)]
    is_joined = bool(words) and words[0] in _FOLDED_CONJUNCTIONS and words[0] not in _FOLDED_ADDING
    return not words or is_joined or not list_content_words(message) or has_pronoun(message)


def read_alone(sentence: str) -> str:
    """A sentence without the conjunctions and adverbs that lead into it, if it can then be understood without the
    message before: "And the deposit?" is about "the deposit?". "" for a pronoun, or for a phrase that adds to a
    subject, such as "And in Japan?"."""
    whole, start = sentence.strip(), 0
    lead = _LEAD.match(whole)
    while lead is not None and fold(lead["word"]) in _FOLDED_LEADS:
        start = lead.end()
        lead = _LEAD.match(whole, start)
    rest = whole[start:].lstrip(" ,;:") if start else whole
    if lead is None or not list_content_words(rest) or has_pronoun(rest):
        return ""
    return "" if fold(lead["word"]) in _ALL_PREPOSITIONS else rest


def is_pronoun(phrase: str) -> bool:
    """Whether a phrase, such as one side of a comparison, consists of pronouns of any language."""
    words = [fold(word) for word in _WORD.findall(phrase)]
    return bool(words) and all(word in _ALL_PRONOUNS for word in words)


def is_written_as_name(phrase: str, message: str) -> bool:
    """Whether a phrase of a message is in capitals, as `IT`, or begins with one in the middle of a sentence, as the
    magazine `Elle` does."""
    before = message[: message.find(phrase)].rstrip()
    return phrase.isupper() or (phrase[:1].isupper() and bool(_WORD.search(before)) and before[-1] not in ".!?")


def list_names(message: str) -> list[NameInText]:
    """The names in a message, such as `Lisbon`, `Brewmaster 4` and `A1`: words in capitals in the middle of a sentence,
    with the number behind one, and words with a digit. In German, where nouns have capitals, the latter two only."""
    is_german = "de" in detect_candidate_languages(message)
    names: dict[str, NameInText] = {}
    for match in _WORD_AND_NUMBER.finditer(message):
        name, start, end = match[0], match.start(), match.end()
        if name in names or not name[0].isupper():
            continue
        before, after = message[max(start - _NEAR_CHARS, 0) : start].rstrip(), message[end : end + _NEAR_CHARS].lstrip()
        is_inner = bool(before) and before[-1] not in '.!?:\u201c"('
        has_number = any(map(str.isdigit, name))
        is_title = len(name) <= _TITLE_CHARS and message.startswith(".", end)
        is_word = is_inner and not (is_german or is_title or name.isupper()) and bool(list_content_words(name))
        if has_number or is_word:
            words = _WORD.findall(before)[-1:], _WORD.findall(after)[:1]
            names[name] = NameInText(name, "".join(words[0]), "".join(words[1]))
    return [*names.values()]


def has_pronoun(message: str) -> bool:
    """Whether a word is a pronoun in each language that the message may be in: "die" is one in Dutch only."""
    return _has_word_of(message, _FOLDED_PRONOUNS)


def has_personal_pronoun(message: str) -> bool:
    """Whether a word may stand for a person."""
    return _has_word_of(message, _FOLDED_PERSONAL)


def _has_word_of(message: str, words_by_language: Mapping[str, frozenset[str]]) -> bool:
    """Whether a word of the message is among those of each language that it may be in."""
    words = [fold(word) for word in _WORD.findall(message)]
    languages = detect_candidate_languages(message)
    return bool(languages) and any(
        all(word in words_by_language.get(language, ()) for language in languages) for word in words
    )
