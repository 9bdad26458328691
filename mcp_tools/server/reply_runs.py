"""Runs that go on with the user's answer to a question of the planner.

A run that asks has ended. The answer starts another run, whose id follows from the asking one's, so that a repeated
round of a call and a task find it again. This module does not import the MCP SDK: the gateway loads it at its start,
with the names of the agent's tools (`views.py`).
"""

from agent.core.errors import ConflictError
from agent.core.run_reducer import fold
from agent.runs.input_replies import build_reply_request, derive_reply_id
from agent.runs.run_intake import RunIntake
from mcp_tools.server.current_principal import get_current_owner, get_current_principal

MAX_ANSWER_CHARS = 20_000
"""The longest answer of a user, as for `POST /v1/runs/{id}/reply`."""


async def start_reply_run(intake: RunIntake, run_id: str, words: str, *, is_form: bool) -> str:
    """Starts the run that goes on with the user's answer to the question of `run_id`, and returns its id.

    Answers to a form (`is_form`) arrive again if a client repeats a round; then it returns the run of the first.
    """
    former_state = fold(run_id, await intake.service.read_events(run_id, owner=get_current_owner()))
    reply_id = derive_reply_id(run_id) if is_form else None
    try:
        accepted = await intake.accept(
            get_current_principal(), build_reply_request(former_state, words), run_id=reply_id
        )
    except ConflictError:
        if reply_id is None:
            raise
        return reply_id
    return accepted.run_id
