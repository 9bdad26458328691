"""The `Tool` protocol, its description (`ToolSpec`), and the registry that rooms and skills select from."""

import re
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Generic, Protocol, TypeVar, runtime_checkable

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from agent.core.client_requests import AskClient, refuse_client_request
from agent.core.errors import ToolQuarantinedError, ToolUnknownError
from agent.core.models import LOCAL_OWNER, Effect, JsonObject, RetrievalMode, Room, Source, Tier
from agent.core.subagent_result import SubAgentResult
from agent.llm.port import ModelReply, ResponseSchema
from agent.tools.flat_schema import build_flat_schema

In = TypeVar("In", bound=BaseModel)
Out = TypeVar("Out", bound=BaseModel)

_NAME = re.compile(r"^[a-z][a-z0-9_]{0,47}$")


class ToolAnnotations(BaseModel):
    """MCP's hints. The effect class of our own tools is derived from them."""

    model_config = ConfigDict(frozen=True)

    read_only: bool = Field(default=False, serialization_alias="readOnlyHint")
    destructive: bool = Field(default=True, serialization_alias="destructiveHint")
    idempotent: bool = Field(default=False, serialization_alias="idempotentHint")
    open_world: bool = Field(default=True, serialization_alias="openWorldHint")

    @property
    def effect(self) -> Effect:
        """`read` for read-only tools, `idempotent` if repeating is harmless, else `effect`."""
        if self.read_only:
            return "read"
        return "idempotent" if self.idempotent else "effect"


READ_ONLY = ToolAnnotations(read_only=True, destructive=False, idempotent=True, open_world=False)
READ_ONLY_WEB = ToolAnnotations(read_only=True, destructive=False, idempotent=True, open_world=True)


class SubAgentSpawner(Protocol):
    """Starts sub-agents within the call of a tool. Implemented by whatever executes calls."""

    async def spawn(self, agent_id: str, task: JsonObject) -> SubAgentResult:
        """Runs a sub-agent to its end. Resumes one that an earlier process started, or returns its result again.

        If its time, turns or budget end, returns what it has found with `success` false. Raises `ToolInputError` for an
        unknown sub-agent or a task it does not accept, `ToolDeniedError` if the room's depth or number is reached,
        `SubAgentFailedError` if it fails.
        """
        ...

    def list_started_tasks(self, agent_id: str) -> list[JsonObject]:
        """Returns the tasks of the sub-agents of this kind that this call has started, in order. A call that is
        repeated after a crash also gets those of the first time. Long texts are shortened as in the trace.
        """
        ...


class ToolModel(Protocol):
    """A model that a tool may ask within its call, on the run's budgets. Implemented by whatever executes calls."""

    async def ask(
        self, messages: tuple[JsonObject, ...], *, tier: Tier = "fast", schema: ResponseSchema | None = None
    ) -> str:
        """Returns the text of one reply, in the form of `schema` where the endpoint knows schemas.

        Raises `ModelError`, and `BudgetError` before the call.
        """
        ...


class CallOtherTool(Protocol):
    """Calls another tool within a tool's call. Implemented by whatever executes calls."""

    async def __call__(self, name: str, args: JsonObject, suffix: str = "") -> "ToolResult":
        """Returns the result. `suffix` makes the idempotency keys of several calls differ.

        Raises `ToolDeniedError` for a tool that the caller may not use, `ToolInputError` for arguments that do not fit,
        and what the tool raises.
        """
        ...


