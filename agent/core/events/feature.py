"""Events that features declare (`Feature.events`). An event is complete in its class: what it holds, how that is
redacted, and its line in the trace. The state of a run has the newest of each type (`RunState.feature_events`).
"""

from collections.abc import Callable
from typing import ClassVar, Self

from agent.core.events.envelope import EventBody
from agent.core.models import JsonObject


class FeatureEvent(EventBody):
    """The base class. `type` begins with the name of the feature and a dot. It never ends a run."""

    terminal: ClassVar[bool] = False

    def redact(self, redact_text: Callable[[str], str]) -> Self:
        """The event as the log may hold it: a class whose fields may hold text passes each text through `redact_text`,
        which takes out secrets, others' personal data, and links that carry away what was read. Pure."""
        return self

    def describe(self) -> tuple[str, JsonObject] | None:
        """The title and the details of its line in the trace; None for no line."""
        return None


FEATURE_EVENTS: dict[str, type[FeatureEvent]] = {}
"""The declared types of this process, by their stored type. Only `declare_event` changes it: like the classes
themselves, the types belong to the process, not to one gateway in it."""


def declare_event(kind: type[FeatureEvent]) -> None:
    """Lets logs hold events of this type."""
    FEATURE_EVENTS[kind.type] = kind


def is_declared(body: FeatureEvent) -> bool:
    """Whether a log may hold this event: it can be read back."""
    return FEATURE_EVENTS.get(body.type) is type(body)
