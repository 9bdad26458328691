"""Whose credentials a room may name."""

import pytest

from agent.core.models import LOCAL_OWNER
from agent.storage.credentials import may_use_credential


@pytest.mark.parametrize(
    ("owner", "name", "allowed"),
    [
        ("anna", "anna/token", True),
        ("anna", "token", False),
        ("anna", "bo/token", False),
        ("anna", "annabel/token", False),
        ("anna", "anna/team/token", False),
        ("anna/team", "anna/team/token", True),
        (LOCAL_OWNER, "anna/token", True),
    ],
)
def test_a_room_names_credentials_of_its_owner(owner: str, name: str, allowed: bool) -> None:
    assert may_use_credential(owner, name) == allowed
