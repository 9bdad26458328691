"""The fields of a model as arguments and options of a command."""

import inspect
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypedDict

import pytest
import typer
from pydantic import BaseModel, Field
from typer.testing import CliRunner

from gateway.cli.model_options import add_fields


class Boat(BaseModel):
    name: str = Field(description="what it is called")
    berth: str | None = Field(default=None, description="where it lies")
    colour: Literal["red", "blue"] = Field(default="red", description="the colour of the hull")
    tags: dict[str, str] = Field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ship:
    name: Annotated[str, Field(description="what it is called")]
    berth: Annotated[str | None, Field(description="where it lies")] = None
    tags: tuple[str, ...] = ()


class Voyage(TypedDict, total=False):
    harbour: Annotated[str, Field(description="where it begins")]
    tags: list[str]


@pytest.fixture
def launched() -> tuple[typer.Typer, list[dict[str, Any]]]:
    app, calls = typer.Typer(), list[dict[str, Any]]()

    @app.command()
    @add_fields(Boat, arguments=("name",), leave_out=("tags",))
    def launch(fields: dict[str, Any], owner: str = "local") -> None:
        """Launch a boat."""
        calls.append({**fields, "owner": owner})

    return app, calls


def test_each_field_of_the_model_is_an_option(launched: tuple[typer.Typer, list[dict[str, Any]]]) -> None:
    app, calls = launched
    runner = CliRunner()
    assert runner.invoke(app, ["Ida", "--berth", "4", "--owner", "anna"]).exit_code == 0
    assert runner.invoke(app, ["Eva", "--colour", "blue"]).exit_code == 0
    assert calls == [
        {"name": "Ida", "berth": "4", "colour": "red", "owner": "anna"},
        {"name": "Eva", "berth": None, "colour": "blue", "owner": "local"},
    ]
    assert runner.invoke(app, []).exit_code == 2
    assert runner.invoke(app, ["Ida", "--tags", "x"]).exit_code == 2


def test_the_help_says_what_the_model_says(launched: tuple[typer.Typer, list[dict[str, Any]]]) -> None:
    output = CliRunner().invoke(launched[0], ["--help"], env={"COLUMNS": "200"}).output
    assert "The colour of the hull: red or blue." in output
    assert "Launch a boat." in output


@pytest.mark.parametrize(
    ("model", "arguments", "expected"),
    [
        (Ship, ["Ida", "--yes", "--berth", "4"], {"name": "Ida", "berth": "4"}),
        (Ship, ["Ida", "--yes"], {"name": "Ida", "berth": None}),
        (Voyage, ["--yes", "--harbour", "Visby"], {"harbour": "Visby"}),
        (Voyage, ["--yes"], {"harbour": None}),
    ],
)
def test_a_dataclass_and_a_typed_dictionary_have_fields_too(
    model: type, arguments: list[str], expected: dict[str, Any]
) -> None:
    app, calls = typer.Typer(), list[dict[str, Any]]()

    @app.command()
    @add_fields(model, arguments=("name",), leave_out=("tags",))
    def launch(yes: bool = False, *, fields: dict[str, Any]) -> None:
        """Launch it."""
        calls.append({**fields, "yes": yes})

    assert CliRunner().invoke(app, arguments).exit_code == 0
    assert calls == [{**expected, "yes": True}]
    output = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "200"}).output
    assert ("Where it lies." if model is Ship else "Where it begins.") in output


def test_the_fields_are_where_the_command_names_them() -> None:
    @add_fields(Boat, leave_out=("tags", "colour"))
    def launch(yard: str, fields: dict[str, Any], owner: str = "local") -> None:
        """Launch a boat."""

    assert list(inspect.signature(launch).parameters) == ["yard", "name", "berth", "owner"]
