"""`ClientCall`: one `tools/call` request, and how its user is asked.

A client of protocol era 2025 is asked while its call is open. A client of era 2026 gets the question as the result of
its call, and calls again with the answer and the sealed run id. A client that supports neither gets a result that says
how to respond.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from agent.core.cancellation import cancel_and_wait
from agent.core.client_requests import ClientMethod
from agent.core.models import JsonObject
from agent.run_context.run import Run
from agent.runs.service import AgentService
from mcp_tools.server.approval import (
    MAX_FORM_CHARS,
    WAITING_MESSAGE,
    AskResult,
    Question,
    UnclearReplyError,
    can_elicit,
    get_open_question,
    parse_reply,
    submit_decision,
    wait_until_decided,
)
from mcp_tools.server.current_principal import get_current_principal
from mcp_tools.server.progress import HEARTBEAT_SECONDS, StepProgress
from mcp_tools.server.sessions import Context, get_session_name
from mcp_tools.server.user_input import build_input_request, get_input_question, get_question_key, parse_answer

CallResult = types.CallToolResult | types.InputRequiredResult | JsonObject
"""The outcome of a call: its result, questions for the client, or (in wire form) the task it became."""

log = logging.getLogger(__name__)

ASK_SECONDS = 600.0
"""How long a call of era 2025 stays open for the user's answer, in seconds; then the run waits without it."""


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
    def session_name(self) -> str | None:
        """A name for the client's session; None for a client without one."""
        return get_session_name(self._context)

    @property
    def can_elicit(self) -> bool:
        """Whether the client supports elicitation by form."""
        return can_elicit(self._context)

    async def ask_client(self, run_id: str, method: ClientMethod, params: JsonObject) -> JsonObject | None:
        """The client's answer to a tool's request. Returns None if the client cannot carry it, or does not
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
        """What the client must answer in its next call: the request of a tool, or the question of a waiting
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
        elicitation: types.ElicitRequest | types.CreateMessageRequest
        if request.method == "elicitation/create":
            elicitation = types.ElicitRequest(params=types.ElicitRequestFormParams.model_validate(request.params))
        else:
            elicitation = types.CreateMessageRequest(
                params=types.CreateMessageRequestParams.model_validate(request.params)
            )
        return types.InputRequiredResult(input_requests={request.key: elicitation}, request_state=run_id)

    async def resolve_approvals(
        self, run_id: str, follow: Callable[[int], Awaitable[object]]
    ) -> types.InputRequiredResult | None:
        """Asks the user as long as the run waits for approvals, and calls `follow(last_seq)` after each answer.

        Returns None if the run no longer waits, nobody answered, or the caller may not decide; else the question that
        the client must answer in its next call.
        """
        if not self.can_elicit or not get_current_principal().may_approve:
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

    async def ask_for_input(self, run_id: str) -> types.InputRequiredResult | str | None:
        """The user's answer to the question that the run ended with; None if there is no question or no answer;
        or the question that the client must answer in its next call."""
        question = await get_input_question(self._service, run_id) if self.can_elicit else None
        if question is None or len(question) > MAX_FORM_CHARS:
            return None
        request, key = build_input_request(question), get_question_key(run_id)
        if self._context.protocol_version in MODERN_PROTOCOL_VERSIONS:
            response = (self._params.input_responses or {}).get(key) if self.resumed_run_id else None
            if isinstance(response, types.ElicitResult):
                return parse_answer(response)
            return types.InputRequiredResult(input_requests={key: request}, request_state=run_id)
        answered = await self._send_with_progress(asyncio.create_task(self._elicit(request)), "waiting for your answer")
        return parse_answer(answered) if answered is not None else None

    def _read_reply(self, question: Question) -> AskResult:
        """The answer that this call carries; `ask` if it carries none that decides."""
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
        ask_task = asyncio.create_task(self._elicit(question.build_request()))
        decided_task = asyncio.create_task(
            wait_until_decided(self._service, run_id, question.seq, {question.approval_ids[0]})
        )
        try:
            answer = await self._send_with_progress(ask_task, WAITING_MESSAGE, decided_task)
            if not ask_task.cancelled():
                return parse_reply(answer) if answer is not None else None
        except UnclearReplyError as error:
            log.info("no decision over MCP: %s", error)
            return None
        return "decided_elsewhere" if decided_task.result() else None

    async def _send_with_progress(
        self, ask_task: asyncio.Task[types.ElicitResult | None], message: str, *others: asyncio.Task[bool]
    ) -> types.ElicitResult | None:
        """The result of `ask_task`, or None if one of `others` is done first. Sends progress meanwhile, and
        cancels the tasks that are not done."""
        tasks: set[asyncio.Task[object]] = {ask_task, *others}
        try:
            await self.steps.send(message)
            while not (await asyncio.wait(tasks, timeout=HEARTBEAT_SECONDS, return_when=asyncio.FIRST_COMPLETED))[0]:
                await self.steps.send(message)
        finally:
            self.steps.last_message = ""
            await cancel_and_wait(*tasks)
        return None if ask_task.cancelled() else ask_task.result()

    async def _elicit(self, request: types.ElicitRequest) -> types.ElicitResult | None:
        """The user's answer to a form. Returns None if there is none: the run keeps waiting, and the result
        says so."""
        try:
            return await self._context.session.send_request(
                request,
                types.ElicitResult,
                request_read_timeout_seconds=ASK_SECONDS,
                metadata=ServerMessageMetadata(related_request_id=self._context.request_id),
            )
        except (MCPError, ValidationError) as error:
            log.info("no answer over MCP: %s", error)
            return None
