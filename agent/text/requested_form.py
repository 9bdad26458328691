"""Finds what a question asks of the answer's form ("as JSON", "in two sentences"), and the question without it."""

import re
from typing import Literal

from agent.text.question_parts import is_question, list_asking, list_sentences, split_joined_questions, split_phrases

Shape = Literal["plain", "json", "bullets", "table"]

SMALL = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10,
         "a": 1, "en": 1, "två": 2, "tre": 3, "fyra": 4, "fem": 5}  # fmt: skip
_COUNT = rf"(?P<count>\d{{1,4}}|{'|'.join(SMALL)})"
LIMIT = re.compile(
    rf"(?:(?:at\s+most|no\s+more\s+than|max(?:imum|imalt)?(?:\s+of)?|up\s+to|within|under|h\u00f6gst|in|on|i)\s+){{0,2}}\b{_COUNT}"
    r"(?:\s+or\s+(?:fewer|less))?[\s-]+(?:\w+\s+)?(?P<what>sentences?|words?|meningar?|ord)\b(?:\s+(?:or\s+(?:fewer|less)|at\s+most|max))?",
    re.IGNORECASE,
)
_ASKS = (
    r"\b(?:(?:give|write|make|show|send|draw|ge|visa)\s+(?:(?:me|us|mig|oss)\s+)?(?:an?|en)"
    r"|(?:as|in|into|to|with|using|return|output|reply|respond|answer|som|i)(?:\s+(?:an?|valid|pure|en))*)\s+"
)
_WORDS: tuple[tuple[Shape, str], ...] = (
    ("json", r"\bjson\b"),
    ("bullets", r"\bbullet(?:s|ed|\s*-?points?)?(?:\s+list)?\b|\blist\b|\bpunktlista\b"),
    ("table", r"\btable\b|\btabell\b"),
)
SHAPES = tuple(
    (
        shape,
        re.compile(word, re.IGNORECASE),
        re.compile(rf"{_ASKS}(?:(?!(?:the|this|that|which|your|den|det)\b)\w+\s+)?(?:{word})", re.IGNORECASE),
    )
    for shape, word in _WORDS
)
"""Each shape with the pattern of its word, and of its word as an instruction."""
_INSTRUCTION = re.compile(r"\s*(?:at|no|max|up|within|under|h\u00f6gst|in|i)\b", re.IGNORECASE)


def is_instruction(limit: str) -> bool:
    """Whether a matched limit is an instruction: "two sentences" alone may be the subject of the question."""
    return _INSTRUCTION.match(limit) is not None


_LEFT_OVER = re.compile(r"^\s*(?:please\s+)?(?:of|about|for)\s+(?:the\s+)?", re.IGNORECASE)
_ONLY_ANSWER = re.compile(
    r"(?:^|(?<=[.!?]))\s*(?:please\s+)?(?:answer|reply|respond|return|output|write|svara)\s*(?:it|me|that)?\s*(?=[.!?]|$)",
    re.IGNORECASE,
)
MAX_QUESTIONS = 4


def remove_form(question: str) -> str:
    """The question without instructions about the answer's form, which must not be searched for."""
    rest = " ".join(question.split())  # the patterns try every way to share out a run of spaces
    rest = LIMIT.sub(lambda match: " " if is_instruction(match[0]) else match[0], rest)
    for _, _, instruction in SHAPES:
        rest = instruction.sub(" ", rest)
    rest = _ONLY_ANSWER.sub(" ", rest)
    rest = _LEFT_OVER.sub("", re.sub(r"\s+([.,;!?])", r"\1", " ".join(rest.split()))).strip(" ,;.:")
    return rest if any(letter.isalnum() for letter in rest) else question


def split_questions(message: str) -> list[str]:
    """The questions of a message: its sentences that ask, if it has several that can be understood without the others,
    and questions that are joined by a conjunction; else the message. Of more than `MAX_QUESTIONS`, the first and the
    last ones."""
    sentences = list_sentences(message)
    several = len(sentences) > 1 and all(map(is_question, sentences))
    asking = sentences if several else list_asking(message)
    parts = asking if len(asking) > 1 else [message]
    questions = [one for part in parts for one in split_joined_questions(part)]
    half = MAX_QUESTIONS // 2
    return questions if len(questions) <= MAX_QUESTIONS else [*questions[:half], *questions[-half:]]


def list_asked_things(message: str) -> list[str]:
    """What a message asks for, without words about the answer's form: each thing of each of its questions."""
    return [phrase for question in split_questions(remove_form(message)) for phrase in split_phrases(question)]
