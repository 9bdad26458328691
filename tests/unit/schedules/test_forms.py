"""A field of a schedule is in each of its forms, and is stored without a column."""

import inspect
from typing import Any

import pytest

from agent.core.errors import BadRequestError
from gateway.features.schedules.commands.schedules import create
from gateway.features.schedules.engine.model import COLUMN_FIELDS, REQUEST_FIELDS, ScheduleSpec
from gateway.features.schedules.forms import CREATE_ROLES, ScheduleChanges, ScheduleCreateInput, ScheduleItem

FIELDS = set(ScheduleSpec.model_fields)
NOT_OF_THE_COMMAND = {"metadata", "enabled"}
"""`disable` is a command of its own, and JSON is no option."""


class Noted(ScheduleSpec):
    """A schedule with one field more."""

    note: str = ""


def test_each_form_has_the_fields() -> None:
    assert set(ScheduleItem.model_fields) >= FIELDS
    assert set(ScheduleChanges.model_fields) == FIELDS
    assert set(ScheduleCreateInput.model_fields) <= FIELDS, "what a model may set"
    assert set(CREATE_ROLES) == set(ScheduleCreateInput.model_fields)
    options = {{"task": "task_id"}.get(name, name) for name in inspect.signature(create).parameters}
    assert options >= FIELDS - NOT_OF_THE_COMMAND


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"prompt": "2+2", "room": "r"}, {"prompt": "2+2", "room": "r", "metadata": {}, "note": "x"}),
        ({"task_id": "t"}, {"task_id": "t", "note": "x"}),
    ],
)
def test_a_further_field_is_stored_with_the_work(given: dict[str, Any], expected: dict[str, Any]) -> None:
    spec = Noted.model_validate({"name": "n", "cron": "@daily", "note": "x", **given})
    assert spec.to_work() == expected
    assert Noted.model_validate({"name": "n", "cron": "@daily", **spec.to_work()}) == spec
    assert FIELDS >= COLUMN_FIELDS | REQUEST_FIELDS


@pytest.mark.parametrize("name", sorted(FIELDS))
def test_null_in_a_change_means_empty_or_is_refused(name: str) -> None:
    change = ScheduleChanges.model_validate({name: None})
    if name in ("name", "cron", "overlap", "misfire", "enabled"):
        with pytest.raises(BadRequestError, match=f"^{name}: must not be null$"):
            change.to_changes()
    else:
        assert change.to_changes() == {name: {"prompt": "", "metadata": {}}.get(name)}
    assert ScheduleChanges.model_validate({}).to_changes() == {}


def test_a_model_sends_empty_texts_for_what_it_leaves_out() -> None:
    given = ScheduleCreateInput(name="n", cron="@daily", prompt="2+2", timezone="", room="")
    assert given.to_spec() == ScheduleSpec(name="n", cron="@daily", prompt="2+2")
    with pytest.raises(BadRequestError, match="name"):
        ScheduleCreateInput(name="", cron="@daily", prompt="2+2").to_spec()
