"""The `Tool` protocol, what is known of a tool (`ToolSpec`), and the registry rooms and skills choose from."""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import ClassVar, Generic, Protocol, TypeVar, runtime_checkable

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from agent.core.errors import ToolQuarantinedError, ToolUnknownError
from agent.core.models import Effect, JsonObject, RetrievalMode, Source, Tier
from agent.core.subagents import SubAgentResult

In = TypeVar("In", bound=BaseModel)
Out = TypeVar("Out", bound=BaseModel)

_NAME = re.compile(r"^[a-z][a-z0-9_]{0,47}$")


class ToolAnnotations(BaseModel):
    """MCP's hints. The effect class is derived from them for our own tools."""

    model_config = ConfigDict(frozen=True)

    read_only: bool = Field(default=False, serialization_alias="readOnlyHint")
    destructive: bool = Field(default=True, serialization_alias="destructiveHint")
    idempotent: bool = Field(default=False, serialization_alias="idempotentHint")
    open_world: bool = Field(default=True, serialization_alias="openWorldHint")

    @property
    def effect(self) -> Effect:
        """`read` for read-only, `idempotent` where repeating is harmless, else `effect`."""
        if self.read_only:
            return "read"
        return "idempotent" if self.idempotent else "effect"


READ_ONLY = ToolAnnotations(read_only=True, destructive=False, idempotent=True, open_world=False)
READ_ONLY_WEB = ToolAnnotations(read_only=True, destructive=False, idempotent=True, open_world=True)


class Spawner(Protocol):
    """Starts sub-agents within the call of the tool that asks for them. Whoever carries out calls implements it."""

    async def spawn(self, agent_id: str, task: JsonObject) -> SubAgentResult:
        """Carry out a sub-agent to its end; one that an earlier process began goes on, or gives its result again.

        What it found by then comes back with `success` false when its time, turns or budget end. Raises
        `ToolInputError` for an unknown one or a task it does not take, `ToolDeniedError` where the room's depth or
        number is reached, `SubAgentFailedError` when it fails."""
        ...

    def begun(self, agent_id: str) -> list[JsonObject]:
        """The tasks of the sub-agents of this kind that this very call has begun, in order: of a call that is made
        again after a crash, those of the first time too. Long texts are shortened as the trace shows them."""
        ...


class Asker(Protocol):
    """A model that a tool may ask within its call, on the run's budgets. Whoever carries out calls implements it."""

    async def ask(self, messages: tuple[JsonObject, ...], *, tier: Tier = "fast") -> str:
        """The text of one reply. Raises `ModelError`, and `BudgetError` before the call."""
        ...


def _unheard(line: str) -> None:
    """Nobody listens."""


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What a tool may know of the call it serves."""

    run_id: str
    owner: str
    key: str = ""
    """The idempotency key; stable over crashes, new on a judged RETRY."""
    conversation_id: str | None = None
    tainted: bool = False
    """Whether anything in the arguments came from outside."""
    subagents: Spawner | None = None
    """How sub-agents are started; None outside of a run."""
    model: Asker | None = None
    """A model to ask; None outside of a run, and in rules mode."""
    retrieval_mode: RetrievalMode | None = None
    """How the room wants documents searched; None where it does not say."""
    told: Callable[[str], None] = _unheard
    """Takes a line about how far the call is, for who waits for the run; it waits for nobody, and nothing is kept."""


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as planners, models and doors see it. Schemas are JSON Schema 2020-12."""

    name: str
    description: str
    input_schema: JsonObject
    output_schema: JsonObject | None
    annotations: ToolAnnotations
    tainted: bool
    """Whether results come from outside and are to be treated as data."""
    timeout_s: float | None = None
    """Overrides the gateway's time limit."""
    origin: str = "builtin"
    keywords: tuple[str, ...] = ()
    """Words that speak for this tool when the catalogue is shortlisted."""
    by_name: bool = False
    """Whether only rooms and callers that name it have it: a special tool would be in the way of all others."""
    asks: bool = False
    """Whether every call waits for a person, whatever the room says: the operator wants it so."""
    spawns: bool = False
    """Whether it works through sub-agents. It takes no place among the calls under way: theirs would wait for it."""
    raises: bool = False
    """Whether every failure of it is raised, so that what reads like an error in its results is quoted there."""

    @property
    def effect(self) -> Effect:
        """The effect class."""
        return self.annotations.effect

    def wire(self) -> JsonObject:
        """As a function of an OpenAI-style `tools` list."""
        return {
            "type": "function",
            "function": {"name": self.name, "description": self.description, "parameters": self.input_schema},
        }


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a call gave: a JSON value, the text people and models read, and where it came from."""

    value: JsonValue
    text: str
    sources: tuple[Source, ...] = ()
    tainted: bool = False
    """Whether this very result holds something from outside, although the tool's results do not always."""
    content: tuple[JsonObject, ...] = ()
    """What it returned as blocks (`agent.core.content`), where `text` only tells of them: pictures, sound, resources.
    For who called this one tool by itself; plans and models have the text."""


