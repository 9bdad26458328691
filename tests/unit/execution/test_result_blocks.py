"""Which results a small model reads before it answers: a look that another call has used says nothing more."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from agent.core.events import StepOutput
from agent.core.models import PlanStep
from agent.run_context.outputs import build_result_blocks
from agent.tools import PlanHints
from tests.unit.planning.kitchen import spec

PATHS: Any = {"paths": {"type": "array", "items": {"type": "string"}}}
SPECS = {
    one.name: one
    for one in (
        spec("describe", PATHS, ["paths"]),
        spec("query", {"sql": {}, **PATHS}, ["sql"], hints=PlanHints(looks_first_with="describe")),
    )
}


def make_step(step_id: str, tool: str, *paths: str, **args: Any) -> PlanStep:
    return PlanStep(
        id=step_id, executor="agent", action="tool", tool=tool, args={"paths": [*paths], **args}, intent="count"
    )


@pytest.mark.parametrize(
    ("queried", "shown"),
    [((), ["s1", "s2"]), (("a.csv",), ["s2", "s3"]), (("a.csv", "b.csv"), ["s3"])],
    ids=["nothing", "one of two tables", "both"],
)
def test_what_a_query_worked_on_is_not_shown_beside_its_result(queried: tuple[str, ...], shown: list[str]) -> None:
    steps = [make_step("s1", "describe", "a.csv"), make_step("s2", "describe", "b.csv")]
    steps += [make_step("s3", "query", *queried, sql="SELECT 1")] if queried else []
    run = SimpleNamespace(
        engine=SimpleNamespace(registry=SimpleNamespace(find_spec=SPECS.get)),
        profile=SimpleNamespace(decides="rounds"),
        decides_in_rounds=True,
        state=SimpleNamespace(question="How many?", selections={}, get_step=lambda _: SimpleNamespace(last=None)),
    )
    blocks = build_result_blocks(cast("Any", run), [(step, StepOutput(text="3 rows")) for step in steps], ())
    assert [name for name in ("s1", "s2", "s3") if any(f'step="{name}"' in block for block in blocks)] == shown
