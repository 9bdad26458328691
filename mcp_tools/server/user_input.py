"""Questions of the planner to the user (`awaiting_input`) over MCP, and the runs that go on with their answers.

A run that asks has ended. The answer starts another run, whose id follows from the asking one's, so that a repeated
round of a call and a task find it again.
"""

import mcp_types as types

from agent.core.errors import ConflictError
from agent.core.models import JsonObject
from agent.core.run_reducer import fold
from agent.run_context.run import Run
from agent.runs.input_replies import build_reply_request, derive_reply_id
from agent.runs.run_intake import RunIntake
from agent.runs.service import AgentService
from mcp_tools.server.current_principal import get_current_owner, get_current_principal

MAX_ANSWER_CHARS = 20_000
"""The longest answer of a user, as for `POST /v1/runs/{id}/reply`."""
ANSWER_FORM: JsonObject = {
    "type": "object",
    "properties": {"answer": {"type": "string", "title": "Answer", "description": "what the agent needs to know"}},
    "required": ["answer"],
}


async def get_input_question(service: AgentService[Run], run_id: str) -> str | None:
    """Returns the question that a run ended with, or None. Raises `NotFoundError`."""
    row = await service.get_run(run_id, owner=get_current_owner())
    if row.status != "awaiting_input":
        return None
    state = fold(run_id, await service.read_events(run_id, owner=get_current_owner()))
    return state.answer.text if state.answer is not None else None


def get_question_key(run_id: str) -> str:
    """Returns the key of a run's question among a call's input requests."""
    return f"ask_{run_id}"


def build_input_request(question: str) -> types.ElicitRequest:
    """Returns the elicitation request for a question."""
    return types.ElicitRequest(params=types.ElicitRequestFormParams(message=question, requested_schema=ANSWER_FORM))


def parse_answer(result: types.ElicitResult) -> str | None:
    """Returns the user's answer, or None if there is none: the form was declined, closed or left empty."""
    said = (result.content or {}).get("answer") if result.action == "accept" else None
    return said.strip()[:MAX_ANSWER_CHARS] or None if isinstance(said, str) else None


async def start_reply_run(intake: RunIntake, run_id: str, words: str, *, is_form: bool) -> str:
    """Starts the run that goes on with the user's answer to the question of `run_id`, and returns its id.

    Answers to a form (`is_form`) arrive again if a client repeats a round; then it returns the run of the first.
    """
    asked = fold(run_id, await intake.service.read_events(run_id, owner=get_current_owner()))
    reply_id = derive_reply_id(run_id) if is_form else None
    try:
        accepted = await intake.accept(get_current_principal(), build_reply_request(asked, words), run_id=reply_id)
    except ConflictError:
        if reply_id is None:
            raise
        return reply_id
    return accepted.run_id
