"""A run that waits for a person, over MCP: they are asked by elicitation, where their client can.

A client of the 2025 era is asked while its call is open. One of 2026 gets the question as the result of its call, and
calls again with the answer and the sealed id of the run. Whoever cannot be asked is told that the run waits."""

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

from agent.core.approval import question
from agent.core.errors import ConflictError
from agent.core.events import ApprovalDecided
from agent.core.fold import fold
from agent.core.models import JsonObject
from agent.core.service import AgentService
from agent.execution.run import Run
from mcp_tools.agent_tools import WORD_CHARS, Decision
from mcp_tools.server_attendance import HEARTBEAT_SECONDS, Steps
from mcp_tools.server_sessions import Context

log = logging.getLogger(__name__)

ASK_SECONDS = 600.0
"""How long a call of the 2025 era is held open for a person; then the run waits without it."""
OBEY_SECONDS = 5.0
"""How long a word may take until it is obeyed: the run has to be claimed first. Mostly it is milliseconds."""
FORM_CHARS = 40_000
"""The longest question in a form; a longer one is a result, whose structured content has it whole."""
WAITING = "waiting for your approval"
FORM: JsonObject = {
    "type": "object",
    "properties": {
        "decision": {
            "type": "string",
            "title": "Decision",
            "description": "approve: carry it out as shown; reject: do not; answer: neither, see the text",
            "enum": ["approve", "reject", "answer"],
        },
        "text": {
            "type": "string",
            "title": "Text",
            "description": "why not, or what should be different; leave it empty to approve",
        },
    },
    "required": ["decision"],
}
"""What a person fills in. No default: one press of a key must not approve. Of one level, as the protocol asks."""


@dataclass(frozen=True, slots=True)
class Word:
    """What a person decided, and what they said."""

    decision: Decision
    text: str = ""


Heard = Word | None | Literal["ask", "moved"]
"""What came of asking: a word; None, when it was left open; `ask`, when the client has yet to be asked; `moved`, when
it was decided elsewhere."""


@dataclass(frozen=True, slots=True)
class Question:
    """What a run waits with: about which approvals, as Markdown, and the seq up to which the run has come."""

    approvals: tuple[str, ...]
    text: str
    seq: int

    @property
    def key(self) -> str:
        """Names this very question: an answer under another key is an answer to another one."""
        return ".".join(self.approvals)

    @property
    def fits(self) -> bool:
        """Whether a form can show it. It is never cut: nobody approves what they have not seen."""
        return len(self.text) <= FORM_CHARS

    def request(self) -> types.ElicitRequest:
        """As the client is asked it."""
        return types.ElicitRequest(params=types.ElicitRequestFormParams(message=self.text, requested_schema=FORM))


class UnclearError(Exception):
    """Raised for an answer that decides nothing: the form was sent without a decision, or with an unknown one."""


class _Filled(BaseModel):
    decision: Decision
    text: str = Field(default="", max_length=WORD_CHARS)


def word_of(answer: types.ElicitResult) -> Word | None:
    """What an answer decides; None where the person left it open. Raises `UnclearError`.

    An approval with a remark is no approval of what was shown: the remark is heard first."""
    if answer.action == "decline":
        return Word("reject", "declined in the MCP client")
    if answer.action == "cancel":
        return None
    try:
        filled = _Filled.model_validate(answer.content or {})
    except ValidationError as error:
        raise UnclearError("decision: it must be approve, reject or answer") from error
    text = filled.text.strip()
    if filled.decision == "approve" and text:
        return Word("answer", text)
    if filled.decision == "answer" and not text:
        raise UnclearError("text: say what should be different")
    return Word(filled.decision, text)


def can_ask(context: Context) -> bool:
    """Whether the client of this request takes questions in a form."""
    capabilities = context.session.client_capabilities
    declared = capabilities.elicitation if capabilities is not None else None
    if declared is None or (declared.form is None and declared.url is not None):
        return False
    return context.protocol_version in MODERN_PROTOCOL_VERSIONS or context.session.can_send_request


async def open_question(service: AgentService[Run], run_id: str) -> Question | None:
    """What a run waits with; None for one that does not wait. `NotFoundError`."""
    state = fold(run_id, await service.read(run_id))
    if state.finished or state.status != "awaiting_approval" or not state.waiting:
        return None
    return Question(tuple(asked.approval_id for asked in state.waiting), question(state), state.seq)


