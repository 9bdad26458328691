"""The labels of a run's messages: which of them are the user's words, and which answers are ours.

The one place for the histories of all doors: whatever a client sends, a run reads it in its retrieve stage.
"""

import asyncio
from collections.abc import Sequence
from datetime import datetime, tzinfo
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

from agent.core.errors import NotFoundError
from agent.core.events import AnswerFinished, RunWaiting, TextLabel
from agent.core.models import ChatMessage
from agent.core.plan_references import list_literals
from agent.core.run_reducer import fold
from agent.core.run_state import RunState
from agent.llm.provider_fields import drop_reasoning, iter_reasoning_texts
from agent.policy.approval import format_approval_question, parse_reference
from agent.policy.guardrails.message_labels import (
    compute_digests,
    compute_reasoning_digests,
    keep_known_text,
    label_message,
    list_digests,
    split_attachments,
)
from agent.policy.redaction.inbound import restore_text
from agent.run_context.run import Run
from agent.text.own_words import MAX_CHARS, OwnWords
from agent.text.relative_dates import list_resolved
from agent.text.replies import ShownValues, UserReply
from agent.tools import ToolSpec

MAX_QUESTIONS: Final = 10
"""Runs whose approval questions are compared with the messages of a client."""
CACHED_REPLIES: Final = 8
"""Runs whose replies are held in memory: each argument of each call is compared with them."""
INLINE_CHARS: Final = 200_000
"""Longer histories are digested in a thread; these take some milliseconds."""


async def label_messages(
    run: Run, history: Sequence[ChatMessage]
) -> tuple[tuple[ChatMessage, ...], tuple[TextLabel, ...]]:
    """The messages that a client sent, as models may read them, and their labels in the same order.

    A room that plans or has a skill reads no reasoning of earlier answers: a client could have written it.
    """
    sent = run.state.request.messages or ()
    if run.room.planning or run.room.skill is not None:
        sent, history = tuple(map(_drop_reasoning, sent)), tuple(map(_drop_reasoning, history))
    thoughts = (text for message in sent for text in iter_reasoning_texts(message.provider_fields))
    if sum(len(message.content) for message in sent) + sum(map(len, thoughts)) > INLINE_CHARS:
        digests = await asyncio.to_thread(list_digests, sent)
    else:
        digests = list_digests(sent)
    answer_labels = await run.engine.conversations.find_answer_labels(run.state.owner, digests)
    answer_labels |= await _find_questions(run, sent)
    labels = tuple(label_message(message, answer_labels) for message in sent)
    return tuple(keep_known_text(message, answer_labels) for message in history), labels


def _drop_reasoning(message: ChatMessage) -> ChatMessage:
    """An answer without its reasoning. With calls it is kept: providers want it back with the results."""
    if message.role != "assistant" or message.tool_calls or not message.provider_fields:
        return message
    return message.model_copy(update={"provider_fields": drop_reasoning(message.provider_fields)})


async def _find_questions(run: Run, sent: Sequence[ChatMessage]) -> dict[str, TextLabel]:
    """The labels of the approval questions among the messages by their digests, the newest few.

    A question names its run, so it is compared with what that run asked: its digest needs no row.
    """
    texts = [message.content for message in sent if message.role == "assistant"]
    named = [reference[1] for text in reversed(texts) if (reference := parse_reference(text)) is not None]
    labels: dict[str, TextLabel] = {}
    for run_id in list(dict.fromkeys(named))[:MAX_QUESTIONS]:
        try:
            await run.journal.get_run(run_id, owner=run.state.owner)
            events = await run.journal.read_events(run_id)
        except NotFoundError:
            continue
        for place, event in enumerate(events, start=1):
            if isinstance(event.body, RunWaiting):
                former_state = fold(run_id, events[:place])
                label = _label_text(former_state)
                if label is not None:
                    labels |= dict.fromkeys(compute_digests(format_approval_question(former_state)), label)
    return labels


def label_prompt(prompt: str, *, has_images: bool = False) -> TextLabel | None:
    """The label of a prompt to which text or a picture is attached; None if it is the user's words alone."""
    if not has_images and not split_attachments(prompt).attached:
        return None
    return TextLabel(source="attachment", trusted=False, private=True)


def collect_own_words(run: Run) -> OwnWords:
    """The words of the user and the operator in this conversation, as models see it and as it was written. Days that
    this request names in words count from the start of the run.

    That are the room's and the client's instructions, the user's messages without attached texts, and what a person
    answered to a question of this run, without what a question showed. Nothing counts where the request itself may be
    somebody else's words.
    """
    state = run.state
    if state.has_untrusted_prompt:
        return OwnWords()
    zone = ZoneInfo(run.engine.settings.timezone)
    resolved = list_days(state, zone)
    return OwnWords(*resolved, *_list_own_texts(state), replies=collect_replies(state), zone=zone)


