"""Results that people must see as they are, added to an answer that leaves them out."""

import re

from agent.run_context.outputs import cut_text, load_output, to_step_output
from agent.run_context.run import Run

SHOWN_CHARS = 60_000
"""Characters of one such result: more than the code and tests of a generated tool may have."""
_FENCED = re.compile(r"^(`{3,})[^\n]*\n(.*?)\n\1[ \t]*$", re.DOTALL | re.MULTILINE)


async def add_shown_results(run: Run, text: str) -> str:
    """The answer, followed by the results of tools with `PlanHints.is_always_shown` that it leaves out or has changed.

    A result with fenced blocks is left out if one of its blocks is not in the answer, word for word.
    """
    for result in await _list_always_shown(run):
        if not _holds(text, result):
            text = "\n\n".join(part for part in (text.rstrip(), cut_text(result, SHOWN_CHARS)) if part)
    return text


async def _list_always_shown(run: Run) -> list[str]:
    """The texts of these results, the newest first: a later version may hold what an earlier one showed."""
    texts = []
    for call in run.state.list_calls():
        spec, returned = run.engine.registry.find_spec(call.intent.tool), call.result
        if returned is None or returned.error_code is not None or spec is None:
            continue
        if spec.hints.is_always_shown:
            texts.append((await load_output(run, to_step_output(returned))).text.strip())
    return [text for text in dict.fromkeys(reversed(texts)) if text]


def _holds(text: str, result: str) -> bool:
    blocks = [match[2].strip() for match in _FENCED.finditer(result)]
    return all(block in text for block in blocks) if blocks else result in text
