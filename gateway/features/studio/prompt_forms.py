"""The forms of a saved prompt: as routes and commands send it, as tools show it, and as it is saved.

A field of a prompt is defined in `Prompt`, and in `PromptChange` if a person sets it (`engine/prompt.py`); it is
then an option of `stepgate prompts save`, too. It is added here to each form that has it, and stored without a column
of its own.
"""

from collections.abc import Sequence
from datetime import datetime

from pydantic import Field

from agent.core.models import DeferredModel
from agent.core.record_item import RecordItem
from agent.tools import declare_roles
from agent.tools.stored_things import Arguments
from gateway.doors.strict_body import StrictBody
from gateway.features.studio.engine.prompt import Prompt, PromptChange

SAVE_ROLES = declare_roles(name="id", text="other", description="content", version="id")
"""The roles of `PromptSaveInput`."""


class PromptVersion(RecordItem):
    """A version of a prompt, as routes and commands send it."""

    name: str
    version: int
    description: str
    text: str
    saved_by: str = Field(validation_alias="by")
    saved_at: datetime = Field(validation_alias="at")
    from_outside: bool = Field(default=False, description="whether it may be a text that a model had read")


class PromptLine(RecordItem):
    """A prompt as it is listed: its newest version."""

    name: str
    version: int
    description: str
    from_outside: bool = False


class PromptOutput(DeferredModel):
    """A version of a prompt. `versions` are those that are kept, newest first."""

    name: str
    version: int
    description: str
    text: str
    versions: list[int]
    from_outside: bool = False


class PromptSaveBody(StrictBody):
    """A prompt. What equals the newest version is not stored again."""

    text: str
    description: str | None = Field(default=None, description="unset: the earlier one")
    version: int | None = Field(default=None, ge=0, description="the version that was read; 409 if it has changed")


class PromptSaveInput(Arguments):
    """Arguments of `prompt_save`."""

    name: str = Field(max_length=200, description="its name: a-z, 0-9, '-', '_' and '.'")
    text: str = Field(description="the whole prompt")
    description: str | None = Field(default=None, description="what it is for; unset keeps the earlier one")
    version: int | None = Field(
        default=None, ge=0, description="the version that was read; refused if it has changed. 0: there is none yet"
    )


def to_change(form: PromptSaveBody | PromptSaveInput, *, from_outside: bool = False) -> PromptChange:
    """The change that a form asks for."""
    return PromptChange(text=form.text, description=form.description, from_outside=from_outside)


def to_output(prompt: Prompt, versions: Sequence[Prompt]) -> PromptOutput:
    """A version of a prompt as tools show it, with the versions that are kept."""
    fields = {name: value for name, value in prompt if name in PromptOutput.model_fields}
    return PromptOutput.model_validate({**fields, "versions": [one.version for one in versions]})
