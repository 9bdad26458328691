"""Makes the links of a run's texts harmless: of its answer, its questions and what is quoted of a model's words."""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from agent.core.events import StepOutput, ToolReturned
from agent.core.run_state import RunState
from agent.policy.guardrails.message_labels import split_attachments
from agent.policy.guardrails.plain_text import remove_live_parts

if TYPE_CHECKING:
    from agent.policy.guardrails import LinkFilter, PlaceholderMap

CACHED_FILTERS: Final = 4
"""Filters that are held in memory: each text of a model is compared with all that its run has read."""


def make_link_filter(
    state: RunState, stored_texts: Mapping[str, str], placeholders: "PlaceholderMap | None" = None
) -> "LinkFilter | None":
    """The filter that makes the links of an answer harmless; None as long as nothing from outside was read.

    Only what tools, memories and earlier answers returned counts as read: a model's own text is not a source.
    `stored_texts` are the whole texts of the results that the log only begins (`iter_stored_results`), by the ids of
    their blobs. While one is missing, an answer may link to nothing but what was read. `placeholders` are those whose
    values the answer already has.
    """
    outside, is_whole = list[str](), True
    for result in _iter_outside_results(state):
        whole = stored_texts.get(result.blob) if result.blob is not None else result.text
        is_whole = is_whole and whole is not None
        outside.append(result.text if whole is None else whole)
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
    values = tuple(placeholders.entries.items()) if placeholders is not None else ()
    texts = _Texts(tuple(outside), (*state.room.operator_texts, *own), tuple(_iter_remembered(state)))
    return _build_filter(texts, is_whole, values)


def iter_stored_results(state: RunState) -> Iterator[StepOutput | ToolReturned]:
    """Yields the results from outside whose text is too long for the log: it holds their beginning."""
    return (result for result in _iter_outside_results(state) if result.blob is not None)


def _iter_outside_results(state: RunState) -> Iterator[StepOutput | ToolReturned]:
    attempts = state.list_attempts()
    for attempt in attempts:
        yield from (call.result for call in attempt.calls if call.result is not None and call.result.tainted)
    for attempt in attempts:  # the calls of a result that was taken over are in another run's log
        if attempt.taken_from and attempt.output is not None and attempt.output.tainted:
            yield attempt.output


def _iter_remembered(state: RunState) -> Iterator[str]:
    """Yields what is remembered as the user's own. They wrote it, but nowhere in this conversation: a text from outside
    could have it put into an address.
    """
    if state.retrieval is not None:
        yield from (item.text for item in state.retrieval.items if not item.tainted)
    calls = (call for step in state.steps.values() for attempt in step.attempts for call in attempt.calls)
    results = (call.result for call in calls if call.result is not None and not call.result.tainted)
    yield from (result.text for result in results if "memories" in result.read_from)


class _Texts(NamedTuple):
    """The texts of a run that decide about its links; see `AddressPolicy`."""

    outside: tuple[str, ...]
    inside: tuple[str, ...]
    remembered: tuple[str, ...]


@lru_cache(maxsize=CACHED_FILTERS)
def _build_filter(texts: _Texts, is_whole: bool, values: tuple[tuple[str, str], ...]) -> "LinkFilter":
    from agent.policy.guardrails import LinkFilter, PlaceholderMap  # noqa: PLC0415 - loaded with the first request

    if values:
        restore = PlaceholderMap(dict(values)).restore
        texts = _Texts(*(tuple(map(restore, some)) for some in texts))
    return LinkFilter(texts.outside, texts.inside, remembered=texts.remembered, is_whole=is_whole)


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


def clean_question(text: str, state: RunState, stored_texts: Mapping[str, str]) -> str:
    """A model's question to the user: nothing in it is live, and no address that is written out carries what was
    read.
    """
    links = make_link_filter(state, stored_texts)
    return remove_live_parts(links.sanitize(text) if links is not None else text)
