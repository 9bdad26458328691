"""The gateway's own sentences, under an answer or in its place, in the reader's language."""

import tomllib
from pathlib import Path
from typing import Literal

Sentence = Literal[
    "unmade",
    "model_wrote",
    "from_memory",
    "repeated",
    "unexplained",
    "all_failed",
    "only_looked",
    "done",
    "failed",
    "refused",
    "not_begun",
    "waits",
]
_SENTENCES: dict[str, dict[str, str]] = tomllib.loads(Path(__file__).with_name("sentences.toml").read_text("utf-8"))


def say(name: Sentence, language: str) -> str:
    """The sentence in `language` (ISO 639-1), or else in English."""
    return _SENTENCES.get(language, _SENTENCES["en"])[name]
