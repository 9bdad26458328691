"""A sub-agent for tests, whose one tool does what a test says, and a skill that starts sub-agents."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from pydantic import BaseModel, Field, JsonValue

from agent.core.events import Event, StepOutput, SubAgentFinished
from agent.core.models import JsonObject, Room
from agent.core.subagent_result import SubAgentResult
from agent.subagents import SubAgent, ToolCalls
from agent.tools import Tool
from gateway.features.documents.engine.prompts import PROMPTS
from tests.support.script import Call, Rule, says
from tests.support.tools import FunctionTool, Work

SKILL = "---\nname: delegate\ndescription: Delegates.\nallowed-tools: {tools}\n---\nHand the work on.\n"


class ScoutTask(BaseModel):
    """Where to look."""

    goal: str = Field(min_length=1)


class ScoutFinal(BaseModel):
    """What was found."""

    answer: str


class Scout(SubAgent[ScoutTask, ScoutFinal]):
    """Looks, by `WORK`, and remembers what it saw."""

    AGENT_ID = "scout"
    DESCRIPTION = "Looks around."
    PROMPT = "subagent_researcher"
    PROMPTS = PROMPTS
    Task = ScoutTask
    Final = ScoutFinal
    WORK: Work
    OPTIONS: ClassVar[dict[str, Any]] = {}

    def make_tools(self) -> Sequence[Tool]:
        """`look` alone."""
        return (FunctionTool("look", type(self).WORK, **self.OPTIONS),)

    def build_first_message(self) -> str:
        """The goal."""
        return f"Look for {self.task.goal}."

    def record_call(self, tool: str, args: JsonObject, output: StepOutput) -> None:
        """Keep the text."""
        self.known = [*self._known, output.text or f"error: {output.error}"]

    def build_partial_data(self) -> JsonObject:
        """What was seen so far."""
        return {"goal": self.task.goal, "seen": [*self._known]}

    async def conclude(self, final: ScoutFinal, calls: ToolCalls) -> SubAgentResult:
        """The model's answer with what was seen."""
        return SubAgentResult(
            success=True, data={**self.build_partial_data(), "answer": final.answer}, summary=final.answer
        )

    async def run_by_rules(self, calls: ToolCalls) -> SubAgentResult:
        """One look."""
        await calls("look", {"x": self.task.goal})
        return SubAgentResult(success=True, data=self.build_partial_data(), summary="Looked once.")

    @property
    def _known(self) -> list[str]:
        known: list[str] = getattr(self, "known", [])
        return known


def scout(work: Work, **attributes: Any) -> type[Scout]:
    """A scout whose `look` does this; attributes are the class's: `MAX_TURNS`, `TIMEOUT_SECONDS`, `BORROWS`."""
    made: type[Scout] = type("TestScout", (Scout,), {"WORK": staticmethod(work), **attributes})
    return made


def looking(*found: JsonValue) -> Work:
    """Work that finds these one after the other, the last one for ever."""
    left = list(found)

    async def work(_: JsonObject) -> JsonValue:
        return left.pop(0) if len(left) > 1 else left[0]

    return work


def skill_folder(folder: Path, *tools: str) -> Path:
    """A folder of skills with `delegate`, which may call these tools."""
    place = folder / "skills" / "delegate"
    place.mkdir(parents=True, exist_ok=True)
    (place / "SKILL.md").write_text(SKILL.format(tools=" ".join(tools)))
    return folder / "skills"


def room_with(*tools: str, **fields: Any) -> Room:
    """A room that allows these tools."""
    return Room(id="test", tools=tools, **fields)


def spawns(*goals: str, tool: str = "spawn_scout") -> Rule:
    """A rule: the skill's model starts a scout for each goal, in one turn."""
    calls = tuple(Call(tool, {"goal": goal}, id=f"c{number}") for number, goal in enumerate(goals, start=1))
    return says("", to="skill", calls=calls, times=1)


def looks(about: str | None = None, times: int | None = None, id: str = "l1", **args: str) -> Rule:  # noqa: A002
    """A rule: the sub-agent's model looks."""
    return says("", to="subagent", about=about, times=times, calls=(Call("look", args or {"x": "there"}, id=id),))


def ends(about: str | None = None, **final: Any) -> Rule:
    """A rule: the sub-agent's model ends with this JSON."""
    return says(f"Here it is.\n```json\n{json.dumps(final)}\n```", to="subagent", about=about)


def ended(events: Sequence[Event]) -> list[SubAgentFinished]:
    """How the sub-agents of a run ended."""
    return [event.body for event in events if isinstance(event.body, SubAgentFinished)]
