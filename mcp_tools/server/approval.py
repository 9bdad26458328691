"""Approvals over MCP: asks the user by elicitation if the client supports it.

A client of protocol era 2025 is asked while its call is open. A client of era 2026 gets the question as the result of
its call, and calls again with the answer and the sealed run id. A client that supports neither gets a result that says
how to respond.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel, Field, ValidationError

from agent.core.client_requests import ClientMethod
from agent.core.errors import ConflictError
from agent.core.events import ApprovalDecided
from agent.core.models import JsonObject
from agent.core.run_state import fold
from agent.policy.approval import format_approval_question
from agent.run_context.run import Run
from agent.runs.service import AgentService
from mcp_tools.server.agent_tools import MAX_REPLY_CHARS, Decision
from mcp_tools.server.current_principal import current_owner, current_principal
from mcp_tools.server.progress import HEARTBEAT_SECONDS, StepProgress
from mcp_tools.server.sessions import Context

log = logging.getLogger(__name__)

ASK_SECONDS = 600.0
"""How long a call of era 2025 stays open for the user's answer, in seconds; then the run waits without it."""
APPLY_SECONDS = 5.0
"""How long to wait until a decision is applied, in seconds. It takes milliseconds once the run is claimed."""
MAX_FORM_CHARS = 40_000
"""The longest question in a form. A longer one is returned as a result, whose structured content is complete."""
WAITING_MESSAGE = "waiting for your approval"
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
    """What the user decided, and the text they added."""

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
        """Returns the elicitation request for the client."""
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
    """Returns the decision in an elicitation result, or None if the user closed the form. Raises `UnclearReplyError`.

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
    """Returns the question a run waits with, or None if it does not wait. Raises `NotFoundError`."""
    state = fold(run_id, await service.read_events(run_id, owner=current_owner()))
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
            principal=current_principal(),
            reason=decision.text,
            approvals=question.approval_ids,
        )
    except ConflictError as error:
        log.info("a decision over MCP came too late: %s", error.message)
        return 0
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(APPLY_SECONDS):
            await _wait_until_decided(service, run_id, decided.last_seq, set(question.approval_ids))
    return decided.last_seq


async def _wait_until_decided(service: AgentService[Run], run_id: str, after: int, approvals: set[str]) -> bool:
    """Waits until all approvals are decided. Returns False if the gateway stops first."""
    async with contextlib.aclosing(service.follow_events(run_id, owner=current_owner(), after=after)) as events:
        async for event in events:
            if isinstance(event.body, ApprovalDecided):
                approvals.discard(event.body.approval_id)
            if not approvals or event.body.terminal:
                return True
    return False


class ClientCall:
    """One `tools/call` request: whether its user can be asked, and where its progress goes (`steps`)."""

    def __init__(
        self, service: AgentService[Run], context: Context, params: types.CallToolRequestParams, steps: StepProgress
    ) -> None:
        self._service, self._context, self._params = service, context, params
        self.steps = steps

    @property
    def resumed_run_id(self) -> str | None:
        """The run that an earlier round of this call (era 2026) started. The client carried it in sealed state."""
        return self._params.request_state

    @property
    def protocol_version(self) -> str:
        """The protocol version of the client."""
        return self._context.protocol_version

    @property
    def can_elicit(self) -> bool:
        """Whether the client supports elicitation by form."""
        return can_elicit(self._context)

    async def ask_client(self, run_id: str, method: ClientMethod, params: JsonObject) -> JsonObject | None:
        """Returns the client's answer to a tool's request. Returns None if the client cannot carry it, or does not
        answer.

        In era 2025 the client is asked while this call is open; in era 2026 by the result of this call, so that its
        next call brings the answer.
        """
        session = self._context.session
        if self._context.protocol_version in MODERN_PROTOCOL_VERSIONS:
            if not self._supports(method):
                return None
            self.steps.request_raised.set()
            return await self._service.client_requests.wait_for_answer(run_id, method, params, ASK_SECONDS)
        if not self._supports(method) or not session.can_send_request:
            return None
        metadata = ServerMessageMetadata(related_request_id=self._context.request_id)
        result: types.ElicitResult | types.CreateMessageResult
        try:
            if method == "elicitation/create":
                form = types.ElicitRequest(params=types.ElicitRequestFormParams.model_validate(params))
                result = await session.send_request(
                    form, types.ElicitResult, request_read_timeout_seconds=ASK_SECONDS, metadata=metadata
                )
            else:
                prompt = types.CreateMessageRequest(params=types.CreateMessageRequestParams.model_validate(params))
                result = await session.send_request(
                    prompt, types.CreateMessageResult, request_read_timeout_seconds=ASK_SECONDS, metadata=metadata
                )
        except (MCPError, ValidationError) as error:
            log.info("no answer to a tool's request over MCP (%s): %s", method, error)
            return None
        wire: JsonObject = result.model_dump(mode="json", by_alias=True, exclude_none=True)
        return wire

    def _supports(self, method: ClientMethod) -> bool:
        if method == "elicitation/create":
            return self.can_elicit
        capabilities = self._context.session.client_capabilities
        return capabilities is not None and capabilities.sampling is not None

    def answer_open_request(self, run_id: str) -> None:
        """Passes the answer that this call carries (era 2026) to the tool that waits for it."""
        request = self._service.client_requests.get_open_request(run_id)
        answer = (self._params.input_responses or {}).get(request.key) if request is not None else None
        if request is not None and answer is not None:
            wire: JsonObject = answer.model_dump(mode="json", by_alias=True, exclude_none=True)
            self._service.client_requests.answer(run_id, request.key, wire)

    async def resolve_questions(
        self, run_id: str, follow: Callable[[int], Awaitable[object]]
    ) -> types.InputRequiredResult | None:
        """Returns what the client must answer in its next call: the request of a tool, or the question of a waiting
        run (`resolve_approvals`); None if there is nothing to ask.
        """
        return (
            self._build_open_request(run_id)
            or await self.resolve_approvals(run_id, follow)
            or self._build_open_request(run_id)
        )

    def _build_open_request(self, run_id: str) -> types.InputRequiredResult | None:
        request = self._service.client_requests.get_open_request(run_id)
        if request is None or not self._supports(request.method):
            return None
        asked: types.ElicitRequest | types.CreateMessageRequest
        if request.method == "elicitation/create":
            asked = types.ElicitRequest(params=types.ElicitRequestFormParams.model_validate(request.params))
        else:
            asked = types.CreateMessageRequest(params=types.CreateMessageRequestParams.model_validate(request.params))
        return types.InputRequiredResult(input_requests={request.key: asked}, request_state=run_id)

    async def resolve_approvals(
        self, run_id: str, follow: Callable[[int], Awaitable[object]]
    ) -> types.InputRequiredResult | None:
        """Asks the user as long as the run waits for approvals, and calls `follow(last_seq)` after each answer.

        Returns None if the run no longer waits or nobody answered; else the question that the client must answer in its
        next call.
        """
        if not self.can_elicit:
            return None
        while (question := await get_open_question(self._service, run_id)) is not None:
            if not question.fits_form:
                return None
            is_modern = self._context.protocol_version in MODERN_PROTOCOL_VERSIONS
            decision: AskResult = (
                self._read_reply(question) if is_modern else await self._ask_and_wait(run_id, question)
            )
            if decision == "ask":
                return types.InputRequiredResult(
                    input_requests={question.key: question.build_request()}, request_state=run_id
                )
            if decision is None:
                return None
            await follow(
                0
                if decision == "decided_elsewhere"
                else await submit_decision(self._service, run_id, question, decision)
            )
        return None

    def _read_reply(self, question: Question) -> AskResult:
        """Returns the answer that this call carries; `ask` if it carries none that decides."""
        answer = (self._params.input_responses or {}).get(question.key) if self.resumed_run_id else None
        if not isinstance(answer, types.ElicitResult):
            return "ask"
        try:
            return parse_reply(answer)
        except UnclearReplyError:
            return "ask"

    async def _ask_and_wait(self, run_id: str, question: Question) -> AskResult:
        """Asks, and sends progress until there is an answer. Returns None if nobody answers, and `decided_elsewhere` if
        somebody else decides meanwhile.
        """
        ask_task = asyncio.create_task(self._elicit(question))
        decided_task = asyncio.create_task(
            _wait_until_decided(self._service, run_id, question.seq, {question.approval_ids[0]})
        )
        tasks = {ask_task, decided_task}
        try:
            await self.steps.send(WAITING_MESSAGE)
            while not (await asyncio.wait(tasks, timeout=HEARTBEAT_SECONDS, return_when=asyncio.FIRST_COMPLETED))[0]:
                await self.steps.send(WAITING_MESSAGE)
        finally:
            self.steps.last_message = ""
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        if not ask_task.cancelled():
            return ask_task.result()
        return "decided_elsewhere" if decided_task.result() else None

    async def _elicit(self, question: Question) -> UserDecision | None:
        session, request_id = self._context.session, self._context.request_id
        try:
            answer = await session.send_request(
                question.build_request(),
                types.ElicitResult,
                request_read_timeout_seconds=ASK_SECONDS,
                metadata=ServerMessageMetadata(related_request_id=request_id),
            )
            return parse_reply(answer)
        except (MCPError, ValidationError, UnclearReplyError) as error:
            # No answer, an unreadable or an unclear one: the run keeps waiting, and the result says so.
            log.info("no decision over MCP: %s", error)
            return None
