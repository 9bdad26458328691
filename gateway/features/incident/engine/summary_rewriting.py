"""Rewrites the summary in a tool's result by a model. A summary that does not match the report is rejected."""

from agent.answers.figures import find_unexplained_figures
from agent.core.errors import BudgetError, ModelError, PlanInvalidError
from agent.core.models import JsonObject
from agent.planning.parse import strip_thinking
from agent.run_context.outputs import CITATION, SKILL_CHARS, format_data_block
from agent.tools import CompleteMessages
from gateway.features.incident.engine.prompts import render

FIELD = "summary"
"""The field of the result that is rewritten."""
MAX_WORDS = 80
"""The longest summary of a tool without the argument `max_words`."""


async def rewrite_summary(
    value: JsonObject, args: JsonObject, complete: CompleteMessages
) -> tuple[JsonObject | None, str | None]:
    """The value with its summary rewritten, or None and the reason why the tool's own summary stays.

    Both are None if there is nothing to rewrite."""
    before = str(value.get(FIELD) or "")
    report = str(args.get("text") or args.get("query") or "")
    if not before or not report:
        return None, None
    limit = args.get("max_words")
    words = limit if isinstance(limit, int) else MAX_WORDS
    try:
        text = await _ask_model(complete, report, before, words)
    except (ModelError, BudgetError) as error:
        return None, f"kept its own summary: {error.message}"
    if problem := _find_problem(text, before, report, words):
        return None, f"kept its own summary: the model's {problem}"
    changed: JsonObject = {**value, FIELD: text}
    if "words" in changed:
        changed["words"] = len(text.split())
    return changed, None


async def _ask_model(complete: CompleteMessages, report: str, summary: str, words: int) -> str:
    user = (
        format_data_block("report", report, limit=SKILL_CHARS)
        + "\n"
        + format_data_block("summary", summary, limit=SKILL_CHARS)
    )
    messages: tuple[JsonObject, ...] = (
        {"role": "system", "content": render("rewrite", max_words=str(words))},
        {"role": "user", "content": user},
    )
    reply = await complete(messages, 6 * words)
    if not reply.is_whole:
        return ""
    try:
        return strip_thinking(reply.text.strip())
    except PlanInvalidError:  # the thinking has no end: there is no summary behind it
        return ""


def _find_problem(text: str, before: str, report: str, words: int) -> str | None:
    """The reason why a summary is rejected, or None."""
    if not text:
        return "was empty or cut off"
    if len(text.split()) > 1.5 * words:
        return f"has more than {words} words"
    cited, before_ids = set(CITATION.findall(text)), set(CITATION.findall(before))
    if cited - before_ids or (before_ids and not cited):
        return "does not cite what its own does"
    invented = find_unexplained_figures(CITATION.sub("", text), f"{report}\n{before}")
    return f"has figures that stand nowhere in the report: {', '.join(invented[:5])}" if invented else None
