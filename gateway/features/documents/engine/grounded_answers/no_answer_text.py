"""Fixed sentences about an answer, in the language of the question: left out, not checked, which subject is meant."""

import tomllib
from collections.abc import Sequence
from pathlib import Path

from agent.answers.evidence import detect_sentence_language

EARLIER_CHARS = 120
_SENTENCES: dict[str, dict[str, str]] = tomllib.loads(Path(__file__).with_name("sentences.toml").read_text("utf-8"))


def get_left_out_text(question: str, count: int) -> str:
    """The sentence that says that `count` unsupported statements were left out."""
    return _translate("left_out", question).format(count=count)


def get_closest_text(question: str) -> str:
    """The sentence that introduces passages which may be beside the question."""
    return _translate("closest", question)


def get_absent_text(question: str, phrases: Sequence[str]) -> str:
    """The sentence that names what was asked for and of which the quoted passages have no word."""
    return _translate("absent", question).format(it=_quote_all(phrases))


def get_doubtful_text(question: str, phrases: Sequence[str]) -> str:
    """The sentence that names what was asked for and is only partly in the quoted passages."""
    return _translate("doubtful", question).format(it=_quote_all(phrases))


def get_follow_up_text(question: str, earlier: str) -> str:
    """The sentence that says which earlier message was searched together with the question."""
    return _translate("follow_up", question).format(earlier=f"\u201c{' '.join(earlier.split())[:EARLIER_CHARS]}\u201d")


def get_unchecked_text(question: str) -> str:
    """The sentence that says that the meaning of the answer was not checked."""
    return _translate("unchecked", question)


def make_clarifying_question(question: str, subjects: tuple[str, ...]) -> str:
    """The question whether one of the nearest subjects is meant."""
    quoted = [f"\u201c{subject}\u201d" for subject in subjects]
    if len(quoted) == 1:
        return _translate("meant", question).format(it=quoted[0])
    listed = f"{', '.join(quoted[:-1])} {_translate('and', question)} {quoted[-1]}"
    return _translate("one_meant", question).format(it=listed)


def list_offered_subjects(answer: str) -> tuple[str, ...]:
    """The subjects in the clarifying question at the end of an answer, in order; () without one."""
    for sentences in _SENTENCES.values():
        for name in ("meant", "one_meant"):
            before, _, after = sentences.get(name, "").partition("{it}")
            at = answer.rfind(before) if before and answer.rstrip().endswith(after) else -1
            if at >= 0:
                parts = answer[at + len(before) :].split("\u201d")[:-1]
                return tuple(quoted for part in parts if (quoted := part.partition("\u201c")[2]))
    return ()


def _quote_all(phrases: Sequence[str]) -> str:
    return ", ".join(f"\u201c{phrase[:EARLIER_CHARS].strip(' ?.!')}\u201d" for phrase in phrases)


def _translate(name: str, question: str) -> str:
    language = detect_sentence_language(question)
    return _SENTENCES.get(language, {}).get(name) or _SENTENCES["en"][name]
