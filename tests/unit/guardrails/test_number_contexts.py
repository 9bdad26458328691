"""The words beside numbers: found as the pattern finds them, and not searched for again beside every number."""

import random
import re
from functools import lru_cache

import pytest

from agent.policy.guardrails import spans
from agent.policy.guardrails.identity_formats import IDENTITY_FORMATS
from agent.policy.guardrails.phones import _PHONE_CONTEXT
from agent.policy.guardrails.pii import find_personal_data
from agent.policy.guardrails.spans import has_words

CONTEXTS = [*{one.context for one in IDENTITY_FORMATS if one.context is not None}, _PHONE_CONTEXT]
PARTS = [
    "070-123 45 67",
    "id",
    "Tel.",
    "nr",
    "personnummer",
    "xssn",
    "ssn",
    "12",
    " ",
    "\n",
    "_",
    "ς",
    "call",
    "r. č.",
    "9x",
]


def test_windows_of_a_text_are_searched_as_the_pattern_searches_them() -> None:
    chance = random.Random(29)
    for _ in range(3_000):
        text = "".join(chance.choice(PARTS) for _ in range(12))
        start = chance.randrange(len(text))
        end = chance.randrange(start, len(text) + 1)
        pattern = chance.choice(CONTEXTS)
        expected = pattern.search(text, start, end) is not None
        if expected != has_words(pattern, text, start, end):
            pytest.fail(f"{pattern.pattern!r} in {text[start:end]!r} of {text!r}")


@pytest.mark.parametrize("beside", ["", "qz ", "; "])
def test_a_table_of_numbers_costs_few_searches_for_words(beside: str, monkeypatch: pytest.MonkeyPatch) -> None:
    searched = 0

    class Counted:
        def __init__(self, pattern: re.Pattern[str]) -> None:
            self._pattern = pattern

        def search(self, text: str, start: int) -> re.Match[str] | None:
            nonlocal searched
            searched += 1
            return self._pattern.search(text, start)

    inner = spans._search_words.__wrapped__
    counting = lru_cache(maxsize=4096)(lambda pattern, window, start: inner(Counted(pattern), window, start))
    monkeypatch.setattr(spans, "_search_words", counting)
    numbers = "".join(f"{beside}07{number:08d} " for number in range(3_000))
    find_personal_data(f"ring the bank, then {numbers}")
    assert searched < 300


def test_a_number_after_its_word_is_still_found_in_such_a_table() -> None:
    numbers = "".join(f"07{number:08d} " for number in range(1_000))
    kinds = [kind for kind, _ in find_personal_data(f"{numbers}\nthe personnummer is 8112289874 and call 0701234567")]
    assert {"PERSONNUMMER", "PHONE"} <= set(kinds)
