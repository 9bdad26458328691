"""A memory's fields are in its forms, and every form shows the same values."""

from dataclasses import fields, replace
from datetime import UTC, datetime

import pytest

from agent.run_context.memory import Memory
from mcp_tools.builtin.memory_forms import SAVE_ROLES, FoundMemory, MemoryEntry, MemorySaveInput, to_found_memory

MEMORY = Memory("mem_1", "anna", "Likes tea.", "fact", "run r1", 60.0, tainted=True, score=0.12345)


def test_each_form_has_the_fields() -> None:
    shown = {str(field.validation_alias or name) for name, field in MemoryEntry.model_fields.items()}
    assert shown == {field.name for field in fields(Memory)} - {"owner", "run_id"}
    assert set(FoundMemory.model_fields) == set(MemoryEntry.model_fields) - {"kind"}
    assert set(SAVE_ROLES) == set(MemorySaveInput.model_fields)


def test_routes_and_tools_show_the_same_memory() -> None:
    entry, found = MemoryEntry.model_validate(MEMORY), to_found_memory(MEMORY)
    assert entry.saved_at == datetime(1970, 1, 1, 0, 1, tzinfo=UTC) == datetime.fromisoformat(found.saved_at)
    same = {"id", "text", "source", "score", "from_outside"}
    assert entry.model_dump(include=same) == found.model_dump(include=same)
    assert (found.score, found.from_outside) == (0.123, True)


@pytest.mark.parametrize("score", [None, 0.0])
def test_a_memory_that_no_query_found_has_no_score(score: float | None) -> None:
    memory = replace(MEMORY, score=score)
    assert MemoryEntry.model_validate(memory).score == score
    assert to_found_memory(memory).score == 0.0
