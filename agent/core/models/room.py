"""Rooms: what an assistant may use, what it guards against, and what one of its runs may spend."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field

from agent.core.models.tool_overrides import ToolOverrides
from agent.core.models.words import (
    LOCAL_OWNER,
    ApprovalPolicy,
    EffectPolicy,
    FrozenModel,
    JudgePolicy,
    RetrievalMode,
    Tier,
)

GuardAction = Literal["off", "flag", "redact", "block"]
"""`off`: not searched. `flag`: reported, text unchanged. `redact`: removed. `block`: the whole text is stopped."""
AnswerPiiAction = Literal["auto", "off", "flag", "redact_answer", "redact", "block"]
"""`redact_answer` removes others' personal data from what a model writes as an answer; `redact` also from results."""


MODEL_MARK: Final = "@"
"""Separates a room's id from the model that a caller chose for it. A room's id has none; a model's name may."""
LARGEST_PLAN = 32
"""The most steps of a plan that a room may allow."""


class Budgets(FrozenModel):
    """The limits of one run. Retries count per step, everything else per run."""

    max_steps: int = Field(default=12, ge=1, le=LARGEST_PLAN)
    max_parallel: int = Field(default=8, ge=1, le=64)
    max_retries: int = Field(default=1, ge=0, le=1)
    max_replans: int = Field(default=3, ge=0, le=3)
    max_rounds: int = Field(
        default=8, ge=1, le=32, description="rounds of calls of a planner that sees the results before it plans on"
    )
    max_model_calls: int = Field(default=60, ge=1)
    max_tokens: int = Field(default=400_000, ge=1, description="prompt and completion tokens together")
    max_cost_usd: float | None = Field(default=None, ge=0)
    max_seconds: float = Field(default=900, gt=0)
    max_subagents: int = Field(default=8, ge=0, le=64)


class RoomGuards(FrozenModel):
    """What a room does with findings in a request: `off` does not look, `flag` reports, `redact` removes the finding,
    `block` refuses the request. Secrets from this gateway's own settings are always removed.
    """

    injection: GuardAction = "off"
    pii: GuardAction = "off"
    secret: GuardAction = Field(default="redact", description="a caller's own keys and passwords")
    hate_speech: GuardAction = "off"
    malicious_code: GuardAction = "off"


class OutputGuards(FrozenModel):
    """What a room does with findings in its answers. Secrets from this gateway's own settings are always removed.
    Injection is not checked: an answer may quote an attack.

    `pii` is personal data of others: what the caller wrote, what is remembered for them, and what a trusted tool
    returned is theirs. With `redact_answer` it is removed from the answer, also as it streams; steps, results and the
    quotes of citations keep it. With `redact` it is removed from these too, and the answer is shown as a whole. `auto`
    is `off` in a run that read only what nobody but its caller reads, and `redact_answer` in any other.
    """

    pii: AnswerPiiAction = "off"
    secret: GuardAction = Field(default="redact", description="keys and tokens of well-known forms")
    hate_speech: GuardAction = "flag"
    malicious_code: GuardAction = "flag"

    @property
    def requires_whole_answer(self) -> bool:
        """Whether an answer must be complete before any of it is shown. Secrets are removed from streams too."""
        content = {self.pii, self.hate_speech, self.malicious_code}
        return "redact" in content or self.can_block

    @property
    def redacts_secrets(self) -> bool:
        """Whether the room keeps credentials out of its answers; this gateway's own never leave."""
        return self.secret in ("redact", "block")

    @property
    def can_block(self) -> bool:
        """Whether a complete answer may be refused."""
        return "block" in {self.pii, self.secret, self.hate_speech, self.malicious_code}


