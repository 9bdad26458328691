"""What the page says is being done."""

import pytest

from agent.core.models import PlanStep
from gateway.render.answer_view import MAX_LINE_CHARS, describe_step

LONG = "lost devices and where they are reported " * 9


@pytest.mark.parametrize(
    ("step", "words"),
    [
        ({"tool": "search_files", "args": {"limit": 3, "query": "lost  devices"}}, "search files: lost devices"),
        ({"tool": "search_files", "args": {"query": "x"}, "intent": "find who takes them"}, "find who takes them"),
        ({"tool": "list_files"}, "list files"),
        ({"tool": "completion", "action": "completion"}, "Writing the answer"),
    ],
)
def test_a_step_is_described_by_its_intent_or_its_call(step: dict[str, object], words: str) -> None:
    assert describe_step(PlanStep.model_validate({"id": "s1", "executor": "agent", "action": "tool", **step})) == words


def test_a_long_description_is_cut() -> None:
    step = PlanStep(id="s1", executor="agent", action="tool", tool="search_files", args={"query": LONG})
    line = describe_step(step)
    assert line.startswith("search files: lost devices")
    assert len(line) <= MAX_LINE_CHARS
