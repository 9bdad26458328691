"""What a conversation has come to, in words: its summary, and the briefing that each of its turns begins with. Pure.

Both are made from what is kept, never by a model, so that they cannot say more than is known."""

import json
from collections.abc import Iterator, Sequence

from agent.builder.acceptance import numbered
from agent.builder.adjusting import deviations
from agent.builder.records import Conversation, Doubt
from agent.builder.sources import NamedSource
from agent.core.models import JsonObject
from agent.knowledge.pipeline_check import PipelineInvalidError, read_pipeline

ASKED_KEPT = 8
"""Of what the user has said: the first, which names the goal, and the last."""
ASKED_CHARS = 300
KINDS_SHOWN = 12
BRIEFING_CHARS = 6_000
"""Of a briefing: a skill reads 8,000 characters of what it is given, and the conversation comes on top."""
PIPELINE_CHARS = 2_400
EXPIRED = (
    "The earlier messages of this conversation have expired; it goes on from its summary, source analysis and "
    "pipeline, which are below."
)

_SETTLED = {
    "analysed_again": "not found when the source was analysed again",
    "pipeline_adjusted": "not found with another pipeline",
    "user_confirmed": "confirmed by the user",
}
"""How doubts were settled, for those who read."""


def kept_words(asked: Sequence[str], said: str) -> tuple[str, ...]:
    """The user's words that are kept once another message has come."""
    words = (*asked, " ".join(said.split())[:ASKED_CHARS])
    return words if len(words) <= ASKED_KEPT else (words[0], *words[-(ASKED_KEPT - 1) :])


def summary_of(conversation: Conversation, source: NamedSource | None, doubts: Sequence[Doubt]) -> str:
    """What the conversation is about and has come to, a line each."""
    return "\n".join(_summary(conversation, source, doubts))


def briefing(conversation: Conversation, source: NamedSource | None, doubts: Sequence[Doubt], *, expired: bool) -> str:
    """What is known when a message arrives; says so where the messages before it have `expired`."""
    lines = [EXPIRED] if expired else []
    if expired and conversation.summary:
        lines += ["", "Summary so far:", conversation.summary, ""]
    lines += [f"Status of the conversation: {conversation.status}."]
    lines += list(_known(conversation, source, doubts))
    if conversation.analysis is not None:
        lines += ["", "Source analysis:", json.dumps(_short_analysis(conversation.analysis), ensure_ascii=False)]
    if conversation.pipeline is not None:
        lines += ["", "Current pipeline:", json.dumps(conversation.pipeline, ensure_ascii=False)[:PIPELINE_CHARS]]
    return "\n".join(lines)[:BRIEFING_CHARS]


def template_of(pipeline: JsonObject) -> str:
    """What to call a pipeline: its template, or its plugins."""
    template = pipeline.get("template")
    if isinstance(template, str) and template:
        return f"template {template!r}"
    nodes = pipeline.get("nodes")
    names = [str(node.get("plugin")) for node in nodes if isinstance(node, dict)] if isinstance(nodes, list) else []
    return " -> ".join(names) or "an own one"


def _summary(conversation: Conversation, source: NamedSource | None, doubts: Sequence[Doubt]) -> Iterator[str]:
    if conversation.asked:
        yield f"The user asked: {conversation.asked[0]}"
    if len(conversation.asked) > 1:
        yield "Then: " + " / ".join(conversation.asked[1:])
    yield from _known(conversation, source, doubts)
    applied = conversation.applied
    if applied is not None:
        forced = ", by force" if applied.get("force") else ""
        yield f"Applied to the collection {applied.get('collection')!r} by {applied.get('by')}{forced}."
    elif conversation.status == "abandoned":
        yield "The conversation was abandoned."


def _known(conversation: Conversation, source: NamedSource | None, doubts: Sequence[Doubt]) -> Iterator[str]:
    if source is not None:
        request = source.request
        yield f"Source: {source.id} ({request.source_type}: {request.source_identifier})."
    else:
        yield "Source: none is registered yet."
    if conversation.analysis is None:
        yield "The source was not analysed yet."
    else:
        yield f"Analysis{_unfinished(conversation.analysis)}: {conversation.analysis.get('summary')}"
    if conversation.pipeline is None:
        yield "No pipeline was proposed yet."
    else:
        yield f"Proposed pipeline: {', '.join((template_of(conversation.pipeline), *_deviations(conversation)))}."
    if conversation.validation is not None:
        yield f"Validation{_unfinished(conversation.validation)}: {conversation.validation.get('summary')}"
    elif conversation.pipeline is not None:
        yield "The pipeline was not validated yet."
    for number, doubt in numbered(doubts):
        yield f"- #{number} {doubt.severity}, open: {doubt.message[:300]}"
    for doubt in doubts:
        how = doubt.resolved_by or ""
        if doubt.resolved and doubt.severity == "blocking":
            yield f"- blocking, settled ({_SETTLED.get(how, how.replace('_', ' '))}): {doubt.message[:300]}"


def _deviations(conversation: Conversation) -> Iterator[str]:
    """How the pipeline differs from its template; nothing of one that another version wrote."""
    try:
        yield from deviations(read_pipeline(conversation.pipeline or {}))
    except PipelineInvalidError:
        return


def _unfinished(found: JsonObject) -> str:
    """Said of what was found by somebody who did not come to their end."""
    return " (not finished)" if found.get("success") is False else ""


def _short_analysis(analysis: JsonObject) -> JsonObject:
    """The analysis without what single files came to: that fits no prompt."""
    kinds = analysis.get("by_extension")
    counts: JsonObject = {}
    if isinstance(kinds, dict):
        for extension, stats in list(kinds.items())[:KINDS_SHOWN]:
            counts[extension] = stats.get("count") if isinstance(stats, dict) else stats
    recommended = analysis.get("parser_recommendations")
    return {
        "total_files": analysis.get("total_files"),
        "by_extension": counts,
        "content_characteristics": analysis.get("content_characteristics"),
        "parser_recommendations": recommended[:KINDS_SHOWN] if isinstance(recommended, list) else [],
    }
