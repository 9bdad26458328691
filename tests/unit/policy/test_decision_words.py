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
        ("> Approve or reject?\n> Reply `approve`\n\nyes", "approved"),
        ("> Approve or\n> reject? Reply `approve`\nno", "rejected"),
        ("> Reply `approve`\n\nyes", "answered"),
        (">\n>> Approve or reject?\n> \n> Reply `approve`\n/approve", "approved"),
        ("> Approve or reject?\n> yes\n\nno", "answered"),
        ("yes, but to Bo\n\n> Approve or reject?", "answered"),
        ("> Approve or reject?", "answered"),
        ("> yes", "answered"),
        ("> 5 recipients is too many\nok", "answered"),
        ("ok\n>5 is too much", "answered"),
        ("approve\n> amount: 20 instead of 30", "answered"),
        ("/approve\n> change to 20", "answered"),
        ("yes\n--\nbut only Ann, not Bob", "answered"),
        ("ok\n-- \nwait, don't", "answered"),
        ("--\nyes", "answered"),
        ("yes -- but only to Bo", "answered"),
        ("y\u0336e\u0336s\u0336", "answered"),
        ("y\u0338es", "answered"),
    ],
)
def test_only_quoted_lines_of_the_question_are_not_the_reply(text: str, decision: str) -> None:
    assert parse_decision(text, question="Approve or reject?\n\nReply `approve`")[0] == decision


def test_a_reply_in_words_is_passed_on_without_what_it_quotes() -> None:
    assert parse_decision("> Approve?\n\nonly to Bo", question="Approve?") == ("answered", "only to Bo")
    assert parse_decision("> Approve?\n\nonly to Bo") == ("answered", "> Approve?\n\nonly to Bo")
    assert parse_decision("> Approve?", question="Approve?") == ("answered", "> Approve?")
    assert parse_decision("> Approve?\n\nyes") == ("answered", "> Approve?\n\nyes")


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
