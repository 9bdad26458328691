"""A saved `Prompt`, and a change of one."""

import hashlib

from pydantic import Field

from agent.core.models import FrozenModel, JsonObject


class PromptChange(FrozenModel):
    """A change of a prompt. A field that is None keeps its earlier value. `from_outside`: the text may be one that a
    model had read.
    """

    text: str
    description: str | None = Field(default=None, description="what it is for; default the earlier one")
    from_outside: bool = False


class Prompt(FrozenModel):
    """A version of a prompt, counted from 1; 0 stands for a prompt that is not saved yet. `at` is UTC seconds since
    1970.
    """

    name: str
    version: int = 0
    text: str = ""
    description: str = ""
    by: str = ""
    at: float = 0.0
    from_outside: bool = False

    @property
    def digest(self) -> str:
        """A checksum of the text."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:16]

    @property
    def room_fields(self) -> JsonObject:
        """The fields that a room gets by it. A text from outside marks the room."""
        return {"system_prompt": self.text, **({"from_outside": True} if self.from_outside else {})}