class RoomServer(FrozenModel):
    """An MCP server of a room's own: an address, or a command. It names secrets and holds none."""

    url: str = Field(default="", description="its address; http:// or https://")
    transport: Literal["http", "sse"] = Field(default="http", description="the transport of its address")
    command: str = Field(default="", description="the program to start instead; in shared rooms only")
    args: tuple[str, ...] = ()
    env: dict[str, str] = Field(default={}, description="environment of the program; no secrets")
    secret_env: dict[str, str] = Field(default={}, description="further environment: the name of a bearer credential")
    credential: str | None = Field(default=None, description="the name of a bearer credential, sent to the address")
    timeout: float = Field(default=60, gt=0, le=3600, description="time limit of a call in seconds")
    allow: tuple[str, ...] | None = Field(default=None, description="the tools that are used; null: all")
    deny: tuple[str, ...] = Field(default=(), description="tools that are not used")
    approve: bool = Field(default=False, description="whether every call needs a person's approval")
    tools: ToolOverrides = Field(
        default=ToolOverrides(), description="what else to change about its tools, as `tools` in mcp_servers.json"
    )

    @property
    def tool_overrides(self) -> ToolOverrides:
        """What is changed about its tools, with `allow`, `deny` and `approve` of the entry itself."""
        return self.tools.model_copy(
            update={
                "allow": self.tools.allow if self.allow is None else self.allow,
                "deny": (*self.deny, *self.tools.deny),
                "approve": self.approve or self.tools.approve,
            }
        )

    def list_credentials(self) -> tuple[str, ...]:
        """The names of the credentials that it uses."""
        return (*((self.credential,) if self.credential is not None else ()), *self.secret_env.values())


def read_tool_names(given: Any) -> Any:
    """The names of a list of tools, each of them a name or `{tool_name: NAME}`."""
    if not isinstance(given, list | tuple):
        return given
    return [one["tool_name"] if isinstance(one, dict) and one.keys() == {"tool_name"} else one for one in given]


