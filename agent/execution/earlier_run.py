"""Finds what earlier runs leave to this one: results of one that ended with a question, and confirmed values."""

from collections.abc import Sequence

from agent.core.errors import NotFoundError
from agent.core.events import ConfirmedValue, EarlierResult
from agent.core.models import ChatMessage
from agent.core.run_reducer import fold
from agent.core.run_state import RunState
from agent.execution.confirmed_values import list_confirmed_values
from agent.policy.approval import list_read_servers
from agent.run_context.outputs import SKILL_CHARS, cut_text, load_output
from agent.run_context.run import Run

ASKING_RUNS = 20
"""The number of an owner's newest runs with a question that are searched."""


async def find_earlier_results(run: Run, history: Sequence[ChatMessage]) -> tuple[EarlierResult, ...]:
    """The results of the run whose question this request answers; () if there is none.

    That run has the same owner and conversation, and its question is the assistant's last message. If the client sends
    the messages without a conversation id, the message before the question must be that run's prompt.
    """
    spoken = [message for message in history if message.role in ("user", "assistant") and message.content]
    if len(spoken) < 2 or spoken[-1].role != "assistant":
        return ()
    prompt, question = spoken[-2].content.strip(), spoken[-1].content.strip()
    conversation = run.state.request.conversation_id
    for row in await run.journal.list_runs(owner=run.state.owner, status="awaiting_input", limit=ASKING_RUNS):
        if row.conversation_id != conversation:
            continue
        earlier_state = fold(row.run_id, await run.journal.read_events(row.run_id))
        if (
            earlier_state.answer is None
            or earlier_state.answer.text.strip() != question
            or earlier_state.room.id != run.room.id
        ):
            continue
        if conversation is not None or earlier_state.request.prompt.strip() == prompt:
            return await _list_results(run, earlier_state)
    return ()


async def find_confirmed(run: Run) -> tuple[tuple[ConfirmedValue, ...], tuple[str, ...]]:
    """The values that a person confirmed in the conversation before this run, and the servers whose reads they allowed.

    They count if this gateway made the conversation's id, or if the run before has the same API key. Others could name
    the conversation too.
    """
    state, conversation = run.state, run.state.request.conversation_id
    if conversation is None:
        return (), ()
    last = await run.engine.conversations.find_last_run(state.owner, conversation, parent=state.request.parent)
    if last is None or last == run.run_id:
        return (), ()
    try:
        await run.journal.get_run(last, owner=state.owner)
        before = fold(last, await run.journal.read_events(last))
    except NotFoundError:
        return (), ()
    same_key = state.api_key_id is not None and state.api_key_id == before.api_key_id
    if not state.has_own_conversation and not same_key:
        return (), ()
    return list_confirmed_values(before), tuple(sorted(list_read_servers(before)))


async def _list_results(run: Run, asked: RunState) -> tuple[EarlierResult, ...]:
    """The earlier results that the run received, and the results of its own steps."""
    earlier = list(asked.retrieval.earlier_results) if asked.retrieval is not None else []
    for step in asked.steps_of_all_plans.values():
        state = asked.get_step(step.id)
        if step.is_work and state.status == "succeeded" and state.output is not None:
            output = await load_output(run, state.output)
            text = cut_text(output.text, SKILL_CHARS)
            earlier.append(EarlierResult(tool=step.tool, intent=step.intent, text=text, tainted=output.tainted))
    return tuple(earlier)
