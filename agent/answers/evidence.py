"""Answers from evidence, as the kernel knows them: the sentences that say that there is none.

The rest is the part of a feature that reads documents: `agent.run_context.evidence_answers` is how it is asked.
"""

import tomllib
from pathlib import Path
from typing import Literal

from agent.text.stop_words import detect_question_language
from agent.text.terms import detect_script

NOT_IN_DOCUMENTS = "The documents don't say."
"""The whole answer if no document has one."""
_SENTENCES: dict[str, dict[str, str]] = tomllib.loads(Path(__file__).with_name("no_answers.toml").read_text("utf-8"))
_NO_ANSWERS = tuple(text for texts in _SENTENCES.values() for text in texts.values())


def get_no_answer_text(question: str = "", kind: Literal["not_said", "unknown"] = "not_said") -> str:
    """The sentence "The documents don't say." or "I don't know." in the language of the question, or in English.

    "I don't know." is the answer if no claim of a model's answer is supported."""
    return _SENTENCES.get(detect_sentence_language(question), _SENTENCES["en"])[kind]


def translate_no_answer(text: str, question: str) -> str:
    """One of these sentences in the language of the question."""
    bare = text.strip(" \t\n*_")
    unknown = any(texts["unknown"] == bare for texts in _SENTENCES.values())
    return get_no_answer_text(question, "unknown" if unknown else "not_said")


def is_no_answer_text(text: str) -> bool:
    """Whether a text is one of the fixed sentences that there is no answer, and says nothing else."""
    return text.strip(" \t\n*_") in _NO_ANSWERS


def contains_no_answer_text(text: str) -> bool:
    """Whether a text says that there is no answer, in any of the languages."""
    return any(one in text for one in _NO_ANSWERS)


def detect_sentence_language(question: str) -> str:
    """The language in which a fixed sentence answers the question, which may have no such sentences."""
    return "ar" if detect_script(question) == "ARABIC" else detect_question_language(question)
