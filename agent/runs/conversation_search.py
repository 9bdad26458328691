"""What a search of chats compares: the words of a query with titles and messages, and the message that has them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from agent.core.surrogates import to_storable_text
from agent.storage.sql import Row, SqlClient, format_marks

MAX_QUERY_CHARS: Final = 200
EXCERPT_CHARS: Final = 120
"""How much of a message is shown around the words that it has."""
LEAD_CHARS: Final = 30
"""How much of that stands before the longest of them."""
MAX_TITLED: Final = 10_000
"""Most conversations whose chosen titles fit, of all words together: SQLite takes 32,766 values."""
_WORD: Final = re.compile(r'["“”„]([^"“”„]+)["“”„]|(\S+)')
_HAS_WORD: Final = """
    AND (t.id IN ({titled}) OR t.id IN (
        SELECT u.conversation_id FROM turns u WHERE u.owner = ? AND lower(u.text) LIKE ? ESCAPE '!'
        UNION ALL
        SELECT r.conversation_id FROM request_words w JOIN runs r ON r.run_id = w.run_id
        WHERE r.owner = ? AND NOT r.hidden AND r.conversation_id IS NOT NULL AND w.words LIKE ? ESCAPE '!'))"""
"""One word: in the chosen title, in a message, or in one that has not been answered yet."""


@dataclass(frozen=True, slots=True)
class MessageMatch:
    """The newest of the messages of a conversation that hold most of the words. `excerpt` is its text around them."""

    run_id: str
    role: str
    excerpt: str


def parse_words(query: str) -> list[str]:
    """The words of a query in lower case, each once. What is in quotation marks is one of them."""
    text = to_storable_text(query[:MAX_QUERY_CHARS]).lower()
    parts = (quoted or word.strip('"“”„') for quoted, word in _WORD.findall(text))
    return list(dict.fromkeys(word for part in parts if (word := " ".join(part.split()))))


def build_condition(owner: str, words: Sequence[str], titles: Sequence[tuple[str, str]]) -> tuple[str, list[object]]:
    """The SQL condition that a conversation `t` has all words, and its values. `titles` are the chosen ones by id."""
    condition, values = "", list[object]()
    for word in words:
        titled = [one for one, title in titles if word in title][: MAX_TITLED // len(words)]
        condition += _HAS_WORD.format(titled=format_marks(titled) or "NULL")
        values += [*titled, owner, _build_pattern(word), owner, _build_pattern(word)]
    return condition, values


async def find_messages(
    statements: SqlClient, owner: str, conversations: Sequence[str], words: Sequence[str]
) -> dict[str, MessageMatch]:
    """The message of each conversation to show for the words; none where only a title has them."""
    if not conversations or not words:
        return {}
    number = " + ".join(["CASE WHEN lower(text) LIKE ? ESCAPE '!' THEN 1 ELSE 0 END"] * len(words))
    rows = await statements.read(
        f"SELECT conversation_id, {number} AS number, id FROM turns "  # noqa: S608 - constants and marks
        f"WHERE owner = ? AND conversation_id IN ({format_marks(conversations)})",
        *map(_build_pattern, words), owner, *conversations,
    )  # fmt: skip
    best: dict[str, tuple[int, int]] = {}
    for conversation_id, hits, turn_id in rows:
        if hits:
            best[str(conversation_id)] = max(best.get(str(conversation_id), (0, 0)), (int(hits), int(turn_id)))
    turn_ids = [turn_id for _, turn_id in best.values()]
    texts: list[Row] = []
    if turn_ids:
        texts = await statements.read(
            f"SELECT conversation_id, run_id, role, text FROM turns WHERE id IN ({format_marks(turn_ids)})",  # noqa: S608 - marks
            *turn_ids,
        )
    return {
        str(conversation_id): MessageMatch(str(run_id), str(role), cut_excerpt(str(text), words))
        for conversation_id, run_id, role, text in texts
    }


def cut_excerpt(text: str, words: Sequence[str]) -> str:
    """A text on one line, without marks of Markdown, from shortly before the longest of the words that it has: a short
    one may be a part of any other.
    """
    line = " ".join(text.replace("**", "").replace("`", "").split())
    lowered = line.lower()
    longest = max((word for word in words if word in lowered), key=len, default="")
    first = lowered.find(longest)
    space = line.find(" ", max(0, first - LEAD_CHARS), first)
    start = 0 if first <= LEAD_CHARS else space + 1 if space >= 0 else first - LEAD_CHARS
    end = start + EXCERPT_CHARS
    return f"{'… ' if start else ''}{line[start:end].strip()}{' …' if end < len(line) else ''}"


def _build_pattern(word: str) -> str:
    return "%" + "".join(f"!{sign}" if sign in "!%_" else sign for sign in word) + "%"
