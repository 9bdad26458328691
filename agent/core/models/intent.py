"""Intents of messages to the studio, as its router classifies them, and the tasks that follow."""

from typing import Literal, Self

from pydantic import Field, model_validator

from agent.core.models.words import FrozenModel, JsonObject

IntentCategory = Literal["room_management", "tool_generation", "query", "config"]


class UserIntent(FrozenModel):
    """One thing that a message asks for. `action` is the name of a tool where one call does all of it, else a verb."""

    category: IntentCategory
    action: str = ""
    entities: dict[str, str] = Field(default_factory=dict, description="names and values that the message gives")
    confidence: float = Field(ge=0, le=1, allow_inf_nan=False)


class TaskStep(FrozenModel):
    """One task of a plan: what to do, which sub-agent does it, and the tasks before it, counted from 0."""

    action: str
    target: str
    parameters: JsonObject = Field(default_factory=dict)
    depends_on: tuple[int, ...] = ()


class TaskPlan(FrozenModel):
    """The tasks of a message with several requests."""

    goal: str
    steps: tuple[TaskStep, ...]
    estimated_tools: tuple[str, ...] = ()

    @model_validator(mode="after")
    def check_dependencies(self) -> Self:
        """Refuses a task that depends on itself, a later task, or none."""
        for number, step in enumerate(self.steps):
            if any(not 0 <= other < number for other in step.depends_on):
                raise ValueError(f"task {number} may depend on the tasks before it only, counted from 0")
        return self
