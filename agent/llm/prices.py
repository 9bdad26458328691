"""`Prices`: the cost of model calls from the operator's price list, for endpoints that report none."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from agent.core.models import Usage

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