def _ignore_progress(line: str) -> None:
    """Ignores the line: nobody listens."""


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What a tool knows about the call."""

    run_id: str
    owner: str
    idempotency_key: str = ""
    """Stays the same after a crash, changes with a RETRY verdict."""
    conversation_id: str | None = None
    tainted: bool = False
    """Whether the arguments contain untrusted content."""
    subagents: SubAgentSpawner | None = None
    """Starts sub-agents; None outside of a run."""
    model: ToolModel | None = None
    """A model to ask; None outside of a run and in rules mode."""
    retrieval_mode: RetrievalMode | None = None
    """The room's retrieval mode; None if the room sets none."""
    collections: tuple[str, ...] | None = None
    """The collections that the room reads; None if it reads all."""
    api_key_id: str | None = None
    """The id of the API key that started the run; None for a caller without one."""
    report_progress: Callable[[str], None] = _ignore_progress
    """Sends a progress line to callers that wait for the run. Returns at once; nothing is stored."""
    ask_client: AskClient = refuse_client_request
    """Asks the client that waits for the run, its user or its model; None if no client can carry the request."""
    call_tool: CallOtherTool | None = None
    """Calls another tool of the run, for tools that are built on others; None outside of a run."""


@dataclass(frozen=True, slots=True)
class PlanHints:
    """How the engine uses a tool that a room requires, and how it shows its result without a model."""

    intent: str = ""
    """The intent of a step that the engine adds; empty: a general one."""
    runs_after: tuple[str, ...] = ()
    """Tools that this tool's result is built from: its steps wait for their steps."""
    reads_request: bool = False
    """Whether the tool's text is the user's own words, so that its last step waits for nothing and stands last."""
    heading: str = ""
    """The heading of its result in an answer without a model; empty: the step's intent."""
    is_answer: bool = False
    """Whether its text explains itself, so that it answers a request in English without a completion."""
    comes_first: bool = False
    """Whether its result stands before all others in such an answer."""


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as planners, models and doors see it. Schemas are JSON Schema 2020-12."""

    name: str
    description: str
    input_schema: JsonObject
    output_schema: JsonObject | None
    annotations: ToolAnnotations
    tainted: bool
    """Whether results come from untrusted sources and must be treated as data."""
    timeout_s: float | None = None
    """Overrides the gateway's time limit."""
    origin: str = "builtin"
    keywords: tuple[str, ...] = ()
    """Words in a request that rank this tool higher when the catalogue is shortened."""
    is_opt_in: bool = False
    """Whether only rooms and callers that name the tool get it. For special tools that distract other planners."""
    requires_approval: bool = False
    """Whether every call needs approval, whatever the room says. The operator can set it."""
    uses_subagents: bool = False
    """Whether it works through sub-agents. It does not count as a parallel call: its sub-agents would wait for it."""
    always_raises_errors: bool = False
    """Whether it raises every failure. Text in its results that reads like an error is then only quoted text."""
    hints: PlanHints = PlanHints()
    owner: str = LOCAL_OWNER
    """Who may use it; the local owner shares it with all."""
    meta: JsonObject = field(default_factory=dict)
    """Sent to MCP clients with the description; an approval is void if it changes."""
    room: str | None = None
    """The only room that may use it, such as the one whose MCP server offers it; None: every room."""

    @property
    def effect(self) -> Effect:
        """The effect class."""
        return self.annotations.effect

    def is_allowed_in(self, room: Room) -> bool:
        """Returns whether the room allows the tool: its own servers' tools, and others if it names them or none."""
        if self.room is not None:
            return self.room == room.id
        return room.tools is None or self.name in room.tools

    def is_visible_to(self, owner: str) -> bool:
        """Returns whether `owner` may use it."""
        return self.owner in (LOCAL_OWNER, owner)

    def to_openai(self) -> JsonObject:
        """Converts the spec to a function of an OpenAI-style `tools` list."""
        return {
            "type": "function",
            "function": {"name": self.name, "description": self.description, "parameters": self.input_schema},
        }


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a call: a JSON value, the text that people and models read, and its sources."""

    value: JsonValue
    text: str
    sources: tuple[Source, ...] = ()
    tainted: bool = False
    """Whether this result contains untrusted content, although not all results of the tool do."""
    content: tuple[JsonObject, ...] = ()
    """Content blocks (`agent.core.content_blocks`) that `text` only describes: images, audio, resources. For callers of
    this single tool; plans and models get the text."""
    has_artifacts: bool = False
    """Whether `content` holds files that callers may fetch later, so that it is stored in every run."""


class Tool(Protocol):
    """What the tool gateway calls. `call` receives validated arguments and raises `ToolError`s."""

    @property
    def spec(self) -> ToolSpec:
        """The description of this tool. It must not change while the tool is registered."""
        ...

    async def call(self, args: JsonObject, context: ToolContext) -> ToolResult:
        """Executes the call once."""
        ...

    async def reconcile(self, key: str, context: ToolContext) -> ToolResult | None:
        """Returns the result of the call with this idempotency key, or None if it cannot be known."""
        ...


@runtime_checkable
class PreflightTool(Protocol):
    """A tool that can tell in advance that a call must fail, so that no person is asked to approve it."""

    async def preflight(self, args: JsonObject, context: ToolContext) -> None:
        """Raises the `ToolError` that the call would fail with now. Changes nothing."""
        ...


CompleteMessages = Callable[[tuple[JsonObject, ...], int], Awaitable[ModelReply]]
"""Asks a model with messages and the most tokens of the reply. Raises `ModelError` and `BudgetError`."""


@runtime_checkable
class ExplainingTool(Protocol):
    """A tool that shows a person what a call of it would do. A plan's approval does not stand for its calls."""

    async def explain(self, args: JsonObject, context: ToolContext) -> str:
        """Returns Markdown for the question to the person. Changes nothing. Raises only what `call` raises."""
        ...


