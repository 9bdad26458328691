"""`ModelTiers`: the client and model names behind the tiers `fast` and `high`, where they come from, their `Prices`."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Final, Literal, Protocol

from agent.core.errors import ModelNotConfiguredError
from agent.core.models import JsonObject, Room, Tier, Usage
from agent.llm.port import ModelClient
from agent.llm.profile import MeasuredModel
from agent.llm.saved_models import Role
from agent.llm.streamed_reply import ThoughtMemory

ANY_MODEL = "*"
"""The name in the list that stands for every model without a price of its own."""
PER = 1_000_000
"""How many tokens a price is for, as providers write it."""


@dataclass(frozen=True, slots=True)
class Prices:
    """USD per million tokens by model name: for the prompt and for the completion."""

    of: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def add_cost(self, model: str, usage: Usage) -> Usage:
        """The usage with its cost, where it has none yet and the list knows the model."""
        price = self.of.get(model) or self.of.get(model.rpartition("@")[0]) or self.of.get(ANY_MODEL)
        if price is None or usage.cost_usd is not None:
            return usage
        cost = (usage.prompt_tokens * price[0] + usage.completion_tokens * price[1]) / PER
        return usage.model_copy(update={"cost_usd": cost})


DEFAULT_ENDPOINT: Final = "default"


@dataclass(frozen=True, slots=True)
class ConfiguredModel:
    """A model that was configured: by the environment, or by the operator's saved list."""

    name: str
    """Name of the endpoint; `default` for the one of AGENT_LLM_BASE_URL."""
    model: str
    base_url: str | None
    """None for a provider that LiteLLM calls."""
    roles: tuple[Role, ...]
    source: Literal["environment", "file"]
    has_key: bool = False
    product: str = ""
    vision: bool = False
    """Whether it is known to see pictures."""
    file: str | None = None
    """The GGUF file that the gateway serves itself."""
    extra_body: JsonObject = field(default_factory=dict)
    """Further fields of every request."""

    @property
    def upstream(self) -> str:
        """The model with its endpoint, as requests name it; the endpoint of AGENT_LLM_BASE_URL is left out."""
        is_only = self.source == "environment" and self.name == DEFAULT_ENDPOINT
        return self.model if is_only else f"{self.model}@{self.name}"

    @property
    def place(self) -> str | None:
        """Where the model is: the address of its endpoint, or its file; None for a provider that LiteLLM calls."""
        return self.base_url or (f"file:{self.file}" if self.file is not None else None)


class ServedModel(ModelClient, Protocol):
    """A model that the gateway serves itself from a file."""

    def start(self) -> None:
        """Begins to load the model. Does not wait."""
        ...

    def describe(self) -> str:
        """Its state for people: stopped, loading with how much is loaded, ready, or failed and why."""
        ...


@dataclass(slots=True)
class ModelTiers:
    """The models of this gateway. `client` is None in rules mode.

    There is one object for the life of a gateway: `replace` changes it when the operator chooses other models.
    """

    client: ModelClient | None = None
    fast: str | None = None
    high: str | None = None
    timeout_s: float = 60.0
    max_tokens: int | None = None
    """The longest reply asked of a model; None asks for no limit."""
    prices: Prices = field(default_factory=Prices)
    configured: tuple[ConfiguredModel, ...] = ()
    """Every configured model, in the order in which they are asked."""
    engines: Mapping[str, ServedModel] = field(default_factory=dict)
    """The models of files, by their paths."""
    endpoint_clients: tuple[ModelClient, ...] = ()
    """The clients of the saved endpoints, without those of files."""
    keys: tuple[str, ...] = field(default=(), repr=False)
    """The endpoints' keys that no setting holds. None of them may appear in a prompt, an answer or a log."""
    measured: MeasuredModel | None = None
    """The measured profile of the fast model; None if it was not measured."""
    thoughts: ThoughtMemory = field(default_factory=ThoughtMemory)
    """How the models begin their thoughts."""

    def replace(self, other: "ModelTiers") -> None:
        """Takes over everything of `other`. Calls in progress go on with the client that they have."""
        for one in fields(self):
            setattr(self, one.name, getattr(other, one.name))

    @property
    def is_configured(self) -> bool:
        """Whether any model can be asked."""
        return self.client is not None and self.fast is not None

    @property
    def fast_model(self) -> ConfiguredModel | None:
        """The model that is asked first; None in rules mode."""
        return next((one for one in self.configured if "fast" in one.roles), next(iter(self.configured), None))

    def list_upstream_names(self) -> tuple[str, ...]:
        """Lists the names of the configured models, each once, in the order in which they are asked."""
        return tuple(dict.fromkeys(one.upstream for one in self.configured))

    def find_measured(self, room: Room) -> MeasuredModel | None:
        """Finds what was measured of the model that is asked first in a room; None for a model of the room's own."""
        if not room.fast_model:
            return self.measured
        first = next(iter(split_models(room.fast_model)), None)
        fast = self.fast_model
        is_other = first is not None and (fast is None or first != fast.upstream)
        return None if is_other else self.measured

    def get_model_name(self, tier: Tier, room: Room) -> str:
        """The model of a tier in a room that is asked first. Raises `ModelNotConfiguredError`."""
        return self.list_upstreams(tier, room)[0]

    def sees_pictures(self, room: Room) -> bool:
        """Whether pictures may be sent to a room: as it says itself, else if each model that may answer there first is
        known to see them.
        """
        if room.vision is not None or not self.is_configured:
            return bool(room.vision)
        plans_high = room.planning and room.answer_tier != "high"
        tiers: tuple[Tier, ...] = ("fast", "high") if plans_high else (room.answer_tier,)
        seeing = {one.upstream for one in self.configured if one.vision}
        return {self.get_model_name(tier, room) for tier in tiers} <= seeing

    def list_upstreams(self, tier: Tier, room: Room) -> tuple[str, ...]:
        """The models of a tier in a room, in the order in which they are asked.

        Raises `ModelNotConfiguredError` if there is none.
        """
        fast = room.fast_model or self.fast
        name = (room.high_model or self.high or fast) if tier == "high" else fast
        upstreams = split_models(name) if name is not None else ()
        if not upstreams or self.client is None:
            raise ModelNotConfiguredError(
                "no model is configured; choose one with `stepgate models use`, or set AGENT_LLM_BASE_URL",
                agent_id="models",
            )
        return upstreams

    def require(self) -> ModelClient:
        """The client; `ModelNotConfiguredError` in rules mode."""
        if self.client is None:
            raise ModelNotConfiguredError(
                "no model is configured; choose one with `stepgate models use`", agent_id="models"
            )
        return self.client


def split_models(text: str) -> tuple[str, ...]:
    """The models of a comma-separated list, in the order in which they are tried."""
    return tuple(part.strip() for part in text.split(",") if part.strip())
