"""The ordered list of plan sources: the kernel's own, and those of features before them."""

import pytest

from agent.core.errors import ConfigError
from agent.execution.plan_sources import KERNEL_SOURCES, order_sources
from agent.planning.planned import Planned
from agent.run_context.extensions import Extension, merge_extensions
from agent.run_context.plan_sources import PlanInquiry, PlanSource
from agent.run_context.run import Run
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
    with pytest.raises(ConfigError, match="comes before 'answers'; there are given, calls"):
        order_sources((PlanSource("mine", plan_nothing, before="answers"),))


def test_two_features_cannot_both_write_answers_from_evidence() -> None:
    second = Extension("mine", evidence_answers=DOCUMENT_EXTENSION.evidence_answers)
    with pytest.raises(ConfigError, match="'mine'"):
        merge_extensions((DOCUMENT_EXTENSION, second))
