"""The live view of a run in a terminal: what models and tools wrote is printed as it is, whatever Rich reads in it."""

import pytest

from agent.core import events as ev
from agent.core.models import Plan, PlanStep
from gateway.cli import lazy_rich
from gateway.cli.progress import RunProgressView

TEXTS = ["\\[/nope]", "\\[red]x", "[/dim]", "ends with \\", "\\\\[/x]", "[link=https://evil.example]here[/link]"]


def make_event(body: ev.EventBody, seq: int) -> ev.Event:
    return ev.Event("run_1", seq, 1, 0.0, body, "s1", 1)


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_that_looks_like_markup_is_printed_as_it_is(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    step = PlanStep(id="s1", tool="look", action="tool", executor="litellm", intent=text)
    view = RunProgressView(lazy_rich.Console(width=200))
    proposed = ev.PlanProposed(plan=Plan(goal="g", steps=(step,)), requested="llm", effective="llm")
    bodies: list[ev.EventBody] = [
        proposed,
        ev.ToolRefused(call_id="c", tool="look", args={}, reason=text),
        ev.StepUnknown(call_id="c", tool="look", key="k", message=text),
    ]
    for seq, body in enumerate(bodies, start=1):
        view.show(make_event(body, seq))
    assert capsys.readouterr().out.count(text) == 2
