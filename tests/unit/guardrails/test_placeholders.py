"""Placeholders go out, values come back, in whatever way a model writes them and wherever a stream is cut."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent.policy.guardrails import Finding, PlaceholderMap
from agent.policy.guardrails.pii import find_personal_data


def make_placeholder_map(text: str) -> tuple[PlaceholderMap, str]:
    placeholders = PlaceholderMap()
    findings = [Finding(category="pii", kind=k, start=s.start, end=s.end) for k, s in find_personal_data(text)]
    return placeholders, placeholders.replace_findings(text, findings)


@pytest.mark.row("S003-04")
def test_the_same_value_has_the_same_placeholder() -> None:
    placeholders, text = make_placeholder_map(
        "Mail ann@example.org or bob@example.org; ANN@example.org is best. Call +46 70-174 06 05."
    )
    assert text == "Mail <EMAIL_1> or <EMAIL_2>; <EMAIL_1> is best. Call <PHONE_1>."
    assert placeholders.restore(text) == (
        "Mail ann@example.org or bob@example.org; ann@example.org is best. Call +46 70-174 06 05."
    )


@pytest.mark.parametrize(
    "written",
    [
        "<EMAIL_1>", "<email_1>", "<Email_1>", "< EMAIL_1 >", "&lt;EMAIL_1&gt;", "\\<EMAIL\\_1\\>", "EMAIL_1",
        "<EMAIL-1>",
        "<EMAIL 1>", "<EMAIL_01>", "\u2039EMAIL_1\u203a", "\\u003cEMAIL_1\\u003e",
    ],
)  # fmt: skip
def test_restores_what_models_make_of_placeholders(written: str) -> None:
    placeholders, _ = make_placeholder_map("ann@example.org")
    for around in ("{}", "**{}**", "`{}`", "({})", "write to {}.", "[mail](mailto:{})", '"{}"', "{}s"):
        text = around.format(written)
        if written == "EMAIL_1" and around == "{}s":
            continue
        assert placeholders.restore(text) == around.format("ann@example.org")


def test_what_was_never_given_out_stays() -> None:
    placeholders, _ = make_placeholder_map("ann@example.org")
    for text in ("<EMAIL_2>", "<PHONE_1>", "MY_EMAIL_1", "EMAIL_12", "EMAIL_1_x", "xEMAIL_1"):
        assert placeholders.restore(text) == text


def test_a_placeholder_in_the_text_is_never_given_out() -> None:
    placeholders, text = make_placeholder_map(
        "What is <EMAIL_1>, email_3? Mine are a@example.org, b@example.org, c@example.org."
    )
    assert text == "What is <EMAIL_1>, email_3? Mine are <EMAIL_2>, <EMAIL_4>, <EMAIL_5>."
    assert placeholders.restore("<EMAIL_1> <EMAIL_3>") == "<EMAIL_1> <EMAIL_3>"


def test_a_vault_survives_its_run() -> None:
    placeholders, _ = make_placeholder_map("ann@example.org, bob@example.org")
    again = PlaceholderMap(placeholders.entries)
    assert again.restore("<EMAIL_2>") == "bob@example.org"
    assert again.assign_placeholder("EMAIL", "bob@example.org") == "EMAIL_2"
    assert again.assign_placeholder("EMAIL", "new@example.org") == "EMAIL_3"


_BITS = st.sampled_from(
    ["<EMAIL_1>", "<email_1", "EMAIL_1", "EMAIL_12", "&lt;EMAIL_1&gt;", "&lt;", "<", ">", "\\<EMAIL\\_2\\>", "EMA",
     "IL_1", "_", "1", " ", "a", "**", "`", "<EMAIL 1>", "EMAIL_2", "<PHONE_1>", "e", "\n", "\\",
     "\\u003cEMAIL_1\\u003e", "é"]
)  # fmt: skip


@example("<EMAIL_1><email_1\\>", [1])
@given(st.lists(_BITS, max_size=12).map("".join), st.lists(st.integers(1, 9), min_size=1, max_size=40))
def test_any_split_restores_the_same(text: str, sizes: list[int]) -> None:
    placeholders = PlaceholderMap(
        {"EMAIL_1": "ann@example.org", "EMAIL_2": "<b>@example.org", "PHONE_1": "+46 70 174 06 05"}
    )
    stream = placeholders.create_stream_restorer()
    out, at = [], 0
    for size in [*sizes, *([7] * len(text))]:
        out.append(stream.feed(text[at : at + size]))
        at += size
    assert "".join(out) + stream.end() == placeholders.restore(text)


def test_a_stream_never_shows_half_a_placeholder_and_holds_nothing_else_back() -> None:
    stream = PlaceholderMap({"EMAIL_1": "ann@example.org"}).create_stream_restorer()
    assert stream.feed("Write to <EM") == "Write to "
    assert stream.feed("AIL_1") == ""
    assert stream.feed("> now") == "ann@example.org now"
    assert stream.feed(" 3 < 4 and more text") == " 3 < 4 and more text"
    assert stream.end() == ""
