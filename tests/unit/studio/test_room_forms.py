"""Forms of a room: the fields come from `Room`, and routes and tools ask for the same changes."""

from typing import Any

import pytest

from agent.core.models import Room
from gateway.features.studio.engine.room_changes import RoomCopy, RoomCreation, RoomEdit
from gateway.features.studio.engine.room_view import RoomView
from gateway.features.studio.room_forms import (
    COPY_ROLES,
    CREATE_ROLES,
    EDIT_ROLES,
    RoomCopyBody,
    RoomCopyInput,
    RoomCreateBody,
    RoomCreateInput,
    RoomDetail,
    RoomEditInput,
    RoomItem,
    RoomOutput,
    format_room,
    to_detail,
    to_item,
    to_line,
    to_output,
)

ROOM = Room(id="desk", name="Desk", description="Helps.", suggestions=("Hello?",), owner="anna", persona="Calm.")
VIEW = RoomView("desk", "managed", ROOM, version="v1", text="name: Desk\n")


class ItemWithPersona(RoomItem):
    """A form that shows one field more."""

    persona: str


def test_every_form_shows_the_same_room() -> None:
    item, detail, line, output = to_item(VIEW), to_detail(VIEW), to_line(VIEW), to_output(VIEW)
    assert item == RoomItem(
        id="desk", name="Desk", description="Helps.", origin="managed", owner="anna", suggestions=["Hello?"],
        version="v1", error=None,
    )  # fmt: skip
    assert detail.model_dump(exclude={"yaml", "room"}) == item.model_dump()
    assert (detail.yaml, detail.room) == ("name: Desk\n", ROOM.model_dump(mode="json"))
    same = item.model_dump(include={"id", "name", "description", "origin"})
    assert line.model_dump() == {**same, "from_outside": False, "error": ""}
    assert output == RoomOutput(id="desk", name="Desk", origin="managed", version="v1", yaml="name: Desk\n")
    assert format_room(output) == "Room desk (managed, version v1)\nname: Desk"


def test_a_further_field_is_shown_by_the_form_that_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.features.studio.room_forms.RoomItem", ItemWithPersona)
    assert to_item(VIEW).model_dump()["persona"] == "Calm."


def test_a_room_that_was_never_usable_shows_its_error_and_belongs_to_nobody() -> None:
    broken = RoomView("desk", "file", None, version="v2", text="name: [", error="no YAML")
    detail = to_detail(broken)
    assert isinstance(detail, RoomDetail)
    assert (detail.id, detail.name, detail.description, detail.owner) == ("desk", "desk", "", "")
    assert (detail.suggestions, detail.error, detail.room, detail.yaml) == ([], "no YAML", None, "name: [")
    assert format_room(to_output(broken)).splitlines()[1] == "Not served as it is: no YAML"


def test_the_route_and_the_tool_create_the_same_room() -> None:
    fields: dict[str, Any] = {"name": "Desk", "description": "Helps.", "planning": False}
    body = RoomCreateBody.model_validate({"id": "desk", **fields})
    given = RoomCreateInput(name="Desk", description="Helps.", room_id="desk", fields={"planning": False})
    assert body.to_change() == given.to_change() == RoomCreation(fields=fields, room_id="desk")
    assert RoomCreateInput(name="Desk").to_change() == RoomCreateBody(name="Desk").to_change()
    assert set(CREATE_ROLES) == set(RoomCreateInput.model_fields)


def test_the_route_and_the_tool_copy_the_same_room() -> None:
    assert RoomCopyBody(id="b", name="B").to_change("desk") == RoomCopy(room_id="desk", new_id="b", name="B")
    assert RoomCopyInput(room_id="desk", new_id="b", name="B").to_change() == RoomCopyBody(id="b", name="B").to_change(
        "desk"
    )
    assert RoomCopyInput(room_id="desk").to_change() == RoomCopyBody().to_change("desk")
    assert set(COPY_ROLES) == set(RoomCopyInput.model_fields)


@pytest.mark.parametrize(
    ("field", "value", "fields"),
    [
        ("description", "Helps.", {"description": "Helps."}),
        ("budgets.max_steps", 3, {"budgets": {"max_steps": 3}}),
        ("tools", "calculator, web_fetch", {"tools": ["calculator", "web_fetch"]}),
        ("persona", None, {"persona": None}),
    ],
)
def test_a_tool_names_one_field_to_edit(field: str, value: Any, fields: dict[str, Any]) -> None:
    edit = RoomEditInput(room_id="desk", field=field, value=value, version="v1").to_change()
    assert edit == RoomEdit(room_id="desk", fields=fields, version="v1")
    assert RoomEditInput(room_id="desk", field=field, value=value).to_change().version is None
    assert set(EDIT_ROLES) == set(RoomEditInput.model_fields)
