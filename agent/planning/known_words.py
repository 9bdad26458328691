"""What is known before a call: the words of the request, of what stands beside it, and of the results so far."""

import re
from bisect import bisect_left
from collections.abc import Iterable

from pydantic import JsonValue

from agent.planning.request import PlanningRequest

MAX_DIGITS = 30
SHORTEST_STEM = 3
"""Letters that two forms of a word share."""
WORD = re.compile(r"[^\W_]+")
_MOMENT = re.compile(r"(?<=\d\d-\d\d)t(?=\d\d:\d\d)")


def split_words(text: str) -> list[str]:
    """The words and numbers of a text in small letters; a moment such as `2026-05-19T10:00` has five."""
    return WORD.findall(_MOMENT.sub(" ", text.casefold()))


class KnownWords:
    """The words and numbers of texts. A lookup takes the same time however many there are."""

    def __init__(self, texts: Iterable[str]) -> None:
        self.tokens = frozenset(token for text in texts for token in split_words(text))
        self._sorted = sorted(token for token in self.tokens if len(token) >= SHORTEST_STEM)
        self._stems = frozenset(self._sorted)
        self._numbers = frozenset(int(token) for token in self.tokens if token.isdecimal() and len(token) < MAX_DIGITS)

    def hold(self, token: str) -> bool:
        """Whether a word stands there, perhaps with another ending; a number must stand there as it is."""
        if token in self.tokens:
            return True
        if token.isdigit():
            return token.isdecimal() and len(token) < MAX_DIGITS and int(token) in self._numbers
        if len(token) < SHORTEST_STEM:
            return False
        if any(token[:length] in self._stems for length in range(SHORTEST_STEM, len(token))):
            return True
        at = bisect_left(self._sorted, token)  # the words that begin with it follow
        return at < len(self._sorted) and self._sorted[at].startswith(token)


def list_known_texts(request: PlanningRequest) -> list[str]:
    """The texts that a value of a call may come from."""
    return [
        request.question,
        request.original,
        request.ground.partition("\n")[2],  # without the date, which a request need not mean
        *(message.content for message in request.history),
        *(item.text for item in request.memories),
        *(one.text for one in request.earlier_results),
        *(call.text for call in request.rounds if not call.failed),
    ]


def is_known(value: JsonValue, known: KnownWords, described: KnownWords) -> bool:
    """Whether `known` holds all words of a value, or `described` those of a text."""
    tokens = split_words(str(value))
    return all((described if isinstance(value, str) else known).hold(token) for token in tokens)
