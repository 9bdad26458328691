"""Makes the links of a run's texts harmless: of its answer, its questions and what is quoted of a model's words."""

from typing import TYPE_CHECKING, Final

from agent.core.run_state import RunState
from agent.policy.guardrails.message_labels import split_attachments

if TYPE_CHECKING:
    from agent.policy.guardrails import LinkFilter

OUTSIDE_CHARS: Final = 200_000
"""How much of what was read from outside is compared with the links of an answer."""


def make_link_filter(state: RunState) -> "LinkFilter | None":
    """The filter that makes the links of an answer harmless; None as long as nothing from outside was read.

    Only what tools, memories and earlier answers returned counts as read: a model's own text is not a source.
    """
    attempts = [attempt for step in state.steps.values() for attempt in step.attempts]
    calls = (call for attempt in attempts for call in attempt.calls)
    outside = [call.result.text for call in calls if call.result is not None and call.result.tainted]
    adopted_outputs = (
        attempt.output for attempt in attempts if attempt.taken_from
    )  # the calls are in another run's log
    outside += [output.text for output in adopted_outputs if output is not None and output.tainted]
    recalled = state.retrieval
    if recalled is not None:
        outside += [item.text for item in recalled.items if item.tainted]
        outside += [earlier.text for earlier in recalled.earlier_results if earlier.tainted]
    own, attached = split_messages(state)
    outside += attached
    for message in recalled.history if recalled is not None and state.request.messages is None else ():
        if message.role != "user" and state.tainted:
            outside.append(message.content)
    if not outside:
        return None
    from agent.policy.guardrails import LinkFilter  # noqa: PLC0415 - loaded with the first request

    return LinkFilter(("\n".join(outside)[:OUTSIDE_CHARS],), [*state.room.operator_texts, *own])


def split_messages(state: RunState) -> tuple[list[str], list[str]]:
    """What the user and the application wrote in the request and the conversation, and what is from outside in it: text
    that a client attached, results of its tools, and answers that are not known as ours.
    """
    recalled = state.retrieval
    sent = state.request.messages
    labels = recalled.labels if recalled is not None and sent is not None else ()
    messages = sent if sent is not None else recalled.history if recalled is not None else ()
    own, outside = [], []
    for place, message in enumerate(messages):
        if message.role in ("user", "system", "developer"):
            split = split_attachments(message.content)
            own.append(split.own)
            outside.append(split.attached)
        elif place < len(labels):
            (own if labels[place].trusted else outside).append(message.content)
    if state.has_outside_prompt:
        own += state.own_prompts
        outside.append(state.prompt)
    else:
        split = split_attachments(state.prompt)
        own.append(split.own)
        outside.append(split.attached)
    return [*filter(None, own)], [*filter(None, outside)]


def clean_question(text: str, state: RunState) -> str:
    """A model's question to the user: nothing loads by itself, and no link carries what was read."""
    from agent.policy.guardrails import LinkFilter  # noqa: PLC0415 - as above

    return (make_link_filter(state) or LinkFilter()).sanitize(text)