def list_days(state: RunState, zone: tzinfo) -> tuple[str, ...]:
    """The days that this request names in words, as dates."""
    began = datetime.fromtimestamp(state.created_at, zone)
    return list_resolved(get_own_prompt(state)[-MAX_CHARS:], began.date())


def collect_replies(state: RunState) -> tuple[UserReply, ...]:
    """What a person answered to the questions of this run. The reason of a rejection gives nothing: it says what not to
    do, and often which value it is that nobody wants."""
    reasons = [one.reason for one in state.decisions.values() if one.decision == "answered" and one.reason]
    texts = _add_restored(state, reasons)
    if not texts:
        return ()
    own_texts = () if state.has_untrusted_prompt else _list_own_texts(state)
    items = [item for request in state.approvals for item in request.items]
    values = [literal for item in items for literal in list_literals(dict(item.args)) if not isinstance(literal, bool)]
    questioned = _add_restored(
        state, [*map(str, values), *(text for item in items for text in (item.intent, item.shown))]
    )
    return _compare_replies(tuple(texts), tuple(own_texts), tuple(dict.fromkeys(filter(None, questioned))))


@lru_cache(maxsize=CACHED_REPLIES)
def _compare_replies(
    texts: tuple[str, ...], own_texts: tuple[str, ...], questioned: tuple[str, ...]
) -> tuple[UserReply, ...]:
    """The replies, compared with what questions showed and is not in the person's own texts."""
    own = OwnWords(*own_texts)
    shown_values = ShownValues(text for text in questioned if not own.hold(text))
    return tuple(UserReply(text, shown_values) for text in texts)


def get_own_prompt(state: RunState) -> str:
    """The user's words of this request, in the original and in English if it was translated."""
    own = split_attachments(state.prompt)
    understood = state.understanding
    # A model translated the whole prompt: of one with an attachment, nobody can say which words are whose.
    translated = understood.question if understood is not None and understood.translated and not own.attached else ""
    return own.own if translated in ("", own.own) else f"{own.own}\n{translated}"


def label_answer(run: Run, answer: AnswerFinished) -> AnswerFinished:
    """The answer with its label and digests; without them if a message of the conversation is unknown.

    An answer that may repeat an unknown message says no more about itself than that message does.
    """
    label = _label_text(run.state)
    if label is None or not answer.text.strip():
        return answer
    recalled = run.state.retrieval.items if run.state.retrieval is not None else ()
    label = label.change(private=bool(recalled) or _has_read_private(run))
    digests = dict.fromkeys((*compute_digests(answer.text), *compute_reasoning_digests(answer.provider_fields)))
    return answer.model_copy(update={"label": label, "digests": tuple(digests)})


def _label_text(state: RunState) -> TextLabel | None:
    """The label of what a run says now; None if its conversation holds an unknown message."""
    if state.has_unknown_answers:
        return None
    outputs = [output for step in state.steps.values() if (output := step.output) is not None]
    recalled = state.retrieval.items if state.retrieval is not None else ()
    tainted = state.has_outside_text or any(output.tainted for output in outputs)
    tainted = tainted or any(item.tainted for item in recalled) or bool(state.plans and state.plans[-1].tainted)
    return TextLabel(source="answer", trusted=not tainted, private=tainted)


def _has_read_private(run: Run) -> bool:
    """Whether the run knows something that is neither public nor the user's own words."""
    state, tools = run.state, run.engine.registry
    if state.tainted or any(label.private for label in state.message_labels):
        return True
    steps = [step for proposed in state.plans for step in proposed.plan.steps]
    read = [step for step in steps if (output := state.get_step(step.id).output) is not None and output.tainted]
    return any(step.tool not in tools or not _is_public(tools.get(step.tool).spec) for step in read)


def _is_public(spec: ToolSpec) -> bool:
    """Whether the tool reads public pages only. A foreign server's missing hint says nothing about that."""
    return spec.origin == "builtin" and spec.annotations.open_world


def _list_own_texts(state: RunState) -> list[str]:
    history = state.retrieval.history if state.retrieval is not None else ()
    own_texts = [message.content for message in history if message.role in ("system", "developer", "user")]
    texts = [split_attachments(text).own for text in own_texts]
    return _add_restored(state, [*state.room.operator_texts, *texts, get_own_prompt(state)])


def _add_restored(state: RunState, texts: list[str]) -> list[str]:
    """The texts as they were written, and as models read them if that differs."""
    restored = [restore_text(state, text) for text in texts]
    return [*restored, *(text for text, plain in zip(texts, restored, strict=True) if text != plain)]
