"""`ToolSpec`: a tool as planners, models and doors see it, its effects and its place in plans."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from agent.core.json_schema import get_properties, iter_violations, list_required
from agent.core.models import LOCAL_OWNER, Action, ArgumentRole, Effect, JsonObject, Room
from agent.tools.commands import ToolCommands
from agent.tools.flat_schema import build_flat_schema

UserSource = Literal["files", "collections", "memories", "runs"]
"""What the user owns and tools read; `runs` are the earlier ones of the conversation."""
ConversationUse = Literal["none", "starts", "continues"]
"""Whether a tool works on what a feature's conversation holds: it may be the first call of one, or needs what earlier
calls have left there."""


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
    file_input: str = ""
    """The input that names the file, or the files, of which it shows the content."""
    file_types: tuple[str, ...] = ()
    """Types of files (`.csv`) that it describes, however large they are. In rounds it is called before a tool that
    would read such a file line by line."""
    computes: str = ""
    """The input that holds an expression of figures. In rounds, one that names a figure waits for the other calls."""
    is_for_whole_plans: bool = False
    """Whether only a plan that is made ahead needs it: in rounds, the planner reads the results itself."""
    is_called_by_name: bool = False
    """Whether it works on the gateway's own things, which people call by their names. In rounds, a model that has to be
    questioned may choose it only where a word of the request fits it."""
    accepted_wishes: str = ""
    """What a reply to the question about its call may change besides yes and no, where no model reads the reply: `use
    the name NAME`."""
    is_always_shown: bool = False
    """Whether people must see its text as it is: what an answer leaves out of it is added to the answer."""
    commands: ToolCommands | None = None
    """The exact commands by which it is called without a model."""
    is_memory: bool = False
    """Whether it saves or recalls what the user asked to be remembered. Nobody has to approve that."""
    stages_draft: bool = False
    """Whether all that it changes is a draft, which nothing uses before a person has allowed it."""
    user_inputs: tuple[str, ...] = ()
    """Inputs that only the user knows, although the schema has a default: a small model would make them up."""
    tells_now: bool = False
    """Whether its result is the moment of the call. A day that only this result states is one that nobody named."""
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
    conversation: ConversationUse = "none"
    """Outside of chats, such as over MCP, the caller names the conversation; see `ConversationUse`."""
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
    """The roles of the arguments by name; see `ArgumentRole`. An argument without a role is `other`."""
    is_open_world: bool = False
    """Whether its arguments reach a server outside, as its author or the operator says. A missing hint says nothing."""
    is_trusted_server: bool = False
    """Whether the operator trusts the server that the arguments go to."""
    read_claim: str = ""
    """The foreign server that says, without being trusted, that the tool only reads. It is handled as a change, but a
    person is asked about it as a read, once for the server, and a call whose answer was lost may be made once more."""
    reads_public_pages: bool = False
    """Whether its untrusted results are public pages: they make nothing in the run private."""
    reads: tuple[UserSource, ...] = ()
    """The user's own sources of its results, besides `hints.source`."""
    room_name: str = ""
    """Its name inside of `room`: `server__tool`, with the server's name as the room's file writes it."""
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
    def leaves_outcome_open(self) -> bool:
        """Whether a call whose answer was lost may have changed something that a repetition would change twice."""
        return self.effect == "effect" and not self.read_claim

    @property
    def has_side_effect(self) -> bool:
        """Whether a call changes something outside the agent. The user's own memory does not count, and neither do
        drafts."""
        return self.effect != "read" and not self.is_approval_exempt

    @property
    def is_approval_exempt(self) -> bool:
        """Whether its effect needs nobody's approval. Tools of foreign servers never say so."""
        return self.hints.is_memory or self.hints.stages_draft

    @property
    def step_action(self) -> Action:
        """The action of a step that calls it."""
        return "memory" if self.hints.is_memory else "tool"

    @property
    def where_args(self) -> tuple[str, ...]:
        """The arguments that say where the call goes: addresses that models may compose (see `guardrails.egress`)."""
        return tuple(name for name, role in self.argument_roles.items() if role == "where")

    def get_role(self, argument: str) -> ArgumentRole:
        """The role of an argument."""
        return self.argument_roles.get(argument, "other")

    @property
    def properties(self) -> JsonObject:
        """The schemas of the arguments by name. What parts, forms and references of the input schema declare is in
        `agent.tools.declared_arguments`."""
        return get_properties(self.input_schema)

    @property
    def required(self) -> list[str]:
        """The names of the arguments that every call needs."""
        return list_required(self.input_schema)

    def get_property(self, argument: str) -> JsonObject:
        """The schema of an argument; empty if the tool declares none."""
        schema = self.properties.get(argument)
        return schema if isinstance(schema, dict) else {}

    def get_label(self, argument: str) -> str:
        """The name of an argument, and behind a line break its description."""
        description = self.get_property(argument).get("description")
        return f"{argument}\n{description}" if isinstance(description, str) else argument

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


def drop_unset_inputs(spec: ToolSpec, inputs: JsonObject) -> JsonObject:
    """The inputs without optional ones that mean "not given"; never without a required one.

    In our own tools an empty text and null mean that, unless the tool changes something: then an empty text may clear a
    value. Of a foreign tool that only reads, an empty value or 0 is dropped if the tool's own schema refuses it.
    """
    declared, needed = spec.properties, spec.required
    unset = [
        name
        for name, value in inputs.items()
        if name not in needed and isinstance(declared.get(name), dict) and _is_unset(spec, declared[name], value)
    ]
    return {name: value for name, value in inputs.items() if name not in unset} if unset else inputs


def _is_unset(spec: ToolSpec, schema: JsonValue, value: JsonValue) -> bool:
    if isinstance(value, bool) or value not in (None, "", 0, [], {}):
        return False
    if spec.origin == "builtin" and value != 0 and (value is None or spec.effect == "read"):
        return True
    if spec.effect != "read" or not isinstance(schema, dict):
        return False
    # A reference into the definitions of the whole schema cannot be compared alone.
    return "$ref" not in str(schema) and next(iter_violations(schema, value), None) is not None


def declares_all(schema: JsonObject, names: Collection[str]) -> bool:
    """Whether a schema names all of these arguments at its top, as it does for nearly every call. What parts, forms and
    references declare is in `agent.tools.declared_arguments`."""
    properties = schema.get("properties")
    return isinstance(properties, dict) and all(name in properties for name in names)


def limit_numbers(spec: ToolSpec, inputs: JsonObject) -> JsonObject:
    """The inputs of a tool that only reads, with optional numbers not above the largest that it takes: a model that
    asks for a million rows means all that it can have."""
    declared, needed = spec.properties, spec.required
    largest = {
        name: limit
        for name, value in inputs.items()
        if spec.effect == "read" and name not in needed and isinstance(value, int | float)
        if isinstance(schema := declared.get(name), dict) and isinstance(limit := schema.get("maximum"), int | float)
        if value > limit
    }
    return {**inputs, **largest} if largest else inputs
