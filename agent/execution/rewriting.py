"""`rewritten`: the summary in a tool's result, put by a model where the executor may use one. What does not hold to the
report stays as the tool made it, and it is told why."""

import re

from agent.core.errors import BudgetError, ModelError
from agent.core.events import ToolReturned
from agent.core.models import JsonObject
from agent.execution.figures import invented_numbers
from agent.execution.metering import MeteredModels
from agent.execution.outputs import CITATION, SKILL_CHARS, data_block
from agent.execution.run import Run
from agent.execution.site import CallSite
from agent.prompts import render
from agent.tools import Tool, TypedTool

REWRITTEN = frozenset({"summarize", "build_incident_brief"})
FIELD = "summary"
MAX_WORDS = 80
_THINKING = re.compile(r"<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL | re.IGNORECASE)


async def rewritten(
    run: Run, tool: Tool, args: JsonObject, returned: ToolReturned, site: CallSite
) -> tuple[ToolReturned, str | None]:
    """The result with its summary rewritten, or as it was with the reason; no reason where no model is to be asked.

    Only in rooms that require the tool, and in a run's first plan: a summary that did not pass is left to the rules."""
    first = run.state.plan is None or run.state.plan.version == 0
    room = run.room.required_tools + run.room.incident_tools
    value = returned.output
    if not run.works_with_model or not first or tool.spec.name not in REWRITTEN or tool.spec.name not in room:
        return returned, None
    if returned.error_code is not None or not isinstance(value, dict) or not isinstance(tool, TypedTool):
        return returned, None
    before = str(value.get(FIELD) or "")
    most = args.get("max_words")
    words = most if isinstance(most, int) else MAX_WORDS
    report = str(args.get("text") or args.get("query") or "")
    if not before or not report:
        return returned, None
    try:
        text = await _asked(run, site, report, before, words)
    except (ModelError, BudgetError) as error:
        return returned, f"{tool.spec.name} kept its own summary: {error.message}"
    if problem := _problem(text, before, report, words):
        return returned, f"{tool.spec.name} kept its own summary: the model's {problem}"
    changed: JsonObject = {**value, FIELD: text}
    if "words" in changed:
        changed["words"] = len(text.split())
    told = tool.text(tool.Output.model_validate(changed))
    return returned.model_copy(update={"output": changed, "text": told, "implementation": "llm"}), None


async def _asked(run: Run, site: CallSite, report: str, summary: str, words: int) -> str:
    user = data_block("report", report, limit=SKILL_CHARS) + "\n" + data_block("summary", summary, limit=SKILL_CHARS)
    messages: tuple[JsonObject, ...] = (
        {"role": "system", "content": render("rewrite", max_words=str(words))},
        {"role": "user", "content": user},
    )
    reply = await MeteredModels(run, site.step_id, site.attempt).complete("skill", messages, max_tokens=6 * words)
    return "" if reply.finish_reason == "length" else _THINKING.sub("", reply.text).strip()


def _problem(text: str, before: str, report: str, words: int) -> str | None:
    """What keeps a summary from being taken."""
    if not text:
        return "was empty or cut off"
    if len(text.split()) > 1.5 * words:
        return f"has more than {words} words"
    cited, known = set(CITATION.findall(text)), set(CITATION.findall(before))
    if cited - known or (known and not cited):
        return "does not cite what its own does"
    invented = invented_numbers(CITATION.sub("", text), f"{report}\n{before}")
    return f"has figures that stand nowhere in the report: {', '.join(invented[:5])}" if invented else None
