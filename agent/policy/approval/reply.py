"""Reads messages that answer a run which waits for a person: which run, what is decided, and whether it may be.

A decision names the ids of approval requests: 128 random bits that only readers of the question know. A bare word in a
chat, such as `approve`, names them in one of three ways. The request itself carries the question, with its ids, as its
last assistant message; or the conversation's id was made by this gateway, so that others do not know it; or the
caller's key made the conversation. The id that a caller without a key has chosen names nothing: a web page that sends
requests blindly could choose it too.
"""

import json
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Literal

from agent.core.errors import ConflictError, NotFoundError
from agent.core.models import AgentRequest, ChatMessage
from agent.core.principal import Principal
from agent.core.run_reducer import fold
from agent.core.run_state import RunState
from agent.policy.approval.open_requests import (
    WaitingRuns,
    find_waiting_run,
    list_open_approvals,
    list_open_approvals_of,
    read_open_approvals,
)
from agent.policy.approval.question import parse_reference
from agent.storage.journal import RunRow

ASK_TOOL = "ask_user"
"""Open WebUI's own tool for questions to its user; carries the approval question if the client offers it."""
ASK_PREFIX = "ask_"
"""Begins the id of a call of that tool; an approval id follows."""
_FORMAL_YES = frozenset({"approve", "approved", "approve it", "i approve", "godkänn", "genehmigen", "approuver"})
_FORMAL_NO = frozenset({"reject", "rejected", "reject it", "i reject", "avslå", "ablehnen", "refuser"})
_YES = _FORMAL_YES | {
    *("yes", "y", "yep", "yeah", "ok", "okay", "sure", "do it", "go ahead", "👍", "✅"),
    *("ja", "gör det", "kör", "mach das", "tu das", "in ordnung", "oui", "d'accord", "vas-y", "allez-y", "si", "sí"),
}
_NO = _FORMAL_NO | {"no", "n", "nope", "don't", "do not", "nej", "nein", "non", "👎", "❌"}
"""What approves and what rejects, as the whole of a message. Several of one kind may follow each other."""
_COURTESIES = frozenset({
    "please", "thanks", "thank you", "tack", "snälla", "bitte", "danke", "merci", "svp", "s'il te plaît",
    "s'il vous plaît", "gracias", "por favor",
})  # fmt: skip
_AROUND_WORDS = " \t\r\n.,!;:`*_\"'“”„‘’«»()"  # noqa: RUF001 - quotation marks are meant
_VARIATIONS = re.compile("[\ufe0f\U0001f3fb-\U0001f3ff]")
"""Characters that only vary the emoji before them, in its form or colour."""
_QUOTE = ">"
MAX_WORDS = 8
"""Words of a message that can be a decision."""

ConversationTrust = Literal["own", "by_key", "never"]
"""When a bare yes counts by the id of its conversation: always, because this gateway made the id; if the caller's key
made the conversation; or never, as no other word either, because the protocol names what is answered (A2A)."""


@dataclass(frozen=True, slots=True)
class DecisionReply:
    """A message's decision, its text, and the approval requests that it is about."""

    run_id: str
    decision: str
    text: str
    approval_ids: tuple[str, ...]


async def find_reply(
    reader: WaitingRuns, caller: Principal, request: AgentRequest, trust: ConversationTrust
) -> DecisionReply | None:
    """The message's decision and what it is about; None if the message answers nothing that waits."""
    messages = request.messages or ()
    last = messages[-1] if messages else None
    if last is not None and last.role == "tool" and (last.tool_call_id or "").startswith(ASK_PREFIX):
        approval_id = (last.tool_call_id or "").removeprefix(ASK_PREFIX)
        return await _find_asked(
            reader, caller.owner, (approval_id,), _parse_ask_tool_answer(last.content), whole_question=True
        )
    decision = parse_decision(request.prompt, question=_find_last_answer(messages))
    if (reference := _find_question(messages)) is not None:
        approval_ids, run_id = reference
        reply = await _find_asked(reader, caller.owner, approval_ids, decision, run_ids=(run_id,))
        if reply is not None:
            return reply
    if request.conversation_id is None:
        return None
    return await _find_in_conversation(reader, caller, request.conversation_id, decision, trust)


