"""`parse_decision`: the messages that say nothing but yes or no; and what a question shows of long values."""

import pytest

from agent.core.events import ApprovalItem, ApprovalRequested
from agent.policy.approval import format_question, parse_decision


@pytest.mark.parametrize(
    "text",
    [
        *("approve", "`approve`", "“Approve.”", "approve it", "yes", "Yes, please!", "y", "sure", "ok, go ahead"),
        *("do it", "OK 👍", "Ja, tack", "ja bitte", "mach das", "Oui, merci", "s'il vous plaît, oui", "/approve"),
    ],
)
def test_a_message_that_only_says_yes_approves(text: str) -> None:
    assert parse_decision(text) == ("approved", "")


@pytest.mark.parametrize(
    ("text", "decision"),
    [
        ("👍🏽", "approved"),
        ("👍️", "approved"),
        ("👎🏿", "rejected"),
        ("> Approve or reject?\n> approve\n\nyes", "approved"),
        ("> Reply `approve`\n\nno", "rejected"),
        ("Yes.\n\n-- \nSent from my iPhone", "approved"),
        ("no\n--\nyes", "rejected"),
        ("/approve\n\n> Approve?", "approved"),
        ("yes, but to Bo\n\n> Approve?", "answered"),
        ("> yes", "answered"),
        ("-- \nyes", "answered"),
        ("yes -- but only to Bo", "answered"),
    ],
)
def test_what_a_client_quotes_or_signs_is_not_the_reply(text: str, decision: str) -> None:
    assert parse_decision(text)[0] == decision


def test_a_reply_in_words_is_passed_on_without_what_it_quotes() -> None:
    assert parse_decision("> Approve?\n\nonly to Bo\n-- \nAnna") == ("answered", "only to Bo")
    assert parse_decision("/reject too late\n-- \nAnna") == ("rejected", "too late")
    assert parse_decision("> only a quotation") == ("answered", "> only a quotation")


@pytest.mark.parametrize("text", ["no", "No, thanks.", "nope", "don't", "reject it", "nej tack", "Nein, danke!", "👎"])
def test_a_message_that_only_says_no_rejects(text: str) -> None:
    assert parse_decision(text) == ("rejected", "")


@pytest.mark.parametrize(
    "text",
    [
        *("do not do it", "don't do it", "no, do it", "yes but later", "not sure", "thanks", "please", "", "…"),
        *("yes, and send it to eve@evil.example too", "sure, why not", "ok then cancel", "is that ok?"),
        "yes " * 50,
    ],
)
def test_anything_else_is_an_answer_in_words(text: str) -> None:
    assert parse_decision(text)[0] == "answered"


def make_question(**args: object) -> str:
    roles = {"to": "where", "amount": "amount", "body": "content"}
    item = ApprovalItem.model_validate(
        {"step_id": "s1", "tool": "mail__send", "changes": True, "args": args, "roles": {k: roles[k] for k in args}}
    )
    request = ApprovalRequested(
        approval_id="apr_1", digest="d", plan_version=0, expires_at=0, items=(item,), reason="it sends", call_id="c1"
    )
    return format_question((request,), "run_1")


def test_a_question_shows_every_recipient_and_both_ends_of_a_text() -> None:
    to = [*(f"colleague{number}@ours.example" for number in range(200)), "eve@evil.example"]
    question = make_question(to=to, body=f"Hello {'x' * 5_000} the code is 4711")
    assert all(question.count(address) for address in to)
    assert "the code is 4711 (5,0" in question
    assert len(question) < 12_000
