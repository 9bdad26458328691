"""A message of a conversation that rules carry, read as a reply to what was answered before it; and the answers to what
changes nothing of a proposal. Pure."""

from collections.abc import Sequence
from typing import NamedTuple

from agent.builder.acceptance import Settlement, settles
from agent.builder.changes import Reading, read_wishes
from agent.builder.questions import (
    agrees,
    asks_failures,
    clarifying,
    failures,
    how_to_apply,
    said_in_full,
    wants_again,
    wants_applied,
    wants_reset,
)
from agent.builder.records import Conversation, Doubt
from agent.builder.wishes import goes_on, not_understood
from agent.knowledge.pipeline import PipelineDAG
from agent.knowledge.pipeline_check import read_pipeline


class Heard(NamedTuple):
    """A message as it was read: its words in full, its wishes, which of the conversation's doubts it settles, and the
    pipeline that it finds proposed."""

    request: str
    reading: Reading
    settlement: Settlement
    doubts: Sequence[Doubt]
    current: PipelineDAG | None


def heard_as(request: str, last: str, conversation: Conversation, doubts: Sequence[Doubt], *, is_anew: bool) -> Heard:
    """The message, after the answer `last`. One that is carried out anew, after a crash, has settled its doubts."""
    if conversation.source_id is not None and not _is_read(request):
        request = said_in_full(request, last)
    kept = conversation.pipeline if not wants_reset(request) else None
    reading = read_wishes(request)
    settlement = Settlement(unread=reading.unread)
    if kept is not None and not is_anew:
        settlement = settles(request, reading.unread, doubts)
    return Heard(request, reading, settlement, doubts, read_pipeline(kept) if kept is not None else None)


def _is_read(request: str) -> bool:
    """Whether a message is one word that means something by itself, such as `validate` or `OCR`: it is no name."""
    is_one = len(request.split()) == 1
    return is_one and (goes_on(request) or wants_reset(request) or bool(read_wishes(request).wishes))


def at_once(heard: Heard, conversation: Conversation, current: PipelineDAG) -> str:
    """The answer to what changes nothing of a proposal: a question about it, agreement without a name, words that no
    rule reads. Empty for all else."""
    request, reading, settlement, doubts = heard.request, heard.reading, heard.settlement, heard.doubts
    if settlement.question:
        return settlement.question
    if reading.wishes or settlement.doubts:
        unread = [one for one in settlement.unread if not goes_on(one) and not wants_again(one)]
        return not_understood(current, unread) if unread else ""
    if wants_applied(request) or (reading.name and not reading.unread):
        return how_to_apply(named_before(conversation, reading), doubts)
    if asks_failures(request):
        return failures(conversation.validation, doubts)
    if clarifying(request, proposed=True) or wants_again(request) or goes_on(request):
        return ""
    if agrees(request):
        return how_to_apply(named_before(conversation, reading), doubts)
    return not_understood(current) if is_analysed(conversation) else ""


def named_before(conversation: Conversation, reading: Reading) -> str:
    """What the user last said the collection is to be called; empty when they never did."""
    earlier = (read_wishes(said).name for said in reversed(conversation.asked))
    return reading.name or next((name for name in earlier if name), "")


def is_analysed(conversation: Conversation) -> bool:
    """Whether it is known what is there; that nothing was there is worth another look."""
    analysis = conversation.analysis
    return analysis is not None and bool(analysis.get("total_files")) and analysis.get("success") is not False
