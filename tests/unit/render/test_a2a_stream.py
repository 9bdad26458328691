"""The stream of an A2A task: its cost grows with the answer, not with its square."""

from collections.abc import Sequence

import pytest
from a2a.types.a2a_pb2 import TaskArtifactUpdateEvent

from agent.core import events as ev
from agent.core.run_reducer import fold
from agent.core.run_state import RunState
from gateway.features.protocols.render import a2a
from tests.support.builders import answered, completion_step, created, log, planned, started


def test_the_pieces_of_a_long_answer_do_not_read_the_log_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    read = 0

    def count(run_id: str, events: Sequence[ev.Event]) -> RunState:
        nonlocal read
        read += len(events)
        return fold(run_id, events)

    monkeypatch.setattr(a2a, "fold", count)
    pieces = [f"word{number} " for number in range(200)]
    events = log(
        created(conversation_id="ctx_1"),
        planned(completion_step("s1")),
        started("s1"),
        *answered(*pieces, step_id="s1"),
        ev.AnswerFinished(text="".join(pieces)),
    )
    stream = a2a.TaskEventStream()
    updates = [one for event in events for one in stream.encode(event)]
    artifacts = [one for one in updates if isinstance(one, TaskArtifactUpdateEvent)]
    assert "".join(part.text for one in artifacts for part in one.artifact.parts) == "".join(pieces)
    assert {one.context_id for one in artifacts} == {"ctx_1"}
    assert read < 10 * len(events)
