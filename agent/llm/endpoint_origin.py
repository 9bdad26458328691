"""`EndpointOrigin`: where an endpoint's address and key come from, so that its errors name what can be corrected."""

import re
from dataclasses import dataclass
from typing import Self

from agent.core.errors import ModelError

HIDDEN_KEY = "[removed: API_KEY]"


@dataclass(frozen=True, slots=True)
class EndpointOrigin:
    """What an operator corrects if the address or the key is wrong. Empty for an endpoint that was just typed in."""

    address: str = ""
    key: str = ""

    @classmethod
    def make_saved(cls, name: str) -> Self:
        """The origin of a model that `stepgate models use` has saved."""
        return cls(
            f"saved as {name!r}: `stepgate models list`",
            f"save {name!r} again with its key: `stepgate models use`",
        )

    def explain(self, error: ModelError) -> None:
        """Ends the message of an error with what to correct."""
        hint = {"": "", "address": self.address and f" ({self.address})", "key": self.key and f"; {self.key}"}
        error.hint = hint[error.remedy]
        _set_message(error, error.message + error.hint)


TYPED_IN = EndpointOrigin()
FROM_SETTINGS = EndpointOrigin("AGENT_LLM_BASE_URL", "check AGENT_LLM_API_KEY")
FROM_NAMED_SETTINGS = EndpointOrigin("AGENT_MODEL_ENDPOINTS", "check the key in AGENT_MODEL_ENDPOINTS")


def hide_key(error: ModelError, key: str | None) -> None:
    """Takes the key out of an error: providers repeat the one that they refuse.

    Short keys and plain words too, which the search for secrets in texts leaves alone.
    """
    if not key:
        return
    pattern = re.compile(rf"(?<![A-Za-z0-9]){re.escape(key.removeprefix('Basic '))}(?![A-Za-z0-9])")
    _set_message(error, pattern.sub(HIDDEN_KEY, error.message))
    reported = error.details.get("reported")
    if isinstance(reported, str):
        error.details["reported"] = pattern.sub(HIDDEN_KEY, reported)


def _set_message(error: ModelError, message: str) -> None:
    error.message = message
    error.args = (message,)
