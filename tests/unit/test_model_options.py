"""The fields of a model as arguments and options of a command."""

from typing import Any, Literal

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
