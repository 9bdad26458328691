"""The summary of a conversation, and the briefing that starts each turn. Pure.

Both are made from stored facts and never by a model, so they cannot claim more than is known.
"""

import json
from collections.abc import Iterator, Sequence

from agent.core.models import JsonObject
from gateway.features.documents.engine.ingest.pipeline_check import PipelineInvalidError, parse_pipeline
from gateway.features.documents.engine.ingest.source_store import NamedSource
from gateway.features.pipeline_builder.engine.pipeline_edits import describe_deviations
from gateway.features.pipeline_builder.engine.records import Conversation, ConversationUncertainty, number_open
from gateway.features.pipeline_builder.engine.subagent_findings import has_report

MAX_REQUESTS = 8
"""User messages that are kept: the first, which names the goal, and the latest."""
REQUEST_CHARS = 300
KINDS_SHOWN = 12
BRIEFING_CHARS = 6_000
"""Characters of a briefing. A skill reads 8,000 characters of input, and the conversation comes on top."""
PIPELINE_CHARS = 2_400
EXPIRED = (
    "The earlier messages of this conversation have expired; it goes on from its summary, source analysis and "
    "pipeline, which are below."
)

_RESOLUTIONS = {
    "analysed_again": "not found when the source was analysed again",
    "pipeline_adjusted": "not found with another pipeline",
    "user_confirmed": "confirmed by the user",
}
"""How uncertainties were resolved, in words."""


def append_request(asked: Sequence[str], said: str) -> tuple[str, ...]:
    """The kept user messages after another one arrived."""
    words = (*asked, *filter(None, [" ".join(said.split())[:REQUEST_CHARS]]))
    return words if len(words) <= MAX_REQUESTS else (words[0], *words[-(MAX_REQUESTS - 1) :])


def build_summary(
    conversation: Conversation, source: NamedSource | None, uncertainties: Sequence[ConversationUncertainty]
) -> str:
    """Describes what the conversation is about and what it has reached, one fact per line."""
    return "\n".join(_iter_summary(conversation, source, uncertainties))


def build_briefing(
    conversation: Conversation,
    source: NamedSource | None,
    uncertainties: Sequence[ConversationUncertainty],
    *,
    expired: bool,
) -> str:
    """Describes what is known when a message arrives. `expired` says that earlier messages are gone."""
    lines = [EXPIRED] if expired else []
    if expired and conversation.summary:
        lines += ["", "Summary so far:", conversation.summary, ""]
    lines += [f"Status of the conversation: {conversation.status}."]
    lines += list(_iter_known(conversation, source, uncertainties))
    if conversation.analysis is not None:
        lines += ["", "Source analysis:", json.dumps(_shorten_analysis(conversation.analysis), ensure_ascii=False)]
    if conversation.pipeline is not None:
        lines += ["", "Current pipeline:", json.dumps(conversation.pipeline, ensure_ascii=False)[:PIPELINE_CHARS]]
    return "\n".join(lines)[:BRIEFING_CHARS]


def format_pipeline_label(pipeline: JsonObject) -> str:
    """A display name for a pipeline: its template, or its plugins."""
    template = pipeline.get("template")
    if isinstance(template, str) and template:
        return f"template {template!r}"
    nodes = pipeline.get("nodes")
    names = [str(node.get("plugin")) for node in nodes if isinstance(node, dict)] if isinstance(nodes, list) else []
    return " -> ".join(names) or "an own one"


def _iter_summary(
    conversation: Conversation, source: NamedSource | None, uncertainties: Sequence[ConversationUncertainty]
) -> Iterator[str]:
    if conversation.asked:
        yield f"The user asked: {conversation.asked[0]}"
    if len(conversation.asked) > 1:
        yield "Then: " + " / ".join(conversation.asked[1:])
    yield from _iter_known(conversation, source, uncertainties)
    applied = conversation.applied
    if applied is not None:
        forced = ", by force" if applied.get("force") else ""
        yield f"Applied to the collection {applied.get('collection')!r} by {applied.get('by')}{forced}."
    elif conversation.status == "abandoned":
        yield "The conversation was abandoned."


def _iter_known(
    conversation: Conversation, source: NamedSource | None, uncertainties: Sequence[ConversationUncertainty]
) -> Iterator[str]:
    if source is not None:
        request = source.request
        yield f"Source: {source.id} ({request.source_type}: {request.source_identifier})."
    else:
        yield "Source: none is chosen yet."
    if conversation.analysis is None:
        yield "The source was not analysed yet."
    else:
        yield f"Analysis{_format_unfinished(conversation.analysis)}: {conversation.analysis.get('summary')}"
    if conversation.pipeline is None:
        yield "No pipeline was proposed yet."
    else:
        label = format_pipeline_label(conversation.pipeline)
        yield f"Proposed pipeline: {', '.join((label, *_iter_deviations(conversation)))}."
    if conversation.validation is not None:
        of = "" if _is_of_proposed(conversation) else " of another pipeline than the proposed one"
        unfinished = _format_unfinished(conversation.validation)
        yield f"Validation{of}{unfinished}: {conversation.validation.get('summary')}"
    if conversation.pipeline is not None and not _is_of_proposed(conversation):
        yield "The proposed pipeline was not validated yet."
    for number, uncertainty in number_open(uncertainties):
        yield f"- #{number} {uncertainty.severity}, open: {uncertainty.message[:300]}"
    for uncertainty in uncertainties:
        how = uncertainty.resolved_by or ""
        if uncertainty.resolved and uncertainty.severity == "blocking":
            yield f"- blocking, settled ({_RESOLUTIONS.get(how, how.replace('_', ' '))}): {uncertainty.message[:300]}"


def _iter_deviations(conversation: Conversation) -> Iterator[str]:
    """Yields how the pipeline differs from its template; nothing for a pipeline that this version cannot parse."""
    try:
        yield from describe_deviations(parse_pipeline(conversation.pipeline or {}))
    except PipelineInvalidError:
        return


def _is_of_proposed(conversation: Conversation) -> bool:
    """Whether the validation is of the proposed pipeline, or of one before any was proposed."""
    if conversation.pipeline is None:
        return True
    try:
        return has_report(conversation, parse_pipeline(conversation.pipeline))
    except PipelineInvalidError:  # this version cannot parse it
        return False


def _format_unfinished(found: JsonObject) -> str:
    """A suffix for results that were cut short."""
    return " (not finished)" if found.get("success") is False else ""


def _shorten_analysis(analysis: JsonObject) -> JsonObject:
    """The analysis without the results of single files, which do not fit into a prompt."""
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