class Room(FrozenModel):
    """An assistant's profile. Each room is one model id in `/v1/models`."""

    id: str = Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$")
    name: str = ""
    description: str = ""
    system_prompt: str = Field(default="", description="instructions of the operator, trusted")
    persona: str = Field(default="", description="the style of answers; every answer then passes a completion")
    fast_model: str | None = Field(default=None, description="overrides AGENT_MODEL_FAST in this room")
    high_model: str | None = Field(default=None, description="overrides AGENT_MODEL_HIGH in this room")
    models: tuple[str, ...] | None = Field(
        default=None,
        description="configured models that a caller may choose here as `room@model`; null: all of them, none where "
        "the room names its own; empty: none",
    )
    answer_tier: Tier = "fast"
    planning: bool = Field(default=True, description="false: a plain model, no plan, client tools passed through")
    client_tools: Literal["offer", "ignore"] = Field(
        default="ignore",
        description="the client's own tools in a room that plans: `offer` lets the planner use them, and the client "
        "runs them; `ignore` says that they were ignored",
    )
    routing: Literal["planner", "intents"] = Field(
        default="planner",
        description="`intents`: a router classifies each request, and a sub-agent handles it. The planner takes over "
        "where the router fails",
    )
    skill: str | None = Field(default=None, description="the skill that executes every request of this room")
    requires_model: bool = Field(
        default=False,
        description="true: without a model a skill fails with the model's error; false: the rules take over",
    )
    skills: tuple[str, ...] | None = Field(default=None, description="allowed skills; null allows all")
    tools: Annotated[tuple[str, ...] | None, BeforeValidator(read_tool_names)] = Field(
        default=None, description="allowed tools, each a name or `{tool_name: NAME}`; null allows all"
    )
    mcp_servers: dict[str, RoomServer] = Field(
        default={}, description="MCP servers of this room's own, by name; their tools are usable here only"
    )
    collections: tuple[str, ...] | None = Field(
        default=None, description="the collections of documents that are read here; null: all of the caller"
    )
    supervision: JudgePolicy = "auto"
    approval: ApprovalPolicy = Field(
        default="never",
        description="what a person must allow first: nothing, what changes something, or every plan. A change with "
        "arguments that come from outside is always asked for",
    )
    effects: EffectPolicy = Field(
        default="ask_any",
        description="which values from outside a person must approve in a change: any, or those that say where it goes "
        "or how much, or whose role is unknown; content and ids of the user's own things then need no approval",
    )
    memory: bool = Field(default=True, description="recall what is remembered for the user, and remember exchanges")
    guard_input: RoomGuards = Field(
        default=RoomGuards(injection="flag"),
        description="what to do about findings in a prompt, by kind: off | flag | redact | block",
    )
    guard_output: OutputGuards = Field(
        default=OutputGuards(),
        description="what to do about findings in an answer, by kind: off | flag | redact | block",
    )
    knowledge: bool = Field(
        default=False, description="every question is answered from the documents, and only from them"
    )
    retrieval_mode: RetrievalMode | None = Field(
        default=None, description="how documents are searched here; null: AGENT_RETRIEVAL_MODE"
    )
    vision: bool | None = Field(
        default=None, description="whether pictures are sent to the model; null: if its model is known to accept them"
    )
    citations: bool = False
    gates: tuple[str, ...] = Field(
        default=(), description="gates that every run here must pass, or it fails; see agent/execution/gates"
    )
    required_tools: tuple[str, ...] = Field(
        default=(), description="tools that every plan here calls; added if missing"
    )
    incident_tools: tuple[str, ...] = Field(
        default=(), description="further tools required for a request about an incident, in order"
    )
    topic_tools: dict[str, tuple[str, ...]] = Field(
        default={}, description="further tools required for a request with a topic, by topic, in order"
    )
    subagent_depth: int = Field(
        default=1, ge=0, le=3, description="how deep sub-agents may start sub-agents; 0 allows no sub-agents"
    )
    owner: str = Field(default=LOCAL_OWNER, description="who may use the room; the owner `local` shares it with all")
    suggestions: tuple[str, ...] = Field(default=(), description="requests that a client may offer as a start")
    from_outside: bool = Field(
        default=False,
        description="a tool has set a text of this room after external text was read: its instructions are followed, "
        "but not trusted as the operator's. Only a person can remove this mark",
    )
    budgets: Budgets = Budgets()

    @property
    def operator_texts(self) -> tuple[str, ...]:
        """The instructions of this room that are the operator's word: their values and addresses are trusted."""
        return () if self.from_outside else (self.system_prompt, self.persona)

    def list_choosable(self, configured: Iterable[str]) -> list[str]:
        """Filters the gateway's configured models by what a caller may choose in this room; keeps their order."""
        if self.models is None:
            return [] if self.fast_model or self.high_model else list(configured)
        return [one for one in configured if one in self.models]

    def is_visible_to(self, owner: str) -> bool:
        """Whether this owner may use the room."""
        return self.owner in (LOCAL_OWNER, owner)

    @property
    def offers_client_tools(self) -> bool:
        """Whether a planner may use the client's tools. Rooms with a skill or with `knowledge` make no such plan."""
        return self.client_tools == "offer" and self.planning and self.skill is None and not self.knowledge

    @property
    def tools_by_topic(self) -> dict[str, tuple[str, ...]]:
        """The further required tools by topic. `incident_tools` is the short form for the topic `incident`."""
        return {**({"incident": self.incident_tools} if self.incident_tools else {}), **self.topic_tools}

    def list_required_tools(self, topics: Collection[str]) -> tuple[str, ...]:
        """The tools that the room requires for a request with these topics, in order."""
        further = [name for topic, names in self.tools_by_topic.items() if topic in topics for name in names]
        return tuple(dict.fromkeys((*self.required_tools, *further)))


@dataclass(frozen=True, slots=True)
class RoomFilter:
    """The rooms that a part of a feature concerns, by the values of their fields: in all others, none of its code runs.

    Without choices it matches every room. `|` joins two filters."""

    choices: tuple[tuple[tuple[str, object], ...], ...] = ()

    def __or__(self, other: "RoomFilter") -> "RoomFilter":
        return RoomFilter((*self.choices, *other.choices)) if self.choices and other.choices else EVERY_ROOM

    def matches(self, room: Room) -> bool:
        """Whether a room has all values of one of the choices."""
        if not self.choices:
            return True
        return any(all(getattr(room, name) == value for name, value in choice) for choice in self.choices)


EVERY_ROOM: Final = RoomFilter()


def rooms_with(**fields: object) -> RoomFilter:
    """The rooms whose fields have these values. Raises `ValueError` for a field that rooms do not have."""
    if unknown := sorted(fields.keys() - Room.model_fields):
        raise ValueError(f"rooms have no field {', '.join(unknown)}")
    return RoomFilter((tuple(fields.items()),))
