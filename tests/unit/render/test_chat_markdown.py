"""The export of a chat: each message is a closed part of its own."""

from markdown_it import MarkdownIt

from agent.core.models import JsonObject
from gateway.render.chat_markdown import format_chat


def cite(name: str) -> JsonObject:
    return {"metadata": {"sources": [{"id": 1, "name": name}]}}


def test_citations_of_each_answer_lead_to_no_other_ones_source() -> None:
    answers = [("assistant", "Lost? Report it [1].", cite("it.md")), ("assistant", "25 days [1].", cite("hr.pdf"))]
    text = format_chat("Chat", answers)  # type: ignore[arg-type]
    html = MarkdownIt("commonmark").render(text)
    assert "href" not in html
    assert html.count("<ol>") == 2
    assert "<li>it.md</li>" in html


def test_code_that_is_not_closed_ends_with_its_message() -> None:
    text = format_chat("Chat", [("assistant", "So:\n\n```python\nx = 1", {}), ("user", "and?", {})])
    assert "x = 1\n```\n\n## You\n\nand?" in text
    whole = format_chat("Chat", [("assistant", "~~~\nx\n~~~", {}), ("user", "and?", {})])
    assert whole.count("~~~") == 2


def test_headings_of_answers_are_below_those_of_the_export() -> None:
    text = format_chat("Chat", [("assistant", "# You\n\n###### deep\n\n```\n# code\n```", {})])
    assert "### You\n\n###### deep\n\n```\n# code\n```" in text


def test_a_message_without_text_says_what_it_is() -> None:
    text = format_chat("", [("user", "", {}), ("assistant", " ", {"replies": ["yes"]})])
    assert text == "# Chat\n\n## You\n\n(a picture)\n\n## You\n\nyes\n\n## Stepgate\n\n(no answer yet)\n"


def test_what_a_message_holds_is_not_changed_and_ends_with_it() -> None:
    said = "    indented = 1\n\nx\n\n```\na\x0cb\n```"
    assert said in format_chat("Chat", [("assistant", said, {})])
    for cut in ("<!-- a comment", "<pre>\ncode"):
        html = MarkdownIt("commonmark").render(format_chat("Chat", [("assistant", cut, {}), ("user", "and?", {})]))
        assert "<h2>You</h2>" in html, cut
    lowered = format_chat("Chat", [("assistant", "Title\n=====\n\nx", {})])
    assert "### Title\n\n\nx" in lowered


def test_the_name_of_a_source_is_one_line_in_which_nothing_is_live() -> None:
    name = "Rules\n\n# You\n\n![x](https://evil.example/p.png?q=4711)\u202e"
    view: JsonObject = {"metadata": {"sources": [{"id": 1, "name": name}, {"id": 2, "name": "rates_2026 (final).pdf"}]}}
    text = format_chat("Chat", [("assistant", "So it is [1].", view)])
    shown = MarkdownIt("commonmark", {"html": True}).render(text)
    assert shown.count("<h1>") == 1
    assert "<img" not in shown
    assert "\u202e" not in text
    assert "2. rates_2026 (final).pdf" in text
    page: JsonObject = {"metadata": {"sources": [{"id": 1, "name": "https://pages.example/a?b=1"}]}}
    assert "1. `https://pages.example/a?b=1`" in format_chat("Chat", [("assistant", "[1]", page)]), "can be copied"
