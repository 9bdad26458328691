"""Fixed sentences about an answer, in the language of the question: no answer, unknown, left out, not checked."""

import tomllib
from pathlib import Path

from agent.text.stop_words import detect_question_language
from agent.text.terms import detect_script

_SENTENCES: dict[str, dict[str, str]] = tomllib.loads(Path(__file__).with_name("sentences.toml").read_text("utf-8"))
_NO_ANSWERS = tuple(texts[name] for name in ("not_said", "unknown") for texts in _SENTENCES.values())


def get_no_answer_text(question: str = "") -> str:
    """Returns "The documents don't say." in the language of the question, or in English."""
    return _translate("not_said", question)


def get_unknown_text(question: str = "") -> str:
    """Returns "I don't know.", the answer if no claim of a model's answer is supported."""
    return _translate("unknown", question)


def get_left_out_text(question: str, count: int) -> str:
    """Returns the sentence that says that `count` unsupported statements were left out."""
    return _translate("left_out", question).format(count=count)


def get_closest_text(question: str) -> str:
    """Returns the sentence that introduces passages which may be beside the question."""
    return _translate("closest", question)


def get_unchecked_text(question: str) -> str:
    """Returns the sentence that says that the meaning of the answer was not checked."""
    return _translate("unchecked", question)


def is_no_answer_text(text: str) -> bool:
    """Whether a text is one of the fixed sentences that there is no answer, and says nothing else."""
    return text.strip(" \t\n*_") in _NO_ANSWERS


def contains_no_answer_text(text: str) -> bool:
    """Whether a text says that there is no answer, in any of the languages."""
    return any(one in text for one in _NO_ANSWERS)


def make_clarifying_question(question: str, subjects: tuple[str, ...]) -> str:
    """Returns the question whether one of the nearest subjects is meant."""
    quoted = [f"\u201c{subject}\u201d" for subject in subjects]
    if len(quoted) == 1:
        return _translate("meant", question).format(it=quoted[0])
    listed = f"{', '.join(quoted[:-1])} {_translate('and', question)} {quoted[-1]}"
    return _translate("one_meant", question).format(it=listed)


def _translate(name: str, question: str) -> str:
    language = "ar" if detect_script(question) == "ARABIC" else detect_question_language(question)
    return _SENTENCES.get(language, {}).get(name) or _SENTENCES["en"][name]
