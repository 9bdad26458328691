"""`ToolSpec`: a tool as planners, models and doors see it, its effects and its place in plans."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from agent.core.models import LOCAL_OWNER, ArgumentRole, Effect, JsonObject, Room
from agent.tools.flat_schema import build_flat_schema

UserSource = Literal["files", "collections", "memories", "runs"]
"""What the user owns and tools read; `runs` are the earlier ones of the conversation."""


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


NO_ROLES: Final[Mapping[str, ArgumentRole]] = MappingProxyType({})
READ_ONLY = ToolAnnotations(read_only=True, destructive=False, idempotent=True, open_world=False)
READ_ONLY_WEB = ToolAnnotations(read_only=True, destructive=False, idempotent=True, open_world=True)


def declare_roles(**roles: ArgumentRole) -> Mapping[str, ArgumentRole]:
    """The roles of a tool's arguments, for the class of the tool."""
    return MappingProxyType(roles)


@dataclass(frozen=True, slots=True)
class PlanHints:
    """How the engine uses a tool in plans, and how it shows its result without a model."""

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
    source: UserSource | None = None
    """Which of the user's own sources it reads."""
    stands_for_steps: bool = False
    """Whether the feature that offers it puts steps of its own in its place: a planner may choose it, nothing calls
    it."""
    looks_first_with: str = ""
    """A tool that shows what this one works on, from inputs of the same names. In rounds it is called before."""
    is_for_whole_plans: bool = False
    """Whether only a plan that is made ahead needs it: in rounds, the planner reads the results itself."""
    accepted_wishes: str = ""
    """What a reply to the question about its call may change besides yes and no, where no model reads the reply: `use
    the name NAME`."""
    is_search: bool = False
    """Whether its empty result says only that its source holds nothing. An empty list of tickets is an answer."""


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as planners, models and doors see it. Schemas are JSON Schema 2020-12."""

    name: str
    description: str
    input_schema: JsonObject
    output: type[BaseModel] | JsonObject | None
    """The model or the schema of results, if there is one."""
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
    is_output_binding: bool = True
    """Whether a result that violates the schema of results fails the call. Not of foreign tools: the call has had its
    effect, and what they promise is often wrong."""
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
    argument_roles: Mapping[str, ArgumentRole] = field(default_factory=dict)
    """What the arguments say, by name; see `ArgumentRole`. An argument without a role is `other`."""
    is_open_world: bool = False
    """Whether its arguments reach a server outside, as its author or the operator says. A missing hint says nothing."""
    is_trusted_server: bool = False
    """Whether the operator trusts the server that the arguments go to."""
    reads_public_pages: bool = False
    """Whether its untrusted results are public pages: they make nothing in the run private."""
    reads: tuple[UserSource, ...] = ()
    """What of the user's own its results are made of, besides `hints.source`."""
    room: str | None = None
    """The only room that may use it, such as the one whose MCP server offers it; None: every room."""

    @property
    def output_schema(self) -> JsonObject | None:
        """The schema of results. Made of the model when it is first read: no planner reads it, and few turns call
        more than some tools.
        """
        return build_flat_schema(self.output) if isinstance(self.output, type) else self.output

    @property
    def effect(self) -> Effect:
        """The effect class."""
        return self.annotations.effect

    @property
    def where_args(self) -> tuple[str, ...]:
        """The arguments that say where the call goes: addresses that models may compose. See `agent.policy.egress`."""
        return tuple(name for name, role in self.argument_roles.items() if role == "where")

    def get_role(self, argument: str) -> ArgumentRole:
        """The role of an argument."""
        return self.argument_roles.get(argument, "other")

    @property
    def read_from(self) -> tuple[str, ...]:
        """What results are made of: the user's own sources; `arguments` if of nothing else, also through calls that
        are recorded themselves; () if they may be of anything.
        """
        own = self.reads if self.hints.source is None else (self.hints.source, *self.reads)
        is_closed = self.origin == "builtin" and not self.tainted and not self.annotations.open_world
        return own or (("arguments",) if is_closed or self.uses_subagents else ())

    @property
    def reads_over_network(self) -> bool:
        """Whether a call only reads, but its arguments leave the gateway: words may leave with them."""
        return self.effect == "read" and (self.is_open_world or bool(self.where_args))

    def is_allowed_in(self, room: Room) -> bool:
        """Whether the room allows the tool: its own servers' tools, and others if it names them or none."""
        if self.room is not None:
            return self.room == room.id
        return room.tools is None or self.name in room.tools

    def is_visible_to(self, owner: str) -> bool:
        """Whether `owner` may use it."""
        return self.owner in (LOCAL_OWNER, owner)

    def to_openai(self) -> JsonObject:
        """Converts the spec to a function of an OpenAI-style `tools` list."""
        return {
            "type": "function",
            "function": {"name": self.name, "description": self.description, "parameters": self.input_schema},
        }
