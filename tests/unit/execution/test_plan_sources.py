"""The ordered list of plan sources: the kernel's own, and those of features before them."""

import pytest

from agent.core.errors import ConfigError
from agent.core.models import EVERY_ROOM, Room, rooms_with
from agent.execution.plan_sources import KERNEL_SOURCES, order_sources
from agent.planning.planned import Planned
from agent.run_context.extensions import Extension, merge_extensions
from agent.run_context.run import Run
from agent.run_context.run_hooks import PlanInquiry, PlanSource
from gateway.features.documents.engine.document_runs import DOCUMENT_EXTENSION
from gateway.features.studio.engine.intent_routing import INTENT_EXTENSION


async def plan_nothing(_: Run, __: PlanInquiry) -> Planned | None:
    return None


def test_features_stand_before_the_sources_that_they_name() -> None:
    merged = merge_extensions((DOCUMENT_EXTENSION, INTENT_EXTENSION))
    names = [source.name for source in order_sources(merged.plan_sources)]
    assert names == [
        "given", "calls", "skill", "document_listing", "knowledge", "answer", "intents", "command", "planner"
    ]  # fmt: skip


def test_without_features_the_kernel_plans_alone() -> None:
    assert order_sources(()) == list(KERNEL_SOURCES)
    assert KERNEL_SOURCES[-1].name == "planner"


def test_a_source_before_an_unknown_one_is_refused() -> None:
    with pytest.raises(ConfigError, match="comes before 'answers', which does not exist; known: given, calls"):
        order_sources((PlanSource("mine", plan_nothing, before="answers"),))


@pytest.mark.parametrize(
    ("room", "concerned"),
    [
        (Room(id="plain"), False),
        (Room(id="lookups", knowledge=True), True),
        (Room(id="cites", citations=True), True),
    ],
)
def test_a_room_filter_matches_the_values_of_fields(room: Room, concerned: bool) -> None:
    assert (rooms_with(knowledge=True) | rooms_with(citations=True)).matches(room) == concerned
    assert EVERY_ROOM.matches(room)
    assert (EVERY_ROOM | rooms_with(knowledge=True)).matches(room)


def test_a_room_filter_needs_fields_that_rooms_have() -> None:
    with pytest.raises(ValueError, match="rooms have no field knowlegde"):
        rooms_with(knowlegde=True)


def test_two_features_cannot_both_write_answers_from_evidence() -> None:
    second = Extension("mine", evidence_answers=DOCUMENT_EXTENSION.evidence_answers)
    with pytest.raises(ConfigError, match="'mine'"):
        merge_extensions((DOCUMENT_EXTENSION, second))