@runtime_checkable
class RefiningTool(Protocol):
    """A tool whose result a model may improve, in rooms that require the tool and in a run's first plan."""

    async def refine(
        self, value: JsonObject, args: JsonObject, complete: CompleteMessages
    ) -> tuple[ToolResult | None, str | None]:
        """Returns a better result for the result `value` of a call with `args`, or None and a clause with the reason.

        Both are None if there is nothing to improve.
        """
        ...


class TypedTool(ABC, Generic[In, Out]):
    """The base class of our own tools: Pydantic in, Pydantic out. The schemas come from the models.

    A subclass sets the class attributes and implements `run`. It overrides `format_text` and `list_sources` if people
    should read something else than the JSON.
    """

    name: ClassVar[str]
    description: ClassVar[str]
    annotations: ClassVar[ToolAnnotations] = READ_ONLY
    tainted: ClassVar[bool] = False
    timeout_s: ClassVar[float | None] = None
    keywords: ClassVar[tuple[str, ...]] = ()
    is_opt_in: ClassVar[bool] = False
    requires_approval: ClassVar[bool] = False
    uses_subagents: ClassVar[bool] = False
    hints: ClassVar[PlanHints] = PlanHints()
    Input: type[In]
    Output: type[Out]

    def __init__(self) -> None:
        self._spec = ToolSpec(
            name=self.name,
            description=self.description,
            input_schema=build_flat_schema(self.Input),
            output_schema=build_flat_schema(self.Output),
            annotations=self.annotations,
            tainted=self.tainted,
            timeout_s=self.timeout_s,
            keywords=self.keywords,
            is_opt_in=self.is_opt_in,
            requires_approval=self.requires_approval,
            uses_subagents=self.uses_subagents,
            always_raises_errors=not self.annotations.open_world,  # web pages report failures as text
            hints=self.hints,
        )

    @property
    def spec(self) -> ToolSpec:
        """The description of this tool."""
        return self._spec

    async def call(self, args: JsonObject, context: ToolContext) -> ToolResult:
        """Parses the arguments, runs the tool and renders the output."""
        return self.make_result(await self.run(self.Input.model_validate(args), context))

    def make_result(self, output: Out) -> ToolResult:
        """Renders an output."""
        return ToolResult(
            output.model_dump(mode="json"),
            self.format_text(output),
            self.list_sources(output),
            tainted=self.is_tainted(output),
        )

    async def reconcile(self, key: str, context: ToolContext) -> ToolResult | None:
        """Returns None: unknown, unless a subclass knows better."""
        return None

    @abstractmethod
    async def run(self, args: In, context: ToolContext) -> Out:
        """Does the work."""

    def format_text(self, output: Out) -> str:
        """Returns the result as people and models read it; JSON by default."""
        return output.model_dump_json(indent=None, exclude_none=True)

    def is_tainted(self, output: Out) -> bool:
        """Returns whether this result contains untrusted content; False by default."""
        return False

    def list_sources(self, output: Out) -> tuple[Source, ...]:
        """Returns the sources that the result can be cited by; none by default."""
        return ()


