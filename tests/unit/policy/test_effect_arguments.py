"""Which values from outside are asked about, by role and by the room's setting."""

import pytest

from agent.core.events import ConfirmedValue
from agent.core.models import ArgumentRole, EffectPolicy
from agent.execution.confirmed_values import is_confirmed
from agent.policy.approval.effect_arguments import find_asked_args

CONFIRMED = (
    ConfirmedValue(tool="send_mail", argument="to", value="bo@example.org"),
    ConfirmedValue(tool="send_mail", argument="cc", value=["ann@example.org", "eva@example.org"]),
    ConfirmedValue(tool="pay", argument="amount", value=1),
)


@pytest.mark.parametrize("policy", ["ask_any", "ask_where"])
@pytest.mark.parametrize("role", ["where", "amount", "content", "id", "other"])
def test_the_setting_and_the_role_decide_what_is_asked(policy: EffectPolicy, role: ArgumentRole) -> None:
    asked = bool(find_asked_args({"x": role}, policy))
    assert asked == (policy == "ask_any" or role != "content")


@pytest.mark.parametrize(("policy", "asked"), [("ask_any", ("x",)), ("ask_where", ())])
def test_an_id_that_a_list_of_the_same_server_showed_asks_only_by_default(
    policy: EffectPolicy, asked: tuple[str, ...]
) -> None:
    assert find_asked_args({"x": "id"}, policy, listed=["x"]) == asked


@pytest.mark.parametrize(
    ("tool", "argument", "value", "known"),
    [
        ("send_mail", "to", "bo@example.org", True),
        ("send_mail", "to", ["bo@example.org"], True),
        ("send_mail", "to", ["bo@example.org", "mallory@example.org"], False),
        ("send_mail", "to", "bo@example.org.evil", False),
        ("send_mail", "cc", "ann@example.org", True),
        ("send_mail", "cc", ["eva@example.org", "ann@example.org"], True),
        ("send_mail", "cc", [], False),
        ("send_mail", "cc", [["ann@example.org"]], False),
        ("send_mail", "body", "bo@example.org", False),
        ("delete", "to", "bo@example.org", False),
        ("pay", "amount", True, False),
        ("pay", "amount", 10, False),
    ],
)
def test_a_confirmed_value_counts_for_its_argument_of_its_tool_only(
    tool: str, argument: str, value: object, known: bool
) -> None:
    assert is_confirmed(CONFIRMED, tool, argument, value) == known  # type: ignore[arg-type]
