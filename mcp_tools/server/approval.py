"""The questions of runs that wait for an approval, and the decisions of users on them, for MCP clients."""

import asyncio
import contextlib
import logging
from dataclasses import dataclass
from typing import Literal

import mcp_types as types
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel, Field, ValidationError

from agent.core.errors import ConflictError
from agent.core.events import ApprovalDecided
from agent.core.models import JsonObject
from agent.core.run_reducer import fold
from agent.policy.approval import format_approval_question
from agent.run_context.run import Run
from agent.runs.service import AgentService
from mcp_tools.server.agent_tools import MAX_REPLY_CHARS, Decision
from mcp_tools.server.current_principal import get_current_owner, get_current_principal
from mcp_tools.server.sessions import Context

log = logging.getLogger(__name__)

APPLY_SECONDS = 5.0
"""How long to wait until a decision is applied, in seconds. It takes milliseconds once the run is claimed."""
MAX_FORM_CHARS = 40_000
"""The longest question in a form. A longer one is returned as a result, whose structured content is complete."""
WAITING_MESSAGE = "waiting for your approval"
"""The progress of a run whose question the user has not answered."""
APPROVAL_FORM: JsonObject = {
    "type": "object",
    "properties": {
        "decision": {
            "type": "string",
            "title": "Decision",
            "description": "approve: do it as shown; reject: do not do it; answer: neither, see the text",
            "enum": ["approve", "reject", "answer"],
        },
        "text": {
            "type": "string",
            "title": "Text",
            "description": "the reason, or what should be different; leave it empty to approve",
        },
    },
    "required": ["decision"],
}
"""The form for the user. It has no default, because one key press must not approve; flat, as the protocol requires."""


@dataclass(frozen=True, slots=True)
class UserDecision:
    """The user's decision, and the text they added."""

    decision: Decision
    text: str = ""


AskResult = UserDecision | None | Literal["ask", "decided_elsewhere"]
"""The outcome of asking: a decision; None if the user closed the form; `ask` if the client must be asked first;
`decided_elsewhere` if somebody else decided."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question of a waiting run: the ids of the approvals, the text as Markdown, and the run's last seq."""

    approval_ids: tuple[str, ...]
    text: str
    seq: int

    @property
    def key(self) -> str:
        """Identifies this question. An answer under another key belongs to another question."""
        return ".".join(self.approval_ids)

    @property
    def fits_form(self) -> bool:
        """Whether the text fits a form. It is never cut, because nobody can approve what they have not seen."""
        return len(self.text) <= MAX_FORM_CHARS

    def build_request(self) -> types.ElicitRequest:
        """The elicitation request for the client."""
        return types.ElicitRequest(
            params=types.ElicitRequestFormParams(message=self.text, requested_schema=APPROVAL_FORM)
        )


class UnclearReplyError(Exception):
    """Raised for a reply without a decision or with an unknown one."""


class _FormValues(BaseModel):
    decision: Decision
    text: str | None = Field(default=None, max_length=MAX_REPLY_CHARS)
    """Clients that build the form from its schema send null for a field that was left empty."""


def parse_reply(answer: types.ElicitResult) -> UserDecision | None:
    """The decision in an elicitation result, or None if the user closed the form. Raises `UnclearReplyError`.

    An approval with a remark counts as `answer`: the remark may change what was approved.
    """
    if answer.action == "decline":
        return UserDecision("reject", "declined in the MCP client")
    if answer.action == "cancel":
        return None
    try:
        filled = _FormValues.model_validate(answer.content or {})
    except ValidationError as error:
        raise UnclearReplyError("decision must be approve, reject or answer") from error
    text = (filled.text or "").strip()
    if filled.decision == "approve" and text:
        return UserDecision("answer", text)
    if filled.decision == "answer" and not text:
        raise UnclearReplyError("text: say what should be different")
    return UserDecision(filled.decision, text)


def can_elicit(context: Context) -> bool:
    """Whether the client of this request supports elicitation by form."""
    capabilities = context.session.client_capabilities
    declared = capabilities.elicitation if capabilities is not None else None
    if declared is None or (declared.form is None and declared.url is not None):
        return False
    return context.protocol_version in MODERN_PROTOCOL_VERSIONS or context.session.can_send_request


async def get_open_question(service: AgentService[Run], run_id: str) -> Question | None:
    """The question a run waits with, or None if it does not wait. Raises `NotFoundError`."""
    state = fold(run_id, await service.read_events(run_id, owner=get_current_owner()))
    if state.is_finished or state.status != "awaiting_approval" or not state.pending_approvals:
        return None
    return Question(
        tuple(approval.approval_id for approval in state.pending_approvals), format_approval_question(state), state.seq
    )


async def submit_decision(service: AgentService[Run], run_id: str, question: Question, decision: UserDecision) -> int:
    """Passes a decision to a run and waits until it is applied, so that the same question is not asked again.

    Returns the run's seq before the decision, or 0 if somebody else had decided before.
    """
    try:
        decided = await service.submit_decision(
            run_id,
            decision.decision,
            principal=get_current_principal(),
            reason=decision.text,
            approvals=question.approval_ids,
        )
    except ConflictError as error:
        log.info("a decision over MCP came too late: %s", error.message)
        return 0
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(APPLY_SECONDS):
            await wait_until_decided(service, run_id, decided.last_seq, set(question.approval_ids))
    return decided.last_seq


async def wait_until_decided(service: AgentService[Run], run_id: str, after: int, approvals: set[str]) -> bool:
    """Waits until all approvals are decided. Returns False if the gateway stops first."""
    async with contextlib.aclosing(service.follow_events(run_id, owner=get_current_owner(), after=after)) as events:
        async for event in events:
            if isinstance(event.body, ApprovalDecided):
                approvals.discard(event.body.approval_id)
            if not approvals or event.body.terminal:
                return True
    return False
