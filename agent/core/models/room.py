"""Where it is asked: a room, with what it allows, what it guards against and what a run there may spend."""

from typing import Literal

from pydantic import Field

from agent.core.models.words import LOCAL_OWNER, ApprovalPolicy, Frozen, JudgePolicy, RetrievalMode, Tier

GuardAction = Literal["off", "flag", "redact", "block"]


class Budgets(Frozen):
    """The limits of one run. Retries are per step; everything else is per run."""

    max_steps: int = Field(default=12, ge=1, le=25)
    max_parallel: int = Field(default=8, ge=1, le=64)
    max_retries: int = Field(default=1, ge=0, le=1)
    max_replans: int = Field(default=3, ge=0, le=3)
    max_model_calls: int = Field(default=60, ge=1)
    max_tokens: int = Field(default=400_000, ge=1, description="prompt and completion tokens together")
    max_cost_usd: float | None = Field(default=None, ge=0)
    max_seconds: float = Field(default=900, gt=0)
    max_subagents: int = Field(default=8, ge=0, le=64)


class RoomGuards(Frozen):
    """What a room does about what is found in a request: `off` does not look, `flag` reports it, `redact` takes it out,
    `block` takes nothing of the request. Secrets of this gateway's own settings are taken out whatever is said here."""

    injection: GuardAction = "off"
    pii: GuardAction = "off"
    secret: GuardAction = Field(default="redact", description="a caller's own keys and passwords")
    hate_speech: GuardAction = "off"
    malicious_code: GuardAction = "off"


class OutputGuards(Frozen):
    """What a room does about what is found in its answers. Secrets of this gateway's own settings are taken out
    whatever is said here; attacks are no matter of answers, which may quote one."""

    pii: GuardAction = "off"
    secret: GuardAction = Field(default="redact", description="keys and tokens of well-known forms")
    hate_speech: GuardAction = "flag"
    malicious_code: GuardAction = "flag"

    @property
    def whole(self) -> bool:
        """Whether an answer must be complete before any of it may be shown. Keys are taken out of streams too."""
        content = {self.pii, self.hate_speech, self.malicious_code}
        return "redact" in content or self.blocks

    @property
    def blocks(self) -> bool:
        """Whether an answer may be refused as a whole."""
        return "block" in {self.pii, self.secret, self.hate_speech, self.malicious_code}


class Room(Frozen):
    """An assistant's profile. Each room is one model id in `/v1/models`."""

    id: str = Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$")
    name: str = ""
    description: str = ""
    system_prompt: str = Field(default="", description="instructions of the operator, trusted")
    persona: str = Field(default="", description="how answers sound; makes every answer pass a completion")
    fast_model: str | None = Field(default=None, description="overrides AGENT_MODEL_FAST in this room")
    high_model: str | None = Field(default=None, description="overrides AGENT_MODEL_HIGH in this room")
    answer_tier: Tier = "fast"
    planning: bool = Field(default=True, description="false: a plain model, no plan, client tools passed through")
    skill: str | None = Field(default=None, description="the skill that carries out every request of this room")
    requires_model: bool = Field(
        default=False, description="a skill here fails with the model's error; true keeps rules from taking over"
    )
    skills: tuple[str, ...] | None = Field(default=None, description="allowed skills; null allows all")
    tools: tuple[str, ...] | None = Field(default=None, description="allowed tools; null allows all")
    supervision: JudgePolicy = "auto"
    approval: ApprovalPolicy = Field(
        default="never",
        description="what a person must allow first: nothing, what changes something, or every plan. A change with "
        "arguments that come from outside is always asked for",
    )
    memory: bool = Field(default=True, description="recall what is remembered for the user, and remember exchanges")
    guard_input: RoomGuards = Field(
        default=RoomGuards(injection="flag"), description="what is done about a prompt, by what is found in it"
    )
    guard_output: OutputGuards = Field(
        default=OutputGuards(), description="what is done about an answer, by what is found in it"
    )
    knowledge: bool = Field(default=False, description="every question is looked up in the documents, and only there")
    retrieval_mode: RetrievalMode | None = Field(
        default=None, description="how documents are searched here; null: AGENT_RETRIEVAL_MODE"
    )
    vision: bool = False
    citations: bool = False
    gates: tuple[str, ...] = Field(
        default=(), description="verifier gates every run here must pass, or it fails; see agent/execution/gates"
    )
    required_tools: tuple[str, ...] = Field(default=(), description="tools every plan here calls; added where missing")
    incident_tools: tuple[str, ...] = Field(
        default=(), description="tools required besides where a request speaks of an incident, in their order"
    )
    subagent_depth: int = Field(
        default=1, ge=0, le=3, description="how deep sub-agents may start sub-agents; 0 allows none at all"
    )
    owner: str = LOCAL_OWNER
    budgets: Budgets = Budgets()
