"""`ModelTiers`: the client and model names behind the tiers `fast` and `high`."""

from dataclasses import dataclass, field

from agent.core.errors import ModelNotConfiguredError
from agent.core.model_endpoints import split_models
from agent.core.models import Room, Tier
from agent.llm.port import ModelClient
from agent.llm.prices import Prices


@dataclass(frozen=True, slots=True)
class ModelTiers:
    """The models of this gateway. `client` is None in rules mode."""

    client: ModelClient | None = None
    fast: str | None = None
    high: str | None = None
    timeout_s: float = 60.0
    max_tokens: int | None = None
    """The longest reply asked of a model; None asks for no limit."""
    prices: Prices = field(default_factory=Prices)

    @property
    def is_configured(self) -> bool:
        """Whether any model can be asked."""
        return self.client is not None and self.fast is not None

    def get_model_name(self, tier: Tier, room: Room) -> str:
        """Returns the model of a tier in a room that is asked first. Raises `ModelNotConfiguredError`."""
        return self.list_upstreams(tier, room)[0]

    def list_upstreams(self, tier: Tier, room: Room) -> tuple[str, ...]:
        """Returns the models of a tier in a room, in the order in which they are asked.

        Raises `ModelNotConfiguredError` if there is none.
        """
        fast = room.fast_model or self.fast
        name = (room.high_model or self.high or fast) if tier == "high" else fast
        upstreams = split_models(name) if name is not None else ()
        if not upstreams or self.client is None:
            raise ModelNotConfiguredError(
                "no model is configured; set AGENT_LLM_BASE_URL and AGENT_MODEL_FAST (or a LiteLLM model name)",
                agent_id="models",
            )
        return upstreams

    def require(self) -> ModelClient:
        """The client; `ModelNotConfiguredError` in rules mode."""
        if self.client is None:
            raise ModelNotConfiguredError("no model is configured; set AGENT_MODEL_FAST", agent_id="models")
        return self.client
