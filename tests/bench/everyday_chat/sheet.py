"""A blind sheet for readers: each chat with two answers in random order. The key, a file of its own, says whose."""

import random
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from agent.core.errors import ConfigError
from tests.bench.everyday_chat.chats import Chat

Key = dict[str, tuple[str, str]]
"""By the id of a chat, who wrote answer A and answer B."""
GUIDE = """# Which answer is better?

Read each conversation as if you had asked. Write A, B or same behind "Verdict", and nothing else into this file. The
better answer helps the one who asked: it is right, to the point, and in the form and the language that they want. Do
not look at the key.
"""
_VERDICT = re.compile(r"^Verdict ([a-z0-9-]+):[ \t]*(\S*)[ \t]*$", re.MULTILINE)


class VerdictCounts(NamedTuple):
    """How one reader judged the first of two writers against the second."""

    better: int
    worse: int
    same: int


def make_sheet(chats: Sequence[Chat], answers: Mapping[str, Mapping[str, str]], seed: int) -> tuple[str, Key]:
    """The sheet as Markdown and its key. `answers` has the texts by writer and chat; there are two writers.

    The chats are in random order too, so that no series of one kind tires its reader.
    """
    first, second = answers
    chance = random.Random(seed)
    shuffled = list(chats)
    chance.shuffle(shuffled)
    key: Key = {}
    parts = [GUIDE]
    for number, chat in enumerate(shuffled, start=1):
        key[chat.id] = (first, second) if chance.random() < 0.5 else (second, first)
        parts.append(f"## {number}\n\n{_format_conversation(chat)}")
        parts += [
            f"**Answer {letter}**\n\n{_quote(answers[writer][chat.id])}"
            for letter, writer in zip("AB", key[chat.id], strict=True)
        ]
        parts.append(f"Verdict {chat.id}:")
    return "\n\n".join(parts) + "\n", key


def _format_conversation(chat: Chat) -> str:
    names = {"user": "User", "assistant": "Assistant"}
    return "\n\n".join(f"**{names[message['role']]}**\n\n{_quote(message['content'])}" for message in chat.messages)


def _quote(text: str) -> str:
    """The text as a quotation, so that its own headings, lines and verdicts cannot be taken for those of the sheet."""
    return "\n".join(f"> {line}" for line in text.strip().splitlines()) or "> (nothing)"


def read_verdicts(sheet: str) -> dict[str, str]:
    """The verdicts of a sheet by chat: `A`, `B` or `same`. Raises `ConfigError` for a missing or unclear one."""
    verdicts = {}
    for chat_id, word in _VERDICT.findall(sheet):
        verdict = {"a": "A", "b": "B", "same": "same"}.get(word.casefold())
        if verdict is None:
            raise ConfigError(f"the verdict of {chat_id} is {word!r}; write A, B or same")
        verdicts[chat_id] = verdict
    if not verdicts:
        raise ConfigError('the sheet has no lines that begin with "Verdict"')
    return verdicts


def count_verdicts(verdicts: Mapping[str, str], key: Key, writer: str) -> VerdictCounts:
    """How often a reader found this writer better, worse, as good. Raises `ConfigError` for another sheet's key."""
    if verdicts.keys() != key.keys():
        raise ConfigError("the sheet and the key are of different chats")
    counts = Counter(
        "same" if verdict == "same" else "better" if key[chat_id]["AB".index(verdict)] == writer else "worse"
        for chat_id, verdict in verdicts.items()
    )
    return VerdictCounts(counts["better"], counts["worse"], counts["same"])
