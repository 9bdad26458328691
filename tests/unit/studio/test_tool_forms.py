"""A field of a generated tool is in each of its forms, and is stored without a column."""

import inspect
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, cast

import pytest

from agent.core.principal import Principal
from agent.storage.journal_sqlite import open_sqlite
from agent.storage.sql import SqliteClient
from gateway.features.studio.commands.generated_tools import generate
from gateway.features.studio.engine.generated_tools.models import (
    Candidate,
    CodeReview,
    Manifest,
    ToolRequest,
    ToolVersion,
)
from gateway.features.studio.engine.generated_tools.service import GeneratedTools
from gateway.features.studio.engine.generated_tools.version_store import COLUMN_FIELDS, ToolVersionStore
from gateway.features.studio.tool_forms import (
    GENERATE_ROLES,
    REFINE_ROLES,
    GenerateBody,
    RefineBody,
    ToolGenerateInput,
    ToolLine,
    ToolRefineInput,
    ToolVersionDetail,
    ToolVersionItem,
    ToolVersionOutput,
    to_detail,
    to_output,
)

ANNA = Principal("anna")
REVIEW = CodeReview(approved=True, issues=["Say more."], severity="minor")
VERSION = ToolVersion(
    "anna", "add", 2, "abc", "async def add(): ...", ("assert add",), Manifest(hosts=("a.example",)), REVIEW, "Adds.",
    "process", "staged", 60.0, parent=1, warnings=("It is slow.",), run_id="run_1", author="anna",
)  # fmt: skip
VERSION_FIELDS = {field.name for field in fields(ToolVersion)}
PERMISSIONS: dict[str, Any] = {"hosts": ["a.example"]}


@dataclass(frozen=True, slots=True)
class TimedVersion(ToolVersion):
    """A version with one field more."""

    seconds: float = 0.0


class Tools:
    """The tool `add` with two versions; the newer one may read a host more."""

    async def list_versions(self, principal: Principal, name: str) -> list[ToolVersion]:
        assert (principal, name) == (ANNA, "add")
        return [VERSION, replace(VERSION, version=1, state="applied", is_active=True)]

    async def list_wider(self, principal: Principal, version: ToolVersion) -> list[str]:
        assert (principal, version) == (ANNA, VERSION)
        return ["hosts a.example"]


TOOLS = cast("GeneratedTools", Tools())


def test_each_form_has_the_fields() -> None:
    shown = {str(field.validation_alias or name) for name, field in ToolVersionDetail.model_fields.items()}
    assert shown == VERSION_FIELDS - {"owner"} | {"wider"}
    assert set(ToolVersionDetail.model_fields) > set(ToolVersionItem.model_fields) > set(ToolLine.model_fields)
    assert set(ToolVersionOutput.model_fields) - {"versions"} < set(ToolVersionDetail.model_fields)
    asked = {field.name for field in fields(ToolRequest)} - {"earlier_code"}
    assert set(GenerateBody.model_fields) == set(ToolGenerateInput.model_fields) == set(GENERATE_ROLES) == asked
    assert set(ToolRefineInput.model_fields) == set(REFINE_ROLES) == asked - {"description"} | {"change"}
    assert set(RefineBody.model_fields) == set(ToolRefineInput.model_fields) - {"name"}
    assert set(inspect.signature(generate).parameters) >= asked - {"permissions"}


def test_every_form_asks_for_the_same_tool() -> None:
    expected = ToolRequest("Adds numbers.", "add", Manifest.model_validate(PERMISSIONS))
    given = {"description": "Adds numbers.", "name": "add", "permissions": PERMISSIONS}
    assert GenerateBody.model_validate(given).to_request() == expected
    assert ToolGenerateInput.model_validate(given).to_request() == expected
    assert ToolGenerateInput(description="Adds numbers.").to_request() == ToolRequest("Adds numbers.")
    change = {"change": "Adds numbers.", "permissions": PERMISSIONS}
    assert RefineBody.model_validate(change).to_request() == replace(expected, name=None)
    assert ToolRefineInput.model_validate({**change, "name": "add"}).to_request() == replace(expected, name=None)


async def test_routes_and_tools_show_the_same_version() -> None:
    detail, output = await to_detail(TOOLS, ANNA, VERSION), await to_output(TOOLS, ANNA, VERSION)
    assert detail.model_dump(mode="json", include=set(ToolVersionOutput.model_fields)) == output.model_dump(
        exclude={"versions"}
    )
    assert (detail.permissions, detail.sandbox, detail.wider) == (VERSION.manifest, "process", ["hosts a.example"])
    assert output.versions == ["2 (staged)", "1 (applied, in use)"]


def test_a_version_takes_what_its_making_yields() -> None:
    made = Candidate(
        "add", VERSION.code, VERSION.tests, VERSION.manifest, REVIEW, "Adds.", "process", ("It is slow.",), rounds=2
    )
    stored = made.list_stored_fields()
    assert set(stored) == {field.name for field in fields(Candidate)} - {"rounds"}
    assert all(getattr(VERSION, name) == value for name, value in stored.items())


async def test_a_further_field_is_stored_with_the_review(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = await open_sqlite(tmp_path / "stepgate.db")
    versions = ToolVersionStore(SqliteClient(store.database), lambda: 60.0)
    await versions.add(VERSION)
    module = "gateway.features.studio.engine.generated_tools.version_store"
    monkeypatch.setattr(f"{module}.ToolVersion", TimedVersion)
    timed = TimedVersion(**{name: getattr(VERSION, name) for name in VERSION_FIELDS}, seconds=1.5)
    added = await versions.add(timed)
    newest, first = await versions.list_versions("anna", "add")
    assert (newest, asdict(newest)["seconds"], newest.review) == (added, 1.5, REVIEW)
    assert (asdict(first)["seconds"], first.review) == (0.0, REVIEW), "stored before there was such a field"
    monkeypatch.undo()
    newest, _ = await versions.list_versions("anna", "add")
    assert newest == replace(VERSION, version=2), "an older version of the gateway leaves it out"
    assert VERSION_FIELDS - {"from_outside"} == COLUMN_FIELDS
    await store.close()


async def test_what_a_run_asked_for_before_there_was_a_mark_may_be_from_outside(tmp_path: Path) -> None:
    store = await open_sqlite(tmp_path / "stepgate.db")
    statements = SqliteClient(store.database)
    versions = ToolVersionStore(statements, lambda: 60.0)
    await versions.add(VERSION)
    await versions.add(replace(VERSION, run_id=""))
    await statements.write("UPDATE tool_versions SET review = ?", REVIEW.model_dump_json())
    assert [one.from_outside for one in await versions.list_versions("anna", "add")] == [False, True]
    await store.close()
