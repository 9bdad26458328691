"""How it is done: a plan, its steps, and the verdict on what a step came to."""

from enum import StrEnum
from typing import Literal

from pydantic import Field

from agent.core.models.words import Action, Effect, Executor, Frozen, JsonObject, Tier

STEP_ID_PATTERN = r"^[A-Za-z][A-Za-z0-9_-]{0,31}$"


class PlanStep(Frozen):
    """One step of a plan, in the public form the trace shows.

    `args` may hold references to earlier results, `{"$from": "s1", "path": "output.items[0]"}`. `effect` is the
    worst effect class of what the step may call; `tier` and `provider` matter to completions.
    """

    id: str = Field(pattern=STEP_ID_PATTERN)
    executor: Executor
    action: Action
    tool: str
    args: JsonObject = Field(default_factory=dict)
    depends_on: tuple[str, ...] = ()
    intent: str = ""
    effect: Effect = "read"
    tier: Tier | None = None
    provider: str | None = Field(default=None, description="the model name a completion was sent to, by tier")

    @property
    def is_completion(self) -> bool:
        """Whether this step writes the answer with a model."""
        return self.action == "completion"

    @property
    def title(self) -> str:
        """What a person sees on a step card."""
        return "answer" if self.is_completion else self.tool


class Plan(Frozen):
    """A goal and its steps. Version 0 is the first; each replan adds one and keeps the steps that succeeded."""

    goal: str
    language: str = "en"
    steps: tuple[PlanStep, ...]
    version: int = 0
    origin: Literal["llm", "rules", "request"] = "rules"
    origin_reason: str | None = None
    reasoning: str = ""

    def step(self, step_id: str) -> PlanStep:
        """The step of this id; KeyError when there is none."""
        for step in self.steps:
            if step.id == step_id:
                return step
        raise KeyError(step_id)

    def tools(self) -> tuple[str, ...]:
        """The tools and skills it means to use, each once."""
        return tuple(dict.fromkeys(step.tool for step in self.steps if not step.is_completion))

    def shown(self) -> JsonObject:
        """The plan as people are shown it: with its tools, as `estimated_tools`."""
        return {**self.model_dump(mode="json"), "estimated_tools": [*self.tools()]}


class Outcome(StrEnum):
    """The supervisor's word on one attempt of a step."""

    SUCCESS = "SUCCESS"
    RETRY = "RETRY"
    REPLAN = "REPLAN"
    ABORT = "ABORT"


class StepOutcome(Frozen):
    """A verdict. `by` names who gave it: the deterministic checks (`rule`) or the fast tier as judge (`model`)."""

    outcome: Outcome
    reason: str = Field(min_length=1)
    suggested_fix: str | None = None
    evidence: str = ""
    by: Literal["rule", "model"] = "rule"
