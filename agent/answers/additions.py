"""Additions to an answer: results that people must see as they are, and sentences under it, such as that nothing was
changed or that no tool was used.
"""

import re
from collections.abc import Sequence

from agent.answers.sentences import say
from agent.core.models import Uncertainty
from agent.core.run_state import RunState
from agent.planning.open_parts import is_change_settled, list_unmade_changes
from agent.run_context.outputs import cut_text, list_results, load_output, obeys_all_it_reads, to_step_output
from agent.run_context.run import Run

SHOWN_CHARS = 60_000
"""Characters of one such result: more than the code and tests of a generated tool may have."""
ORDER_CHARS = 120
"""Characters of a part of a result that an uncertainty quotes."""
_FENCE = re.compile("`{3,}")


async def add_shown_results(run: Run, text: str) -> str:
    """The answer, followed by the results of tools with `PlanHints.is_always_shown` that it leaves out or has changed.

    A result with fenced blocks is left out if one of its blocks is not in the answer, word for word.
    """
    for result in await _list_always_shown(run):
        if not _holds(text, result):
            text = "\n\n".join(part for part in (text.rstrip(), cut_text(result, SHOWN_CHARS)) if part)
    return text


def add_unmade_changes(text: str, language: str, failures: Sequence[str] = (), *, may_claim: bool) -> str:
    """The answer with the sentence that nothing was changed, in `language` or else in English, and with the lines of
    `failures`: small models report what they plan, and any model may drop a change after a person's reply to it.

    With `may_claim`, a model wrote the text, which may say the opposite: then the sentence stands before it.
    """
    unmade = "\n\n".join(part for part in (say("unmade", language), "\n".join(failures)) if part)
    if not may_claim or not text.strip():
        return "\n\n".join(part for part in (text.strip(), unmade) if part)
    gap = "\n\n" if failures else " "
    return f"{unmade}{gap}{say('model_wrote', language)}\n\n{text}"


def add_memory_sentence(text: str, language: str, reason: str) -> str:
    """The answer with the sentence that no tool was used, in `language` or else in English, and with the reason."""
    return f"{text}\n\n{say('from_memory', language)} ({reason[:1].upper()}{reason[1:]}.)"


def list_missing_changes(run: Run) -> tuple[str, ...]:
    """The tools with which something was to be changed, if nothing was and nobody refused it."""
    return list_unmade_changes(run.state) or _list_dropped(run.state)


def find_undecided_reason(state: RunState) -> str:
    """Why the model that was to decide on calls did not, if it then answered without any; "" if all is well."""
    proposed = state.plans[-1] if state.plans else None
    if proposed is None or proposed.requested != "llm" or not proposed.fallback_reason:
        return ""
    if any(step.is_work for one in state.plans for step in one.plan.steps):
        return ""
    outputs = [state.get_step(step.id).output for step in proposed.plan.steps]
    is_written = any(one is not None and one.effective != "rules" and one.text.strip() for one in outputs)
    return f"no tool was used, because {proposed.fallback_reason}" if is_written else ""


def _list_dropped(state: RunState) -> tuple[str, ...]:
    """The tools of changes that a person was asked about and replied to in words, where no plan asked again."""
    decisions = state.decisions
    replied = (one for one in state.approvals if one.call_id is None and one.approval_id in decisions)
    replied = (one for one in replied if decisions[one.approval_id].decision == "answered")
    tools = {item.tool for one in replied for item in one.items if item.changes and item.effect != "read"}
    return tuple(sorted(tools)) if tools and not is_change_settled(state) else ()


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
    blocks = _list_blocks(result)
    return all(block in text for block in blocks) if blocks else result in text


def _list_blocks(text: str) -> list[str]:
    """The contents of the closed fenced blocks of a text, without empty ones. Takes time that grows with its length,
    also for a text full of fences that nothing closes.
    """
    blocks: list[str] = []
    lines: list[str] = []
    fence = ""
    for line in text.split("\n"):
        if not fence:
            opening = _FENCE.match(line)
            fence, lines = opening[0] if opening is not None else "", []
        elif line.rstrip(" \t") == fence:
            blocks.append("\n".join(lines).strip())
            fence = ""
        else:
            lines.append(line)
    return [block for block in blocks if block]


async def list_orders_left_out(run: Run) -> list[Uncertainty]:
    """What a small model did not get to read of results because it gives orders to assistants."""
    if not obeys_all_it_reads(run):
        return []
    from agent.policy.guardrails.orders import find_orders  # noqa: PLC0415 - loaded with the first such result

    return [
        Uncertainty(
            level="notable",
            message=f"the model did not read a part that gives orders to assistants: {order[:ORDER_CHARS]!r}",
            step_id=step.id,
        )
        for step, output in await list_results(run)
        if output.tainted
        for order in find_orders(output.text)
    ]
