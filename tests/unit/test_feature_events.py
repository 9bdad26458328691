"""Events that features declare: what is refused at the start, and what a log, a state and a trace make of them."""

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, Literal, Self

import pytest
from pydantic import JsonValue, create_model

from agent.core.errors import StoreNewerError
from agent.core.events import FEATURE_EVENTS, Event, FeatureEvent, is_declared
from agent.core.models import FrozenModel, JsonObject, Usage
from agent.core.run_reducer import fold
from agent.runs.trace_projection import build_trace
from agent.storage.event_codec import decode, encode
from gateway.feature import Feature
from gateway.feature_events import declare_events, may_hold_text
from gateway.feature_loader import FeatureError, FeatureSource, choose_features


class Sung(FeatureEvent):
    """A song with its words."""

    type = "songs.sung"
    words: str

    def redact(self, redact_text: Callable[[str], str]) -> Self:
        return self.model_copy(update={"words": redact_text(self.words)})

    def describe(self) -> tuple[str, JsonObject]:
        return "sang", {"words": self.words}


class Bare(FeatureEvent):
    """Words without a rule."""

    type = "songs.bare"
    words: str


class Ending(FeatureEvent):
    """Ends a run."""

    type = "songs.ended"
    terminal = True


class Twin(FeatureEvent):
    """Has a type of the kernel."""

    type = "answer.finished"


class Counted(FeatureEvent):
    """Holds no text, and has no line."""

    type = "songs.counted"
    number: int


class Verse(FrozenModel):
    """A part of an event."""

    line: str


SONGS = (Sung, Counted)
BARE, ENDING, TWIN, NO_EVENT, NO_TYPE = (Bare,), (Ending,), (Twin,), (Verse,), (FeatureEvent,)


@pytest.fixture(autouse=True)
def declared() -> Iterator[None]:
    """Forgets what these tests declare."""
    before = dict(FEATURE_EVENTS)
    yield
    FEATURE_EVENTS.clear()
    FEATURE_EVENTS.update(before)


def declare(name: str, choice: str = "", **further: str) -> None:
    """Declares the events of the feature `songs` that this module has under a name, and those of further features."""
    features = [Feature(name=one, events=f"{__name__}:{events}") for one, events in {"songs": name, **further}.items()]
    sources = [FeatureSource(one.name, one.name, lambda one=one: one) for one in features]  # type: ignore[misc]
    declare_events(choose_features(sources, choice))


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("BARE", r"'songs\.bare' may hold text and has no rule of redaction; define Bare\.redact"),
        ("ENDING", "cannot end a run"),
        ("TWIN", r"'kernel' and 'songs' both claim the event 'answer\.finished'"),
        ("NO_EVENT", "which is not a FeatureEvent"),
        ("NO_TYPE", "which is not a FeatureEvent with a type"),
        ("Sung", "not a tuple of FeatureEvents"),
        ("NOTHING", "NOTHING cannot be imported"),
    ],
)
def test_an_event_that_a_log_may_not_hold_stops_the_start_until_its_feature_is_off(name: str, why: str) -> None:
    with pytest.raises(FeatureError, match=why):
        declare(name)
    declare(name, choice="-songs")


def test_two_features_with_events_of_one_type_stop_the_start() -> None:
    with pytest.raises(FeatureError, match=r"'songs' and 'odes' both claim the event 'songs\.sung'"):
        declare("SONGS", odes="SONGS")


@pytest.mark.parametrize(
    ("kind", "holds"),
    [
        (str, True), (str | None, True), (list[str], True), (tuple[int, str], True), (dict[str, int], True),
        (JsonValue, True), (JsonObject, True), (Any, True), (list, True), (dict, True), (bytes, True), (Verse, True),
        (tuple[Verse, ...], True), (object, True), (Callable[[], int], True),
        (int, False), (float | None, False), (bool, False), (Literal["a", "b"], False), (tuple[int, ...], False),
        (datetime, False), (Usage, False), (dict[Literal["a"], int], True),
    ],
)  # fmt: skip
def test_what_may_hold_text_is_read_from_its_fields(kind: Any, holds: bool) -> None:
    event = create_model("Made", __base__=FeatureEvent, value=(kind, ...))
    event.type = "songs.made"
    assert may_hold_text(event) is holds
    assert not may_hold_text(Counted)


@pytest.mark.parametrize("choice", ["", "-songs"])
def test_a_log_with_them_is_read_while_their_feature_is_off_too(choice: str) -> None:
    events = [Event("run_1", number, 1, 5.0, body) for number, body in enumerate((Sung(words="la"), Counted(number=2)))]
    rows = [encode(event)[1] for event in events]
    with pytest.raises(StoreNewerError, match="install the feature that has written it"):
        decode(rows[0])
    declare("SONGS", choice)
    read = [decode(row) for row in rows]
    assert read == events
    state = fold("run_1", [*read, Event("run_1", 2, 1, 6.0, Sung(words="lo"))])
    assert state.feature_events == {"songs.sung": Sung(words="lo"), "songs.counted": Counted(number=2)}
    assert state.seq == 2
    (line,) = build_trace(read)
    assert (line.type, line.title, line.detail) == ("notice", "sang", {"words": "la"})


def test_another_class_of_a_declared_type_is_not_that_event() -> None:
    declare("SONGS")
    other = type("Sung", (FeatureEvent,), {"type": "songs.sung", "__module__": __name__})
    assert is_declared(Counted(number=1))
    assert not is_declared(other())
