"""Selects the messages of a conversation for a model, and the instructions that precede them."""

from collections.abc import Iterable, Sequence

from agent.core.models import ChatMessage, Tier
from agent.core.run_state import RunState
from agent.llm.prompts import render
from agent.run_context.run import Run
from agent.run_context.token_estimates import CHARS_PER_TOKEN, estimate_prompt_tokens
from agent.text.language import ENGLISH, get_language_name

USUAL_CONTEXT_TOKENS, LARGEST_CONTEXT_TOKENS = 32_768, 65_536
TRIED_MESSAGES = 20
INSTRUCTION_ROLES = ("system", "developer")


def split_at_prompt(state: RunState) -> tuple[tuple[ChatMessage, ...], tuple[ChatMessage, ...]]:
    """The messages before the prompt and those after it.

    After the prompt may come calls of a client's tools, their results, and a prefilled answer. A stored conversation
    has no messages after it.
    """
    history = state.retrieval.history if state.retrieval is not None else ()
    position = state.request.prompt_position
    if position is None or state.request.messages is None:
        return history, ()
    return history[:position], history[position:]


def build_instructions(run: Run, history: Sequence[ChatMessage]) -> str:
    """The trusted part of a system message: the room's and the caller's instructions, and what memories are."""
    callers = [message.content for message in history if message.role in INSTRUCTION_ROLES and message.content]
    memory = render("memory") if run.state.retrieval and run.state.retrieval.items else ""
    return "\n\n".join(part for part in (run.room.system_prompt, *callers, memory) if part)


def name_language(run: Run) -> str:
    """The instruction about the language of an answer from results; "" for English, and where it is translated.

    An answer without results has none: the request speaks for itself, and it may ask for a translation."""
    understood = run.state.understanding
    if understood is None or understood.language == ENGLISH or understood.translated:
        return ""
    return f"Answer in {get_language_name(understood.language)}, the language of the request."


def remove_instructions(messages: Iterable[ChatMessage]) -> tuple[ChatMessage, ...]:
    """The messages without instructions, which are in the system message."""
    return tuple(message for message in messages if message.role not in INSTRUCTION_ROLES)


def count_fitting_messages(run: Run, messages: Sequence[ChatMessage], *, tier: Tier) -> int:
    """How many of the newest messages fit half of the context of the model that answers on this tier.

    The other half is for instructions, results and the answer. Some endpoints cut a prompt that is too long in silence,
    and with it the instructions. Where the context is not known, it is taken for a usual one, and a few messages are
    tried even if they are long: most endpoints then refuse the call, which is repeated with fewer. Of a larger one no
    more is filled: each answer would wait until all of it is read.
    """
    context = find_context_tokens(run, tier)
    left = min(context or USUAL_CONTEXT_TOKENS, LARGEST_CONTEXT_TOKENS) // 2
    for count, message in enumerate(reversed(messages)):
        # By bytes: a Chinese character is a token rather than a quarter of one.
        wide = len(message.content.encode("utf-8", "replace")) // CHARS_PER_TOKEN
        left -= max(wide, estimate_prompt_tokens((message.to_openai(),), ()))
        if left < 0:
            return count if context is not None else max(count, min(TRIED_MESSAGES, len(messages)))
    return len(messages)


def find_context_tokens(run: Run, tier: Tier) -> int | None:
    """The context of the model that answers on this tier, in tokens; None if it is not known."""
    models, room = run.engine.models, run.room
    is_fast = tier == "fast" or models.list_upstreams(tier, room)[:1] == models.list_upstreams("fast", room)[:1]
    measured = models.find_measured(room) if is_fast else None
    return measured.context_tokens if measured is not None else None


def take_newest_messages(messages: Sequence[ChatMessage], limit: int) -> tuple[ChatMessage, ...]:
    """The newest messages, at most `limit`.

    Providers reject a tool's result without its call, so a cut between them, a client's own too, drops the whole
    exchange.
    """
    start = max(0, len(messages) - limit)
    while start < len(messages) and messages[start].role == "tool":
        start += 1
    return tuple(messages[start:])
