"""Row 5: what supervision costs in model calls when all goes well, and what it catches when something does not."""

import tempfile
from pathlib import Path

from pydantic import JsonValue

from agent.core.errors import ToolError
from agent.core.events import StepJudged
from agent.core.models import Outcome
from tests.bench.report import Row
from tests.support.engine import engine_bench
from tests.support.script import judges, plans, says, script
from tests.support.tools import returning

GOOD = "The invoices of March amount to 4 200 kronor for electricity, 310 for water and 95 for waste collection."
BAD: dict[str, JsonValue | Exception] = {
    "an exception": ToolError("the connection was reset", agent_id="invoices"),
    "nothing": "",
    "an empty list": [],
    "an error as text": "Error: quota exceeded for this key",
    "a status in words": "HTTP 404: the page is not there",
    "an error in the data": {"error": "no such customer"},
    "a failed status": {"status": 503, "body": "try again later"},
    "a failure that says so": {"isError": True, "content": "denied"},
    "no hits for a later step": {"items": []},
    "a sign-in page": "Please sign in to continue. Enter your user name and your password to see this site.",
    "another subject": "Penguins are birds that cannot fly; most live in the southern half of the world, near coasts.",
    "a few wrong words": "Penguins.",
    "another subject in like words": "March is a month. Some say it comes in like a lion and leaves like a lamb.",
}
INTENT = "list the invoices of March"
WRONG = ("sign in to continue", "Penguins", "comes in like a lion")
PROMPT = "search the invoices, then look up their sums"


async def row() -> Row:
    """Model calls of a three-step plan that goes well over its two (plan, answer); and which bad results of its
    second step got another verdict than SUCCESS. The judge, where it is asked, is always right."""
    calls, verdicts = await _watch(GOOD)
    assert all(verdict is Outcome.SUCCESS for verdict in verdicts), f"a good plan was judged {verdicts}"
    missed = [name for name, bad in BAD.items() if _passed((await _watch(bad))[1])]
    details = [f"passed unnoticed: {', '.join(missed)}"] if missed else []
    return Row(
        "5 model calls over the minimum, supervised 3-step plan",
        "",
        calls / 2,
        1.0,
        note=f"({len(BAD) - len(missed)} of {len(BAD)} bad steps caught)",
        details=details,
    )


def _passed(verdicts: list[Outcome]) -> bool:
    return all(verdict is Outcome.SUCCESS for verdict in verdicts)


async def _watch(result: JsonValue | Exception) -> tuple[int, list[Outcome]]:
    """The model calls of a run whose second step first returns `result`, and that step's verdicts."""
    model = script(
        plans(
            {"tool": "customers", "intent": "list the customers"},
            {"tool": "invoices", "inputs": {"x": "$s1"}, "depends_on": ["s1"], "intent": INTENT},
            {"tool": "sums", "inputs": {"x": "$s2"}, "depends_on": ["s2"], "intent": "add the invoices up"},
            {"tool": "completion", "depends_on": ["s1", "s2", "s3"]},
        ),
        *(judges("RETRY", to_the_point, about=to_the_point) for to_the_point in WRONG),
        judges("SUCCESS"),
        says("The sum is 4 605 kronor.", to="completion"),
    )
    tools = [returning("customers", "Customers: Ada"), returning("invoices", result, GOOD), returning("sums", "4 605")]
    with tempfile.TemporaryDirectory() as folder:
        async with engine_bench(Path(folder), model, tools=tools) as bench:
            events = await bench.events(PROMPT)
            return len(bench.client.requests), [
                event.body.verdict.outcome
                for event in events
                if isinstance(event.body, StepJudged) and event.step_id == "s2"
            ]
