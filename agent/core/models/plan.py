"""Plans: a goal, its steps, and the verdicts on them."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Final, Literal

from pydantic import Field, JsonValue

from agent.core.errors import TooLargeError
from agent.core.models.words import Action, Effect, Executor, FrozenModel, JsonObject, Tier

STEP_ID_PATTERN = r"^[A-Za-z][A-Za-z0-9_-]{0,31}$"
MAX_WRITTEN_STEPS: Final = 500
"""Steps of a plan that a person edits, finished ones included: no room plans that many, and reading 100,000 takes
minutes, in which nobody else is served."""


def check_written_steps(steps: Sequence[JsonValue]) -> None:
    """Raises `TooLargeError` for a plan of more steps than are read."""
    if len(steps) > MAX_WRITTEN_STEPS:
        message = f"the plan has {len(steps):,} steps; at most {MAX_WRITTEN_STEPS} are read"
        raise TooLargeError(message, param="plan")


class PlanStep(FrozenModel):
    """One step of a plan, in the public form that the trace shows.

    `args` may contain references to earlier results, `{"$from": "s1", "path": "output.items[0]"}`. `effect` is the
    worst effect class of what the step may call. `tier` and `provider` apply to completions.
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
    tools: tuple[str, ...] | None = Field(
        default=None,
        description="the tools that a skill step may call, of its skill's; null: those that read without the network",
    )
    provider: str | None = Field(default=None, description="the model that a completion was sent to, by tier")

    @property
    def is_completion(self) -> bool:
        """Whether this step writes the answer with a model."""
        return self.action == "completion"

    @property
    def is_plan_more(self) -> bool:
        """Whether this step ends a round: the planner then sees the results and plans the next one."""
        return self.action == "plan_more"

    @property
    def is_work(self) -> bool:
        """Whether this step calls a skill or a tool, unlike a completion or the end of a round."""
        return self.action not in ("completion", "plan_more")

    @property
    def title(self) -> str:
        """The title of the step for people."""
        return "answer" if self.is_completion else "next round" if self.is_plan_more else self.tool


class Plan(FrozenModel):
    """A goal and its steps. Version 0 is the first. Each replan adds one and keeps the steps that succeeded."""

    goal: str
    language: str = "en"
    steps: tuple[PlanStep, ...]
    version: int = 0
    origin: Literal["llm", "rules", "request"] = "rules"
    origin_reason: str | None = None
    reasoning: str = ""

    def get_step(self, step_id: str) -> PlanStep:
        """The step of this id. Raises KeyError."""
        for step in self.steps:
            if step.id == step_id:
                return step
        raise KeyError(step_id)

    def list_tools(self) -> tuple[str, ...]:
        """The tools and skills that the plan uses, each once."""
        return tuple(dict.fromkeys(step.tool for step in self.steps if step.is_work))

    def to_public_json(self) -> JsonObject:
        """The plan as people see it, with its tools as `estimated_tools`."""
        return {**self.model_dump(mode="json"), "estimated_tools": [*self.list_tools()]}


class Outcome(StrEnum):
    """The supervisor's decision on one attempt of a step."""

    SUCCESS = "SUCCESS"
    RETRY = "RETRY"
    REPLAN = "REPLAN"
    ABORT = "ABORT"


class StepOutcome(FrozenModel):
    """A verdict. `by` is who gave it: the deterministic checks (`rule`) or the fast tier as judge (`model`)."""

    outcome: Outcome
    reason: str = Field(min_length=1)
    suggested_fix: str | None = None
    evidence: str = ""
    by: Literal["rule", "model"] = "rule"
