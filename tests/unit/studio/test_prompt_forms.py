"""A field of a prompt is in each of its forms, and every form saves the same."""

import inspect
from typing import Any

import pytest

from gateway.features.studio.commands.prompts import save
from gateway.features.studio.engine.prompt import Prompt, PromptChange
from gateway.features.studio.prompt_forms import (
    SAVE_ROLES,
    PromptLine,
    PromptOutput,
    PromptSaveBody,
    PromptSaveInput,
    PromptVersion,
    to_change,
    to_output,
)

CHANGED = set(PromptChange.model_fields) - {"from_outside"}
PROMPT = Prompt(name="brief", version=2, text="Be brief.", description="short answers", by="anna", at=60.0)


def test_each_form_has_the_fields() -> None:
    shown = {str(field.validation_alias or name) for name, field in PromptVersion.model_fields.items()}
    assert shown == set(Prompt.model_fields) > CHANGED
    assert set(PromptOutput.model_fields) == set(PromptLine.model_fields) | {"text", "versions"}
    assert set(PromptSaveBody.model_fields) == CHANGED | {"version"}
    assert set(PromptSaveInput.model_fields) == set(SAVE_ROLES) == CHANGED | {"name", "version"}
    assert set(inspect.signature(save).parameters) >= CHANGED


@pytest.mark.parametrize("fields", [{"text": "Be brief."}, {"text": "Be brief.", "description": "short answers"}])
def test_every_form_saves_the_same(fields: dict[str, Any]) -> None:
    expected = PromptChange.model_validate(fields)
    assert to_change(PromptSaveBody.model_validate({**fields, "version": 1})) == expected
    assert to_change(PromptSaveInput.model_validate({**fields, "name": "brief", "version": 1})) == expected


def test_routes_and_tools_show_the_same_prompt() -> None:
    item = PromptVersion.model_validate(PROMPT)
    output = to_output(PROMPT, [PROMPT, PROMPT.model_copy(update={"version": 1})])
    same = {"name", "version", "description", "text"}
    assert item.model_dump(include=same) == output.model_dump(include=same)
    assert output.versions == [2, 1]
    assert item.model_dump(mode="json")["saved_at"] == "1970-01-01T00:01:00Z"
