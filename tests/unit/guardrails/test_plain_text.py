"""Words of models inside our own Markdown: shown as they are, and nothing in them is live."""

import pytest
from markdown_it import MarkdownIt

from agent.policy.guardrails.plain_text import escape_markdown, format_literal, remove_live_parts

EVIL = "https://evil.example/p.png?q=1"
LIVE = [
    f"![a]({EVIL})",
    f"![a][b]\n\n[b]: {EVIL}",
    f"[click]({EVIL})",
    f"<img src='{EVIL}'>",
    f"<IMG/SRC={EVIL}>",
    f"<a href={EVIL}>x</a>",
    f"<{EVIL}>",
    f"text ![]({EVIL}) and [![x]({EVIL})]({EVIL})",
    f"`` ` ![a]({EVIL}) ",
    f"a\r\r![a]({EVIL})",
    f"\\![a]({EVIL})",
    f"\\\\![a]({EVIL})",
    f"&#33;[a]({EVIL})",
    f"```\nx\n```\n![a]({EVIL})",
    f"~~~\n![a]({EVIL})",
    f"# head\n- ![a]({EVIL})",
    f"<svg onload=fetch('{EVIL}')>",
    f"<style>@import '{EVIL}'</style>",
]


def render(text: str) -> str:
    return str(MarkdownIt("commonmark", {"html": True, "linkify": False}).render(text))


def is_live(text: str) -> bool:
    shown = render(text).lower()
    return any(mark in shown for mark in ("<img", "<svg", "<style", 'href="http'))


def test_the_texts_are_live_where_they_stand_alone() -> None:
    assert sum(map(is_live, LIVE)) >= 10


@pytest.mark.parametrize("text", LIVE)
def test_live_parts_are_escaped_removed_or_shown_as_code(text: str) -> None:
    assert not is_live(f"1. `tool`: {escape_markdown(text)}\n")
    assert not is_live(f"1. {format_literal(text)}\n   - x: {format_literal(text)}\n")
    assert not is_live(remove_live_parts(text))


@pytest.mark.parametrize(
    "text", ["read notes.md and add 2 + 3", "call web_fetch (twice)", "20 % off, costs 5 EUR", "", "a_b_c"]
)
def test_ordinary_words_stay_as_they_are(text: str) -> None:
    assert escape_markdown(text) == text
    assert remove_live_parts(text) == text


def test_an_address_in_an_intent_stays_readable() -> None:
    assert remove_live_parts(f"fetch {EVIL} [now]") == f"fetch {EVIL} [now]"
