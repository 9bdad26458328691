"""`SubAgent`: somebody with one task, tools and a conversation of its own, started by a tool call of another.

A sub-agent is one class here and one entry in `registry.py`. It knows no run: `agent/execution/subagents.py` asks the
model, makes the calls and keeps the time, and tells it what came back.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Generic, NamedTuple, Protocol, TypeVar

from pydantic import BaseModel, JsonValue, ValidationError

from agent.core.events import StepOutput
from agent.core.language import LanguageDetector
from agent.core.models import JsonObject
from agent.core.subagents import SubAgentResult
from agent.knowledge.connectors.port import Connector
from agent.knowledge.library import Library
from agent.knowledge.models import ConnectorInput, SourceType
from agent.tools import Tool

In = TypeVar("In", bound=BaseModel)
Out = TypeVar("Out", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Caller:
    """For whom a sub-agent works: whose documents it sees, and in which conversation."""

    owner: str
    conversation_id: str | None = None


FindSource = Callable[[str, Caller], Awaitable[ConnectorInput]]
"""From a source's name to the source. Raises an `AgentError` for one that is not there or not the caller's."""


@dataclass(frozen=True, slots=True)
class Materials:
    """What sub-agents work with. Local files are read beneath `roots` only; `folder` is for what has to be downloaded
    or copied meanwhile."""

    library: Library
    connectors: Mapping[SourceType, Connector]
    roots: Sequence[Path]
    folder: Path
    languages: LanguageDetector
    find_source: FindSource


class Called(NamedTuple):
    """What came of a call: the tool's value, or the error it ended in."""

    value: JsonValue
    error: str | None = None


class Calls(Protocol):
    """Calls a sub-agent's tools without a model; each is recorded as a model's is, and told to `SubAgent.seen`. Which
    calls are made, and in which order, may depend on what calls before them returned and on nothing else."""

    def __call__(self, tool: str, args: JsonObject) -> Awaitable[Called]:
        """One call, numbered now and made when it is awaited. Never raises for what the tool did wrong."""
        ...


async def together(calls: Iterable[Awaitable[Called]]) -> list[Called]:
    """What came of calls that are made at once, in their order."""

    async def made(call: Awaitable[Called]) -> Called:
        return await call

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(made(call)) for call in calls]
    except BaseExceptionGroup as failures:  # the first cause, as the rest of the engine knows it
        raise failures.exceptions[0] from None
    return [task.result() for task in tasks]


class SubAgent(ABC, Generic[In, Out]):
    """The base. Its system prompt is `agent/prompts/subagent_<AGENT_ID>.md`, unless `PROMPT` names another.

    Everything it keeps is made of what its tools returned (`seen`), so that a resumed one, which is told the recorded
    returns again, knows what it knew. Its own tools only read; they come with the permission to start it. Tools it
    `BORROWS` it gets as far as its parent has them, and only those that read."""

    AGENT_ID: ClassVar[str]
    DESCRIPTION: ClassVar[str]
    PROMPT: ClassVar[str] = ""
    KEYWORDS: ClassVar[tuple[str, ...]] = ()
    BORROWS: ClassVar[tuple[str, ...]] = ()
    MAX_TURNS: ClassVar[int] = 20
    TIMEOUT_SECONDS: ClassVar[float] = 300
    Task: type[In]
    """What it is asked to do; the parameters of the tool that starts it."""
    Final: type[Out]
    """The JSON its model ends with."""

    def __init__(self, task: In, caller: Caller, materials: Materials) -> None:
        self.task = task
        self.caller = caller
        self.materials = materials
        self.closing = AsyncExitStack()
        """What has to be closed with it."""

    async def prepare(self) -> None:
        """Look at the task before anything begins. Raises an `AgentError` for one that cannot be done."""

    @abstractmethod
    def tools(self) -> Sequence[Tool]:
        """Its own tools. They may only read."""

    @abstractmethod
    def message(self) -> str:
        """What its model is asked, in one message; there is no other history."""

    def seen(self, tool: str, args: JsonObject, output: StepOutput) -> None:
        """A call has returned, now or in an earlier process: keep what the result will be made of. Of a call that went
        well that is its value (`keep`); whoever wants more of it says so here."""
        if output.error_code is not None or not isinstance(output.value, dict):
            return
        try:
            self.keep(tool, output.value)
        except ValidationError:  # recorded by an older version: it is found out again where it is needed
            return

    def keep(self, tool: str, value: JsonObject) -> None:
        """Keep what a tool has returned. May raise Pydantic's `ValidationError`: then nothing of it is kept."""

    @abstractmethod
    def partial(self) -> JsonObject:
        """What is known by now, as data of a result; for one that ends before its end."""

    @abstractmethod
    async def conclude(self, final: Out, calls: Calls) -> SubAgentResult:
        """The result. What can be counted is counted here and not taken from the model's word."""

    @abstractmethod
    async def by_rules(self, calls: Calls) -> SubAgentResult:
        """The result without a model."""

    async def aclose(self) -> None:
        """Close what it has opened."""
        await self.closing.aclose()
