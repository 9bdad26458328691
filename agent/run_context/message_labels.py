"""The labels of a run's messages: which of them are the user's words, and which answers are ours.

The one place for the histories of all doors: whatever a client sends, a run reads it in its retrieve stage.
"""

import asyncio
from collections.abc import Sequence
from typing import Final

from agent.core.events import AnswerFinished, TextLabel
from agent.core.models import ChatMessage
from agent.core.run_state import RunState
from agent.policy.message_labels import (
    compute_digests,
    keep_known_text,
    label_message,
    list_digests,
    split_attachments,
)
from agent.policy.redaction.inbound import restore_text
from agent.run_context.run import Run
from agent.text.own_words import OwnWords
from agent.tools import ToolSpec

INLINE_CHARS: Final = 200_000
"""Longer histories are digested in a thread; these take some milliseconds."""


async def label_messages(
    run: Run, history: Sequence[ChatMessage]
) -> tuple[tuple[ChatMessage, ...], tuple[TextLabel, ...]]:
    """Returns the messages that a client sent, as models may read them, and their labels in the same order."""
    sent = run.state.request.messages or ()
    if sum(len(message.content) for message in sent) > INLINE_CHARS:
        digests = await asyncio.to_thread(list_digests, sent)
    else:
        digests = list_digests(sent)
    known = await run.engine.conversations.find_answer_labels(run.state.owner, digests)
    labels = tuple(label_message(message, known) for message in sent)
    return tuple(keep_known_text(message, known) for message in history), labels


def label_prompt(prompt: str) -> TextLabel | None:
    """Returns the label of a prompt to which a client attached text; None if it is the user's words alone."""
    if not split_attachments(prompt).attached:
        return None
    return TextLabel(source="attachment", trusted=False, private=True)


def collect_own_words(state: RunState) -> OwnWords:
    """Returns what the user and the operator have said in this conversation, as models see it and as it was written.

    That are the room's and the client's instructions, the user's messages without attached texts, and what a person
    replied to a question of this run.
    """
    return OwnWords(*_list_own_texts(state))


def get_own_prompt(state: RunState) -> str:
    """Returns the user's words of this request, in the original and in English if it was translated."""
    own = split_attachments(state.prompt)
    understood = state.understanding
    # A model translated the whole prompt: of one with an attachment, nobody can say which words are whose.
    translated = understood.question if understood is not None and understood.translated and not own.attached else ""
    return own.own if translated in ("", own.own) else f"{own.own}\n{translated}"


def label_answer(run: Run, answer: AnswerFinished) -> AnswerFinished:
    """Returns the answer with its label and digests; without them if a message of the conversation is unknown.

    An answer that may repeat an unknown message says no more about itself than that message does.
    """
    state = run.state
    if state.has_unknown_answers or not answer.text.strip():
        return answer
    outputs = [output for step in state.steps.values() if (output := step.output) is not None]
    trusted = not state.has_outside_text and not any(output.tainted for output in outputs)
    recalled = state.retrieval.items if state.retrieval is not None else ()
    label = TextLabel(source="answer", trusted=trusted, private=bool(recalled) or _has_read_private(run))
    return answer.model_copy(update={"label": label, "digests": compute_digests(answer.text)})


def _has_read_private(run: Run) -> bool:
    """Returns whether the run knows something that is neither public nor the user's own words."""
    state, tools = run.state, run.engine.registry
    if state.tainted or any(label.private for label in state.message_labels):
        return True
    steps = [step for proposed in state.plans for step in proposed.plan.steps]
    read = [step for step in steps if (output := state.get_step(step.id).output) is not None and output.tainted]
    return any(step.tool not in tools or not _is_public(tools.get(step.tool).spec) for step in read)


def _is_public(spec: ToolSpec) -> bool:
    """Returns whether the tool reads public pages only. A foreign server's missing hint says nothing about that."""
    return spec.origin == "builtin" and spec.annotations.open_world


def _list_own_texts(state: RunState) -> list[str]:
    history = state.retrieval.history if state.retrieval is not None else ()
    said = [message.content for message in history if message.role in ("system", "developer", "user")]
    replies = [decided.reason for decided in state.decisions.values() if decided.decision in ("answered", "rejected")]
    texts = [split_attachments(text).own for text in said]
    texts = [state.room.system_prompt, *texts, get_own_prompt(state), *replies]
    restored = [restore_text(state, text) for text in texts]
    return [*restored, *(text for text, plain in zip(texts, restored, strict=True) if text != plain)]
