"""The events of the feature: what it adds to the logs of runs."""

from collections.abc import Callable
from typing import Self

from agent.core.events import FeatureEvent
from agent.core.models import JsonObject


class PoemRecalled(FeatureEvent):
    """An answer reminds of a favourite poem."""

    type = "poems.recalled"
    title: str

    def redact(self, redact_text: Callable[[str], str]) -> Self:
        """A title is a text that a person has written."""
        return self.model_copy(update={"title": redact_text(self.title)})

    def describe(self) -> tuple[str, JsonObject]:
        """Its line in the trace."""
        return "reminds of a favourite poem", {"title": self.title}


EVENTS = (PoemRecalled,)
