"""Guard: redacts the prompt by the room's policy, and removes hidden characters."""

import unicodedata

from agent.core.events import InputGuarded, RunFailed
from agent.execution.given_plan import take_over_request
from agent.policy.redaction.requests import check_prompt, scan_request
from agent.run_context.run import Run
from agent.text.plurals import format_count


async def guard(run: Run) -> None:
    """Records the prompt for the rest of the run: without hidden characters, redacted by the room's policy.

    If the room blocks any text of the request, the run ends. A run with a given plan takes over what the earlier run
    recorded.
    """
    given = run.state.given
    if given is not None:
        await take_over_request(run, given)
        return
    prompt = run.state.request.prompt
    visible = prompt if prompt.isascii() and "\x00" not in prompt else strip_hidden(prompt)
    removed = len(prompt) - len(visible)
    findings = (f"removed from the prompt: {format_count(removed, 'hidden character')}",) if removed else ()
    guards = run.room.guard_input
    checked = await check_prompt(visible, guards)
    beside, refused = await scan_request(run.state.request, guards) if checked.blocked is None else ((), None)
    guarded = InputGuarded(
        prompt=checked.prompt,
        removed_characters=removed,
        findings=(*findings, *checked.findings, *beside),
        placeholders=checked.placeholders or {},
    )
    blocked = checked.blocked or refused
    if blocked is not None:
        await run.emit(guarded, RunFailed(failure=blocked.model_copy(update={"stage": "guard"})))
    else:
        await run.note(guarded)


def strip_hidden(text: str) -> str:
    """Removes from `text` control, tag and bidirectional-override characters, which only a model reads.

    Keeps joiners (U+200C, U+200D), because Persian, Indic scripts and emoji need them.
    """
    # By the characters that occur, not by each place: a megabyte of Arabic held the loop for a second.
    hidden = {
        ord(char): None
        for char in set(text)
        if char not in "\n\t\r\u200c\u200d" and unicodedata.category(char) in ("Cc", "Cf", "Co", "Cs")
    }
    return text.translate(hidden) if hidden else text