async def is_stray_decision(reader: WaitingRuns, owner: str, request: AgentRequest, follows: str | None = None) -> bool:
    """Whether a message that answers nothing is the yes or no to a question that is no longer open.

    `yes` and `no` are that right after the question only: later they answer something else. Nothing else is meant by
    `approve` and `reject` in a conversation in which the gateway has asked for approval. `follows` is the run before
    the message, if the client names it.
    """
    if parse_decision(request.prompt)[0] == "answered":
        return False
    is_command = request.prompt.lstrip().startswith("/")
    is_everyday = not is_command and not any(_read_words(request.prompt, words) for words in (_FORMAL_YES, _FORMAL_NO))
    answers = [message for message in request.messages or () if message.role == "assistant"]
    relevant = answers[-1:] if is_everyday else answers
    if any(parse_reference(answer.content) is not None for answer in relevant):
        return True
    state = await _read_preceding(reader, owner, request, follows)
    if state is None or not state.approvals or state.pending_approvals:
        return False
    return not (is_everyday and state.status == "succeeded")


async def _read_preceding(
    reader: WaitingRuns, owner: str, request: AgentRequest, follows: str | None
) -> RunState | None:
    """The run that a message of a stored conversation follows; None if it follows none."""
    run_id = follows or request.parent
    try:
        if run_id is None and request.conversation_id is not None:
            ends = await reader.find_conversation_ends(request.conversation_id, owner=owner)
            run_id = ends[1].run_id if ends is not None else None
        return fold(run_id, await reader.read_events(run_id, owner=owner)) if run_id is not None else None
    except NotFoundError:  # the beginning of a conversation, or deleted meanwhile
        return None


async def _find_asked(
    reader: WaitingRuns,
    owner: str,
    approval_ids: tuple[str, ...],
    decision: tuple[str, str],
    *,
    run_ids: Sequence[str] = (),
    whole_question: bool = False,
) -> DecisionReply | None:
    """The decision on those of these approval requests that are open; None if none is.

    `run_ids`: only these runs are looked at. `whole_question`: one id stands for all requests of its question.
    """
    if run_ids:
        open_approvals = await list_open_approvals_of(reader, owner, run_ids)
    else:
        open_approvals = await list_open_approvals(reader, owner)
    first = next((one for one in open_approvals if one.request.approval_id in approval_ids), None)
    if first is None:
        return None
    named = {*approval_ids, *(first.asked_with if whole_question else ())}
    still_open = (one.request.approval_id for one in open_approvals if one.run.run_id == first.run.run_id)
    return DecisionReply(first.run.run_id, *decision, tuple(name for name in still_open if name in named))


async def _find_in_conversation(
    reader: WaitingRuns,
    caller: Principal,
    conversation_id: str,
    decision: tuple[str, str],
    trust: ConversationTrust,
) -> DecisionReply | None:
    """The decision on the run that a conversation waits with, if the message may decide on it by the
    conversation's id. Raises `ConflictError` for a yes or no that may not, to the conversation's newest run.
    """
    run = await find_waiting_run(reader, conversation_id, owner=caller.owner)
    ends = await reader.find_conversation_ends(conversation_id, owner=caller.owner) if run is not None else None
    if run is None or ends is None:
        return None
    oldest, newest = ends
    waiting = await read_open_approvals(reader, run)
    # Only a yes lets something happen: a no, or other words, may come from anyone who continues the conversation.
    if trust == "own" or (
        trust == "by_key" and (decision[0] != "approved" or await _has_made(reader, caller, oldest, run))
    ):
        approval_ids = tuple(one.request.approval_id for one in waiting)
        return DecisionReply(run.run_id, *decision, approval_ids) if approval_ids else None
    if decision[0] == "answered" or newest.run_id != run.run_id:
        return None
    raise _build_undecided_error(run.run_id, trust)


def _build_undecided_error(run_id: str, trust: ConversationTrust) -> ConflictError:
    """The error for a yes or no that does not say to what."""
    how = f"GET /v1/approvals lists the approval's id, and POST /v1/runs/{run_id}/approve (or /reject) decides"
    if trust == "never":
        return ConflictError(
            f"task {run_id} waits for approval, and this message does not name it: send it with the taskId. Or {how}",
            run_id=run_id,
        )
    return ConflictError(
        f"run {run_id} waits for approval, and this message cannot decide on it: the id of its conversation was "
        "chosen by a caller, and others may know it. Send the question back as the last assistant message. Or "
        f"{how}",
        run_id=run_id,
    )


