"""`run_respond` decides only on what its caller names, whatever the run is doing."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from agent.core.errors import BadRequestError, ConflictError
from mcp_tools.server.agent_tools import AgentToolCall, RunRespondInput


class _Service:
    """A run of one status that has calls waiting for a decision; what was decided is kept."""

    def __init__(self, status: str) -> None:
        self.status = status
        self.decided: list[Any] = []

    async def get_run(self, run_id: str, *, owner: str) -> object:
        return SimpleNamespace(run_id=run_id, status=self.status)

    async def submit_decision(self, run_id: str, decision: str, *, approvals: Any, **_: object) -> object:
        if self.status == "succeeded":
            raise ConflictError("it has ended")
        self.decided.append((decision, approvals))
        return SimpleNamespace(last_seq=0)


def make_call(service: _Service) -> AgentToolCall:
    return AgentToolCall(cast("Any", SimpleNamespace(service=service)), cast("Any", None), 0)


@pytest.mark.parametrize("status", ["running", "queued", "awaiting_approval"])
async def test_a_decision_names_what_it_is_about_also_while_other_steps_run(status: str) -> None:
    service = _Service(status)
    with pytest.raises(BadRequestError, match="name the ids"):
        await make_call(service).respond(RunRespondInput(run_id="run_1", decision="approve"))
    assert service.decided == []
    named = RunRespondInput(run_id="run_1", decision="approve", approvals=["apr_1"])
    assert await make_call(service).respond(named) == "run_1"
    assert service.decided == [("approve", ["apr_1"])]


async def test_of_a_run_that_has_ended_it_is_said_that_it_has() -> None:
    with pytest.raises(ConflictError):
        await make_call(_Service("succeeded")).respond(RunRespondInput(run_id="run_1", decision="approve"))