@dataclass
class ToolRegistry:
    """The tools of this gateway by name. Passed in, never global; names are unique."""

    _tools: dict[str, Tool] = field(default_factory=dict)
    _withheld: dict[str, dict[str, str]] = field(default_factory=dict)
    _specs: tuple[ToolSpec, ...] | None = None
    """The specs in order of name; None after a change."""
    version: int = 0
    """Incremented with every change."""

    def register(self, *tools: Tool) -> None:
        """Adds tools. Raises ValueError for a bad or existing name."""
        for tool in tools:
            name = tool.spec.name
            if not _NAME.match(name):
                raise ValueError(f"tool name {name!r} must match {_NAME.pattern}")
            if name in self._tools:
                raise ValueError(f"a tool named {name!r} is registered already")
            self._tools[name] = tool
        self._invalidate_specs()

    def replace(self, origin: str, tools: Iterable[Tool]) -> None:
        """Replaces all tools of this origin with `tools`. Skips names that other origins use."""
        self._withheld.pop(origin, None)
        self._tools = {name: tool for name, tool in self._tools.items() if tool.spec.origin != origin}
        for tool in tools:
            self._tools.setdefault(tool.spec.name, tool)
        self._invalidate_specs()

    def withhold(self, origin: str, reasons: Mapping[str, str]) -> None:
        """Refuses these unregistered names with the given reasons, until the next `replace`."""
        self._withheld[origin] = dict(reasons)

    def get_withheld_reason(self, name: str) -> str | None:
        """Returns why the tool of this name may not be used, or None."""
        if name in self._tools:
            return None
        return next((reasons[name] for reasons in self._withheld.values() if name in reasons), None)

    def get(self, name: str) -> Tool:
        """Returns the tool of this name. Raises `ToolUnknownError` if it is absent, `ToolQuarantinedError` if it is
        withheld.
        """
        try:
            return self._tools[name]
        except KeyError:
            reason = self.get_withheld_reason(name)
            if reason is not None:
                raise ToolQuarantinedError(reason, agent_id=name) from None
            shared = (one.spec for one in self if one.spec.room is None and one.spec.owner == LOCAL_OWNER)
            known = ", ".join(spec.name for spec in shared) or "none"
            raise ToolUnknownError(f"there is no tool named {name!r}; known: {known}", agent_id=name) from None

    def __contains__(self, name: object) -> bool:
        return name in self._tools

    def __iter__(self) -> Iterator[Tool]:
        return iter(sorted(self._tools.values(), key=lambda tool: tool.spec.name))

    def list_specs(self, allowed: Iterable[str] | None = None) -> list[ToolSpec]:
        """Returns the specs in order of name, only those `allowed` if given."""
        if self._specs is None:
            self._specs = tuple(tool.spec for tool in self)
        names = None if allowed is None else set(allowed)
        return [spec for spec in self._specs if names is None or spec.name in names]

    def list_room_specs(self, room: Room, owner: str) -> list[ToolSpec]:
        """Returns the specs of the tools that an owner has in a room, in order of name: those the room names, or all if
        it names none, and those of its own servers.
        """
        return [spec for spec in self.list_specs() if spec.is_visible_to(owner) and spec.is_allowed_in(room)]

    def _invalidate_specs(self) -> None:
        self._specs = None
        self.version += 1
