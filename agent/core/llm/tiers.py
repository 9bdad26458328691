"""`ModelTiers`: which client and which model name stand behind `fast` and `high`."""

from dataclasses import dataclass, field

from agent.core.errors import ModelNotConfiguredError
from agent.core.llm.port import ModelClient
from agent.core.llm.prices import Prices
from agent.core.models import Room, Tier


@dataclass(frozen=True, slots=True)
class ModelTiers:
    """The models of this gateway. `client` is None in rules mode."""

    client: ModelClient | None = None
    fast: str | None = None
    high: str | None = None
    timeout_s: float = 60.0
    max_tokens: int = 4096
    prices: Prices = field(default_factory=Prices)

    @property
    def configured(self) -> bool:
        """Whether any model can be asked."""
        return self.client is not None and self.fast is not None

    def name(self, tier: Tier, room: Room) -> str:
        """The model name of a tier in a room; `ModelNotConfiguredError` when there is none."""
        fast = room.fast_model or self.fast
        name = (room.high_model or self.high or fast) if tier == "high" else fast
        if name is None or self.client is None:
            raise ModelNotConfiguredError(
                "no model is configured; set AGENT_LLM_BASE_URL and AGENT_MODEL_FAST (or a LiteLLM model name)",
                agent_id="models",
            )
        return name

    def require(self) -> ModelClient:
        """The client; `ModelNotConfiguredError` in rules mode."""
        if self.client is None:
            raise ModelNotConfiguredError("no model is configured; set AGENT_MODEL_FAST", agent_id="models")
        return self.client