class Tool(Protocol):
    """What the tool gateway calls. `call` gets validated arguments and raises `ToolError`s."""

    @property
    def spec(self) -> ToolSpec:
        """What is known of this tool; must not change while it is registered."""
        ...

    async def call(self, args: JsonObject, context: ToolContext) -> ToolResult:
        """Do it once."""
        ...

    async def reconcile(self, key: str, context: ToolContext) -> ToolResult | None:
        """What came of the call with this idempotency key, or None when that cannot be known."""
        ...


@runtime_checkable
class Foreseeing(Protocol):
    """A tool that knows beforehand that a call must fail, so that no person is asked to allow it."""

    async def foresee(self, args: JsonObject, context: ToolContext) -> None:
        """Raise the `ToolError` that the call would end in now; change nothing."""
        ...


class TypedTool(ABC, Generic[In, Out]):
    """The base of our own tools: Pydantic in, Pydantic out; the schemas come from the models.

    A subclass sets the class attributes and implements `run`; `text` and `sources` when the JSON is not what a
    person should read."""

    name: ClassVar[str]
    description: ClassVar[str]
    annotations: ClassVar[ToolAnnotations] = READ_ONLY
    tainted: ClassVar[bool] = False
    timeout_s: ClassVar[float | None] = None
    keywords: ClassVar[tuple[str, ...]] = ()
    by_name: ClassVar[bool] = False
    spawns: ClassVar[bool] = False
    Input: type[In]
    Output: type[Out]

    def __init__(self) -> None:
        self._spec = ToolSpec(
            name=self.name,
            description=self.description,
            input_schema=flat_schema(self.Input),
            output_schema=flat_schema(self.Output),
            annotations=self.annotations,
            tainted=self.tainted,
            timeout_s=self.timeout_s,
            keywords=self.keywords,
            by_name=self.by_name,
            spawns=self.spawns,
            raises=not self.annotations.open_world,  # out there, failures come as pages and as texts
        )

    @property
    def spec(self) -> ToolSpec:
        """What is known of this tool."""
        return self._spec

    async def call(self, args: JsonObject, context: ToolContext) -> ToolResult:
        """Parse, run, render."""
        output = await self.run(self.Input.model_validate(args), context)
        return ToolResult(
            output.model_dump(mode="json"), self.text(output), self.sources(output), tainted=self.is_tainted(output)
        )

    async def reconcile(self, key: str, context: ToolContext) -> ToolResult | None:
        """Unknown, unless a tool knows better."""
        return None

    @abstractmethod
    async def run(self, args: In, context: ToolContext) -> Out:
        """The work itself."""

    def text(self, output: Out) -> str:
        """The result as people and models read it; the JSON by default."""
        return output.model_dump_json(indent=None, exclude_none=True)

    def is_tainted(self, output: Out) -> bool:
        """Whether this result holds something from outside; no, unless a tool knows better."""
        return False

    def sources(self, output: Out) -> tuple[Source, ...]:
        """What the result can be cited as; nothing by default."""
        return ()