async def tell(service: AgentService[Run], run_id: str, asked: Question, word: Word) -> int:
    """Give a word to a run, and wait until it is obeyed, or else the same would be asked again.

    The seq up to which the run had come, 0 where the matter had been decided before."""
    try:
        heard = await service.decide(run_id, word.decision, reason=word.text, approvals=asked.approvals)
    except ConflictError as error:
        log.info("a word over MCP came too late: %s", error.message)
        return 0
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(OBEY_SECONDS):
            await _decided(service, run_id, heard, set(asked.approvals))
    return heard


async def _decided(service: AgentService[Run], run_id: str, after: int, approvals: set[str]) -> bool:
    """Whether all of these are decided, once they are; no when the gateway stops first."""
    async with contextlib.aclosing(service.events(run_id, after=after)) as events:
        async for event in events:
            if isinstance(event.body, ApprovalDecided):
                approvals.discard(event.body.approval_id)
            if not approvals or event.body.terminal:
                return True
    return False


class Person:
    """The one behind a call, as far as the client lets us ask them. `steps` tells them that they are waited for."""

    def __init__(
        self, service: AgentService[Run], context: Context, params: types.CallToolRequestParams, steps: Steps
    ) -> None:
        self._service, self._context, self._params = service, context, params
        self.steps = steps

    @property
    def resumed(self) -> str | None:
        """The run that an earlier round of this call (2026) began; what was sealed for a client is what we wrote."""
        return self._params.request_state

    @property
    def revision(self) -> str:
        """The revision of the protocol their client speaks."""
        return self._context.protocol_version

    @property
    def can_be_asked(self) -> bool:
        """Whether the client of this request takes questions in a form."""
        return can_ask(self._context)

    async def settle(self, run_id: str, follow: Callable[[int], Awaitable[object]]) -> types.InputRequiredResult | None:
        """Ask as often as the run waits, and go on with `follow(heard)` after each answer.

        None once the run waits no more, or nobody answered; else the question the client has to bring back."""
        if not self.can_be_asked:
            return None
        while (asked := await open_question(self._service, run_id)) is not None:
            if not asked.fits:
                return None
            modern = self._context.protocol_version in MODERN_PROTOCOL_VERSIONS
            word: Heard = self._brought(asked) if modern else await self._asked(run_id, asked)
            if word == "ask":
                return types.InputRequiredResult(input_requests={asked.key: asked.request()}, request_state=run_id)
            if word is None:
                return None
            await follow(0 if word == "moved" else await tell(self._service, run_id, asked, word))
        return None

    def _brought(self, asked: Question) -> Heard:
        """The answer this call brings along; `ask` where it brings none that decides."""
        answer = (self._params.input_responses or {}).get(asked.key) if self.resumed else None
        if not isinstance(answer, types.ElicitResult):
            return "ask"
        try:
            return word_of(answer)
        except UnclearError:
            return "ask"

    async def _asked(self, run_id: str, asked: Question) -> Heard:
        """Ask, and wait with progress. None where nobody answers; `moved` where it was decided elsewhere meanwhile."""
        asking = asyncio.create_task(self._elicit(asked))
        deciding = asyncio.create_task(_decided(self._service, run_id, asked.seq, {asked.approvals[0]}))
        both = {asking, deciding}
        try:
            await self.steps.tell(WAITING)
            while not (await asyncio.wait(both, timeout=HEARTBEAT_SECONDS, return_when=asyncio.FIRST_COMPLETED))[0]:
                await self.steps.tell(WAITING)
        finally:
            self.steps.last = ""
            for task in both:
                task.cancel()
            await asyncio.wait(both)
        if not asking.cancelled():
            return asking.result()
        return "moved" if deciding.result() else None

    async def _elicit(self, asked: Question) -> Word | None:
        session, request_id = self._context.session, self._context.request_id
        try:
            answer = await session.send_request(
                asked.request(),
                types.ElicitResult,
                request_read_timeout_seconds=ASK_SECONDS,
                metadata=ServerMessageMetadata(related_request_id=request_id),
            )
            return word_of(answer)
        except (MCPError, ValidationError, UnclearError) as error:
            # No answer, none that can be read, or none that decides: the run waits on, and is reported so.
            log.info("an approval was not given over MCP: %s", error)
            return None
