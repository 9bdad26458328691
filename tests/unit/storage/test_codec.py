"""The text of events: reading returns what was written, and what cannot be read says why."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from agent.core.errors import StoreError, StoreNewerError
from agent.core.events import BODY_TYPES, Event, EventBody, StepFinished, StepOutput, ToolReturned
from agent.core.models import Room
from agent.core.surrogates import replace_surrogates
from agent.storage.event_codec import decode, encode
from tests.unit.storage.samples import SAMPLES

# Half characters are what `st.text` leaves out by default and what the wire can bring.
TEXT = st.text(st.characters(exclude_categories=()), max_size=20)
JSON: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


def make_event(body: EventBody) -> Event:
    return Event("run_1", 3, 2, 1_800_000_000.25, body, "s1", 1)


def test_there_is_a_sample_of_every_event() -> None:
    assert {body.type for body in SAMPLES} == set(BODY_TYPES)


@pytest.mark.parametrize("body", SAMPLES, ids=lambda body: str(body.type))
def test_every_event_comes_back_as_it_was(body: EventBody) -> None:
    stored, row = encode(make_event(body))
    assert stored == make_event(body)
    assert decode(row) == stored


def test_defaults_are_written_for_they_may_change_and_a_log_may_not() -> None:
    _, row = encode(make_event(SAMPLES[0]))
    assert set(json.loads(row[7])["room"]) == set(Room.model_fields)


@given(value=JSON, text=TEXT)
def test_any_json_comes_back_as_it_was_stored(value: JsonValue, text: str) -> None:
    output = StepOutput(value=value, text=text)
    stored, row = encode(make_event(StepFinished(output=output)))
    assert decode(row) == stored
    assert isinstance(stored.body, StepFinished)
    assert stored.body.output.text == replace_surrogates(text)


@given(text=TEXT)
def test_a_whole_text_can_be_written_and_keeps_its_length(text: str) -> None:
    assert len(replace_surrogates(text).encode("utf-8").decode("utf-8")) == len(text)
    assert replace_surrogates(replace_surrogates(text)) == replace_surrogates(text)


def test_keys_are_mended_too() -> None:
    stored, row = encode(make_event(ToolReturned(call_id="c", tool="t", output={"a\ud800": ["\udfff"]})))
    assert isinstance(stored.body, ToolReturned)
    assert stored.body.output == {"a\N{REPLACEMENT CHARACTER}": ["\N{REPLACEMENT CHARACTER}"]}
    assert decode(row) == stored


def test_an_event_of_a_newer_version_is_refused_by_name() -> None:
    with pytest.raises(StoreNewerError, match=r"event 7 of run run_1 is a 'step\.dreamt' \(v1\).*upgrade"):
        decode(("run_1", 7, 1, "step.dreamt", 1, None, None, "{}", 0.0))


def test_a_newer_form_of_a_known_event_is_refused() -> None:
    with pytest.raises(StoreNewerError, match="v2"):
        decode(("run_1", 7, 1, "run.succeeded", 2, None, None, "{}", 0.0))


@pytest.mark.parametrize(
    "data", ["", "{", "[]", '{"completeness": "sort of"}', '{"unheard": 1}', "[" * 100_000], ids=range(6)
)
def test_a_damaged_event_is_named_and_says_what_to_do(data: str) -> None:
    with pytest.raises(StoreError, match=r"event 7 of run run_1 \(run\.succeeded\) cannot be read: .*backup"):
        decode(("run_1", 7, 1, "run.succeeded", 1, None, None, data, 0.0))