@cache
def flat_schema(model: type[BaseModel]) -> JsonObject:
    """The model's JSON schema without titles, with `$ref`s inlined: some clients lose tools over either.

    Made once a model, and shared: do not change it."""
    schema = model.model_json_schema()
    flat = _inline(schema, schema.get("$defs", {}))
    if not isinstance(flat, dict):
        raise TypeError(f"{model.__name__} has no object schema")
    flat.pop("$defs", None)
    flat.setdefault("properties", {})
    return flat


def _inline(node: JsonValue, definitions: JsonObject) -> JsonValue:
    if isinstance(node, list):
        return [_inline(item, definitions) for item in node]
    if not isinstance(node, dict):
        return node
    ref = node.get("$ref")
    if isinstance(ref, str):
        target = definitions[ref.rsplit("/", 1)[-1]]
        merged = {**target, **node} if isinstance(target, dict) else dict(node)
        merged.pop("$ref")
        return _inline(merged, definitions)
    flat: JsonObject = {}
    for key, value in node.items():
        if key == "properties" and isinstance(value, dict):  # "title" may be a property's own name
            flat[key] = {name: _inline(sub, definitions) for name, sub in value.items()}
        elif key not in ("title", "$defs"):
            flat[key] = _inline(value, definitions)
    return flat


@dataclass
class ToolRegistry:
    """The tools of this gateway by name. Injected, never global; names are unique."""

    _tools: dict[str, Tool] = field(default_factory=dict)
    _withheld: dict[str, dict[str, str]] = field(default_factory=dict)
    _specs: tuple[ToolSpec, ...] | None = None
    """The specs in order of name, until something is registered."""
    version: int = 0
    """Rises with every change."""

    def register(self, *tools: Tool) -> None:
        """Add tools; ValueError on a bad or taken name."""
        for tool in tools:
            name = tool.spec.name
            if not _NAME.match(name):
                raise ValueError(f"tool name {name!r} must match {_NAME.pattern}")
            if name in self._tools:
                raise ValueError(f"a tool named {name!r} is registered already")
            self._tools[name] = tool
        self._changed()

    def replace(self, origin: str, tools: Iterable[Tool]) -> None:
        """Put `tools` in place of all tools of this origin. Names that others have taken are left to them."""
        self._withheld.pop(origin, None)
        self._tools = {name: tool for name, tool in self._tools.items() if tool.spec.origin != origin}
        for tool in tools:
            self._tools.setdefault(tool.spec.name, tool)
        self._changed()

    def withhold(self, origin: str, reasons: Mapping[str, str]) -> None:
        """Refuse these names, which are not registered, with the reason of each; until the next `replace`."""
        self._withheld[origin] = dict(reasons)

    def withheld(self, name: str) -> str | None:
        """Why the tool of this name may not be used; None where there is no such reason."""
        if name in self._tools:
            return None
        return next((reasons[name] for reasons in self._withheld.values() if name in reasons), None)

    def get(self, name: str) -> Tool:
        """The tool of this name; `ToolUnknownError` when there is none, `ToolQuarantinedError` when it is withheld."""
        try:
            return self._tools[name]
        except KeyError:
            reason = self.withheld(name)
            if reason is not None:
                raise ToolQuarantinedError(reason, agent_id=name) from None
            known = ", ".join(sorted(self._tools)) or "none"
            raise ToolUnknownError(f"there is no tool named {name!r}; known: {known}", agent_id=name) from None

    def __contains__(self, name: object) -> bool:
        return name in self._tools

    def __iter__(self) -> Iterator[Tool]:
        return iter(sorted(self._tools.values(), key=lambda tool: tool.spec.name))

    def specs(self, allowed: Iterable[str] | None = None) -> list[ToolSpec]:
        """The specs in order of name, only those `allowed` when given."""
        if self._specs is None:
            self._specs = tuple(tool.spec for tool in self)
        names = None if allowed is None else set(allowed)
        return [spec for spec in self._specs if names is None or spec.name in names]

    def _changed(self) -> None:
        self._specs = None
        self.version += 1