async def _has_made(reader: WaitingRuns, caller: Principal, oldest: RunRow, waiting: RunRow) -> bool:
    """Whether the caller made the conversation, whose first run is `oldest`, and no caller without a key has
    started the run that waits.
    """
    if caller.is_operator:
        return True
    if not caller.is_identified:
        return False
    maker = await _read_key(reader, oldest)
    asker = maker if waiting.run_id == oldest.run_id else await _read_key(reader, waiting)
    # An owner other than `local` has tokens without key ids, and no callers without either.
    return maker == caller.key_id and (asker is not None or caller.key_id is None)


async def _read_key(reader: WaitingRuns, run: RunRow) -> str | None:
    """The id of the API key that started a run; None for one that was started without."""
    try:
        state = fold(run.run_id, await reader.read_events(run.run_id, owner=run.owner))
    except NotFoundError:  # deleted meanwhile
        return None
    return state.api_key_id


def _find_question(messages: tuple[ChatMessage, ...]) -> tuple[tuple[str, ...], str] | None:
    """The ids of the question in the assistant's last message, if it is one."""
    return parse_reference(_find_last_answer(messages))


def _find_last_answer(messages: tuple[ChatMessage, ...]) -> str:
    return next((message.content for message in reversed(messages) if message.role == "assistant"), "")


def _parse_ask_tool_answer(content: str) -> tuple[str, str]:
    """The decision made in Open WebUI's question. Any text that is not an option is the person's own words."""
    try:
        answer = json.loads(content)["answers"]["plan"]
        label = str(answer.get("label") or answer.get("text") or answer.get("value") or "")
        option = answer.get("type") == "option"
    except (ValueError, KeyError, TypeError, AttributeError):
        return "rejected", content.strip()[:200]
    if option:
        return ("approved", "") if label == "Approve" else ("rejected", "")
    return parse_decision(label)


def parse_decision(text: str, *, question: str = "") -> tuple[str, str]:
    """Parses a person's reply into (`approved`, ""), (`rejected`, reason) or (`answered`, text). A quotation
    of the whole question above it is not the person's reply; any other quoted line may be.

    Only the commands `/approve` and `/reject REASON` decide, and messages that say nothing but yes or no, whatever
    courtesies stand around it. Words within a sentence do not: "do not do it" contains "do it".
    """
    reply = _remove_quotes(text, question)
    command, _, rest = reply.partition(" ")
    if command.lower() == "/approve" and not rest.strip():
        return "approved", ""
    if command.lower() == "/reject":
        return "rejected", rest.strip()
    if _read_words(reply, _YES):
        return "approved", ""
    if _read_words(reply, _NO):
        return "rejected", ""
    return "answered", reply or text.strip()


def _remove_quotes(text: str, question: str) -> str:
    """A message without the quotation of the whole question that it begins with. A part of it may be quoted because
    the reply is about that part only."""
    lines = text.strip().splitlines()
    quoted = [*takewhile(lambda line: line.lstrip().startswith(_QUOTE), lines)]
    if not quoted or _list_words(quoted) != _list_words(question.splitlines()):
        return text.strip()
    return "\n".join(lines[len(quoted) :]).strip()


def _list_words(lines: Sequence[str]) -> list[str]:
    """The words of some lines, which clients break elsewhere, without marks of quotation."""
    return [word for line in lines for word in line.lstrip(f"{_QUOTE} ").split()]


def _read_words(text: str, phrases: frozenset[str]) -> bool:
    """Whether a message holds some of `phrases`, and nothing else but courtesies."""
    plain = _VARIATIONS.sub("", unicodedata.normalize("NFC", text))
    words = [bare for word in plain.casefold().replace(",", " ").split() if (bare := word.strip(_AROUND_WORDS))]
    if len(words) > MAX_WORDS:
        return False
    has_phrase, place = False, 0
    while place < len(words):
        ends = range(min(len(words), place + 3), place, -1)
        end = next((end for end in ends if " ".join(words[place:end]) in phrases | _COURTESIES), None)
        if end is None:
            return False
        has_phrase = has_phrase or " ".join(words[place:end]) in phrases
        place = end
    return has_phrase
