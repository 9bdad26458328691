"""Parts a message into the questions that it asks, and a question into the things that it asks for.

The joints are closed classes of words (conjunctions, question words, auxiliaries), never subjects of questions.
"""

import re
from itertools import pairwise

from agent.text.follow_up import has_pronoun, list_content_words, names_subject, read_alone
from agent.text.stop_words import detect_candidate_languages
from agent.text.terms import fold

_QUESTION_WORDS = (
    "who whom whose what when where which why how vem vilka vilken vilket vad när var varför hur wer wem wen was wann "
    "wo warum wie welche welcher welches qui quand où pourquoi comment combien quién quando qué cuándo dónde cómo chi "
    "cosa dove come perché wie wat wanneer waar waarom hoe"
)
_AUXILIARIES = (
    "can could may must shall should will would do does did is are was were has have kan får måste ska är har finns "
    "kann darf muss soll ist sind hat haben gibt"
)
_SUBJECTS = "i we you one there the a an jag vi du man det den en ett ich wir sie es der die das ein eine einen"
"""What an auxiliary has behind it in a question: "and can I keep a dog", not "and is late"."""
_BEFORE_NOUN = {
    "en": "the a an is are was were", "sv": "en ett den det de är var", "nl": "de het een is zijn",
    "de": "der die das den dem ein eine einen ist sind war", "fr": "le la les un une est sont",
    "es": "el la los las un una es son", "it": "il lo la i gli le un una è sono",
}  # fmt: skip
"""Articles and copulas: the content word behind one names a subject, "the rent", where "who approves" has none."""
_AND = "and|och|und|et|y|e|en|as well as|samt|sowie"
_QUESTION_WORD = rf"(?:{'|'.join(_QUESTION_WORDS.split())})\b"
_ASKING = (
    rf"(?:{_QUESTION_WORD}|(?:{'|'.join(_AUXILIARIES.split())})\s++(?:{'|'.join(_SUBJECTS.split())})\b)"
)  # fmt: skip
_NEXT_QUESTION = re.compile(rf"(?:(?:[,;]|(?<!\s))\s++(?:{_AND})|[,;])\s++(?={_ASKING})", re.IGNORECASE)
_ASKS = re.compile(rf"\b{_ASKING}", re.IGNORECASE)
_NEXT_PHRASE = re.compile(
    rf"[,;:](?:\s++(?:{_AND})(?=\s)|(?=\s))|(?<!\s)\s++(?:{_AND})(?=\s)|(?<=[^\W\d_])[\u3001\uff0c\u548c]",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"(?<=[.!?\u061f])\s+|(?<=[\u3002\uff1f\uff01])")
_WORD = re.compile(r"[^\W\d_]+")
QUESTION_MARKS = "?\uff1f\u061f;"
"""The question marks of Latin, Chinese, Arabic and Greek script."""
MAX_JOINED_CHARS = 2_000
"""Characters of the longest question that is searched for further ones in it."""
MAX_PHRASES = 6
"""More things in a question are a list, whose words belong together."""


def list_sentences(text: str) -> list[str]:
    """The sentences of a message, by their stops."""
    return [part.strip() for part in _SENTENCE_END.split(text) if part.strip()]


def is_question(sentence: str) -> bool:
    """Whether a sentence ends with a question mark."""
    return sentence.rstrip()[-1:] in QUESTION_MARKS if sentence.strip() else False


def has_question_word(sentence: str) -> bool:
    """Whether a sentence has a question word, or an auxiliary with its subject behind it: a phrase has neither."""
    return _ASKS.search(sentence) is not None


def list_asking(message: str) -> list[str]:
    """The sentences of a message that end with a question mark, if each can be understood without the others; else
    the message."""
    asking = [sentence for sentence in list_sentences(message) if is_question(sentence)]
    return asking if asking and all(map(read_alone, asking)) else [message.strip()]


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
        if _ASKS.search(piece) and _names_own_subject(piece) and _names_own_subject(rest):
            parts.append(piece.strip())
            start = match.end()
    parts.append(question[start:].strip())
    return parts


def split_phrases(question: str) -> list[str]:
    """The things that a question asks for: its parts between commas and conjunctions that have content words.

    "How much is the rent and the deposit?" has two; a question without a joint, or a long one, has itself.
    """
    if len(question) > MAX_JOINED_CHARS:
        return [question.strip()]
    phrases = [part.strip(" \t\n\"'\u201c\u201d?.!,;:\uff1f\u3002") for part in _NEXT_PHRASE.split(question)]
    phrases = [part for part in phrases if part and list_content_words(part)]
    return phrases if 1 < len(phrases) <= MAX_PHRASES else [question.strip()]


def list_subject_words(part: str) -> list[str]:
    """The folded content words behind an article or a copula of the part's language: "mayor" of "who is the mayor"."""
    content = set(list_content_words(part))
    words = [fold(word) for word in _WORD.findall(part)]
    languages = detect_candidate_languages(part)
    before = {fold(word) for name in languages for word in _BEFORE_NOUN.get(name, "").split()}
    return [second for first, second in pairwise(words) if first in before and second in content]


def _names_own_subject(part: str) -> bool:
    return bool(names_subject(part) or list_subject_words(part)) and not has_pronoun(part)
