"""Search in chats: compares the words of a query with titles and messages, and names the message that has them."""

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
        SELECT u.conversation_id FROM turns u WHERE u.owner = ? AND {text} LIKE ? ESCAPE '!'
        UNION ALL
        SELECT r.conversation_id FROM request_words w JOIN runs r ON r.run_id = w.run_id
        WHERE r.owner = ? AND NOT r.hidden AND r.conversation_id IS NOT NULL AND w.words LIKE ? ESCAPE '!'))"""
"""One word: in the chosen title, in a message, or in one that has not been answered yet."""
_MARKS: Final = ("**", "`")
"""Marks of Markdown that are not displayed."""
_WHITE_SPACE: Final = "\n\r\t\u00a0\u2009\u202f\u3000"
_FLATTENED: Final = (
    *((mark, "") for mark in _MARKS),
    *((sign, " ") for sign in _WHITE_SPACE),
    *((" ", "\x01\x02"), ("\x02\x01", ""), ("\x01\x02", " ")),
)
"""Replacements that do in SQL what `_flatten` does; the last three make one space of several, with two characters that
texts do not have."""
_IS_MESSAGE: Final = (
    "u.role IN ('user', 'assistant') AND EXISTS (SELECT 1 FROM runs r WHERE r.run_id = u.run_id AND NOT r.hidden)"
)
"""Turns that `GET /v1/conversations/{id}/messages` has: further ones are items that a client has added."""


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
        condition += _HAS_WORD.format(titled=format_marks(titled) or "NULL", text=_select_text(word))
        values += [*titled, owner, _build_text_pattern(word), owner, _build_pattern(word)]
    return condition, values


async def find_messages(
    statements: SqlClient, owner: str, conversations: Sequence[str], words: Sequence[str]
) -> dict[str, MessageMatch]:
    """The message of each conversation to show for the words; none where only a title has them."""
    if not conversations or not words:
        return {}
    number = " + ".join(f"CASE WHEN {_select_text(word)} LIKE ? ESCAPE '!' THEN 1 ELSE 0 END" for word in words)
    rows = await statements.read(
        f"SELECT u.conversation_id, {number} AS number, u.id FROM turns u "  # noqa: S608 - constants and marks
        f"WHERE u.owner = ? AND u.conversation_id IN ({format_marks(conversations)}) AND {_IS_MESSAGE}",
        *map(_build_text_pattern, words), owner, *conversations,
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
    line = _flatten(text)
    lowered = line.lower()
    longest = max((word for word in words if word in lowered), key=len, default="")
    first = lowered.find(longest)
    space = line.find(" ", max(0, first - LEAD_CHARS), first)
    start = 0 if first <= LEAD_CHARS else space + 1 if space >= 0 else first - LEAD_CHARS
    end = start + EXCERPT_CHARS
    return f"{'… ' if start else ''}{line[start:end].strip()}{' …' if end < len(line) else ''}"


def _select_text(word: str) -> str:
    """The SQL of the text of a turn `u` in lower case, as it is displayed if it is compared with a phrase."""
    text = "lower(u.text)"
    for old, new in _FLATTENED if " " in word else ():
        text = f"replace({text}, '{old}', '{new}')"
    return text


def _build_text_pattern(word: str) -> str:
    """The pattern that goes with `_select_text`."""
    return _build_pattern((_flatten(word) or word) if " " in word else word)


def _flatten(text: str) -> str:
    """A text on one line, without marks of Markdown."""
    for mark in _MARKS:
        text = text.replace(mark, "")
    return " ".join(text.split())


def _build_pattern(word: str) -> str:
    return "%" + "".join(f"!{sign}" if sign in "!%_" else sign for sign in word) + "%"
