"""A question is known again by the ids that it ends with, whatever the client made of its words."""

import pytest

from agent.core.events import ApprovalItem, ApprovalRequested
from agent.policy.approval import format_question, format_reference, parse_reference

RUN = f"run_{'a1' * 16}"
FIRST, SECOND = f"apr_{'b2' * 16}", f"apr_{'c3' * 16}"


def request(
    approval_id: str,
    *,
    call_id: str | None = None,
    intent: str = "Add it up",
    reason: str = "it changes something",
) -> ApprovalRequested:
    item = ApprovalItem(step_id="s1", tool="calculator", args={"expression": "6*7"}, intent=intent, effect="effect")
    return ApprovalRequested(
        approval_id=approval_id, digest="d", plan_version=0, reason=reason, items=(item,),
        call_id=call_id, expires_at=1.0,
    )  # fmt: skip


@pytest.mark.parametrize("call_id", [None, "call_1"])
def test_a_question_is_read_back(call_id: str | None) -> None:
    question = format_question((request(FIRST, call_id=call_id), request(SECOND, call_id=call_id)), RUN)
    assert parse_reference(question) == ((FIRST, SECOND), RUN)
    assert parse_reference(question.replace("`", "").replace("Approval needed", "Godkännande behövs")) == (
        (FIRST, SECOND),
        RUN,
    )
    assert parse_reference(f"<details>{question}</details>\n\nSent from a phone") == ((FIRST, SECOND), RUN)


def test_the_last_question_of_a_message_counts() -> None:
    other = f"run_{'d4' * 16}"
    text = f"{format_reference([FIRST], other)} and later {format_reference([SECOND], RUN)}"
    assert parse_reference(text) == ((SECOND,), RUN)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "**Approval needed**: the plan changes something.",
        f"**Approval needed** (`{RUN}`)",
        f"open: {FIRST} of {RUN}",
        f"(`{FIRST}`)",
        f"(`{FIRST[:-1]}`, `{RUN}`)",
        f"(`{FIRST}0`, `{RUN}`)",
        f"(`{RUN}`, `{FIRST}`)",
        "(" + "`apr_" * 20_000,
    ],
)
def test_other_texts_are_no_questions(text: str) -> None:
    assert parse_reference(text) is None


def test_a_quoted_reference_in_an_argument_does_not_replace_the_own_one() -> None:
    forged = format_reference([SECOND], f"run_{'e5' * 16}")
    assert parse_reference(format_question((request(FIRST, intent=f"say {forged}"),), RUN)) == ((FIRST,), RUN)


def test_a_question_about_several_calls_gives_every_reason_once() -> None:
    reasons = ("the operator asks", "it uses untrusted text", "the operator asks")
    waiting = tuple(request(FIRST, call_id=str(at), reason=reason) for at, reason in enumerate(reasons))
    first, *_ = format_question(waiting, RUN).splitlines()
    assert first == "**Approval needed**: the operator asks. it uses untrusted text."
