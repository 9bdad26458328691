"""`SubAgent`: one task with its own tools and conversation, started by a tool call of another agent.

A feature registers its sub-agents, one class each. A sub-agent knows no run: `agent/execution/subagent_runner.py` asks
the model, makes the calls, keeps the time, and reports results back.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import ClassVar, Generic, NamedTuple, Protocol, TypeVar

from pydantic import BaseModel, JsonValue, ValidationError

from agent.core.events import StepOutput
from agent.core.models import ChatMessage, JsonObject
from agent.core.subagent_result import SubAgentResult
from agent.llm.prompts import PromptSource
from agent.tools import Tool

In = TypeVar("In", bound=BaseModel)
Out = TypeVar("Out", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Caller:
    """For whom a sub-agent works: the owner of the documents, and the conversation."""

    owner: str
    conversation_id: str | None = None
    history: tuple[ChatMessage, ...] = ()
    """The messages before the request, for a sub-agent that `READS_HISTORY`."""


class SubAgentResources:
    """The resources that a feature gives its sub-agents. The base class gives nothing; each feature derives its own."""


class CallResult(NamedTuple):
    """The result of a call: the tool's value, or its error."""

    value: JsonValue
    error: str | None = None


class OpeningCall(NamedTuple):
    """A call that a sub-agent begins with: a tool's name, and its arguments as text."""

    tool: str
    values: Mapping[str, str]


class ToolCalls(Protocol):
    """Calls a sub-agent's tools without a model. Each call is recorded and passed to `SubAgent.record_call`.

    Which calls are made, and in which order, may depend only on the results of earlier calls, so that a resumed
    sub-agent repeats them.
    """

    def __call__(self, tool: str, args: JsonObject) -> Awaitable[CallResult]:
        """Makes one call, numbered now and executed when awaited. Never raises for a tool's failure."""
        ...


class SubAgent(ABC, Generic[In, Out]):
    """The base class. Its system prompt is `subagent_<AGENT_ID>`, or `PROMPT`, of `PROMPTS`.

    Its state consists of what its tools returned (`record_call`), so a resumed sub-agent gets the same state from the
    recorded results. Its own tools are read-only and come with the permission to start it. Tools in `BORROWS` are
    available if the parent has them and they are read-only; with `CHANGES_THINGS` others too, which a person must allow
    unless the room asks for no approval.
    """

    AGENT_ID: ClassVar[str]
    DESCRIPTION: ClassVar[str]
    PROMPT: ClassVar[str] = ""
    PROMPTS: ClassVar[PromptSource]
    """The prompts of its feature."""
    KEYWORDS: ClassVar[tuple[str, ...]] = ()
    BORROWS: ClassVar[tuple[str, ...]] = ()
    CHANGES_THINGS: ClassVar[bool] = False
    """Whether it may borrow tools that change something."""
    READS_HISTORY: ClassVar[bool] = False
    """Whether it gets the messages before the request. It is as tainted as they are. Most get by without them."""
    KEEPS_RESULTS: ClassVar[bool] = False
    """Whether a feature's conversation keeps its results."""
    IS_ANSWER: ClassVar[bool] = False
    """Whether its summary is the answer for people, so that its failure fails the call that started it."""
    MAX_TURNS: ClassVar[int] = 20
    TIMEOUT_SECONDS: ClassVar[float] = 300
    Task: type[In]
    """Its task: the parameters of the tool that starts it."""
    Final: type[Out]
    """The JSON that its model ends with."""

    def __init__(self, task: In, caller: Caller, resources: SubAgentResources) -> None:
        self.task = task
        self.caller = caller
        self.resources = resources
        self.granted: Mapping[str, Tool] = {}
        """The tools that it got; set before its first turn."""
        self.exit_stack = AsyncExitStack()
        """The resources to close with it."""

    async def prepare(self) -> None:
        """Checks the task before anything starts. Raises an `AgentError` if it cannot be done."""

    @abstractmethod
    def make_tools(self) -> Sequence[Tool]:
        """Its own tools, which must be read-only."""

    @abstractmethod
    def build_first_message(self) -> str:
        """The one message its model is asked; there is no other history."""

    def build_opening_call(self) -> OpeningCall | None:
        """A call to make before the model's first turn, or None. It must depend on the task only."""
        return None

    def conclude_opening(self) -> SubAgentResult | None:
        """The result after the opening call if that is all; None to ask the model."""
        return None

    def read_prose(self, text: str) -> Out | None:
        """The end that a text without a JSON result means; None to ask the model again."""
        return None

    def record_call(self, tool: str, args: JsonObject, output: StepOutput) -> None:
        """Records a returned call, live or from the log. By default passes a successful value to `record_value`."""
        if output.error_code is not None or not isinstance(output.value, dict):
            return
        try:
            self.record_value(tool, output.value)
        except ValidationError:  # recorded by an older version: it is found out again where it is needed
            return

    def record_value(self, tool: str, value: JsonObject) -> None:
        """Records what a tool returned. May raise Pydantic's `ValidationError`; nothing is recorded then."""

    @abstractmethod
    def build_partial_data(self) -> JsonObject:
        """The result data so far, for a sub-agent that is cut short."""

    @abstractmethod
    async def conclude(self, final: Out, calls: ToolCalls) -> SubAgentResult:
        """The result. Figures are counted here and never taken from the model."""

    @abstractmethod
    async def run_by_rules(self, calls: ToolCalls) -> SubAgentResult:
        """The result without a model."""

    async def aclose(self) -> None:
        """Closes what it has opened."""
        await self.exit_stack.aclose()
