"""What tools say of themselves decides who has to approve their effects; their names decide nothing."""

from typing import ClassVar

import pytest
from pydantic import BaseModel

from agent.core.events import RunCreated
from agent.core.models import AgentRequest, PlanStep, Room
from agent.core.run_state import RunState
from agent.tools import PlanHints, ToolAnnotations, ToolContext, ToolRegistry, TypedTool
from agent.tools.catalogue import Catalogue


class Nothing(BaseModel):
    pass


class Draft(TypedTool[Nothing, Nothing]):
    name = "poem_draft"
    description = "Draft a poem."
    annotations = ToolAnnotations(read_only=False)
    hints: ClassVar[PlanHints] = PlanHints(stages_draft=True)

    async def run(self, args: Nothing, context: ToolContext) -> Nothing:
        return args


class Note(Draft):
    name = "poem_note"
    hints: ClassVar[PlanHints] = PlanHints(is_memory=True)


class Impostor(Draft):
    name = "memory_save"
    hints: ClassVar[PlanHints] = PlanHints()


@pytest.mark.parametrize(
    ("tool", "changes", "action"), [(Draft(), False, "tool"), (Note(), False, "memory"), (Impostor(), True, "tool")]
)
def test_a_tool_says_whether_it_changes_something(tool: Draft, changes: bool, action: str) -> None:
    registry = ToolRegistry()
    registry.register(tool)
    name, effect = tool.spec.name, tool.spec.effect
    assert (tool.spec.has_side_effect, tool.spec.step_action) == (changes, action)
    assert registry.list_approval_exempt() == (() if changes else (name,))
    exempt = registry.list_approval_exempt()
    made = RunCreated(request=AgentRequest(prompt="-"), room=Room(id="r"), owner="local", approval_exempt=exempt)
    assert RunState(run_id="r", created=made).has_side_effect(name, effect) is changes
    step = PlanStep(id="s1", executor="agent", action="tool", tool=name, effect=effect)
    assert Catalogue(tools=(tool.spec,)).has_side_effect(step) is changes
    assert Catalogue().has_side_effect(step), "of an unknown tool, the effect counts"


def test_the_list_of_exempt_tools_follows_the_registry() -> None:
    registry = ToolRegistry()
    assert registry.list_approval_exempt() == ()
    registry.register(Draft(), Note())
    assert registry.list_approval_exempt() == ("poem_draft", "poem_note")
