"""Questions of the planner to the user (`awaiting_input`) as forms of MCP clients. `reply_runs.py` starts the runs that
go on with the answers.
"""

import mcp_types as types

from agent.core.models import JsonObject
from agent.core.run_reducer import fold
from agent.run_context.run import Run
from agent.runs.service import AgentService
from mcp_tools.server.current_principal import get_current_owner
from mcp_tools.server.reply_runs import MAX_ANSWER_CHARS

ANSWER_FORM: JsonObject = {
    "type": "object",
    "properties": {"answer": {"type": "string", "title": "Answer", "description": "what the agent needs to know"}},
    "required": ["answer"],
}


async def get_input_question(service: AgentService[Run], run_id: str) -> str | None:
    """The question that a run ended with, or None. Raises `NotFoundError`."""
    row = await service.get_run(run_id, owner=get_current_owner())
    if row.status != "awaiting_input":
        return None
    state = fold(run_id, await service.read_events(run_id, owner=get_current_owner()))
    return state.answer.text if state.answer is not None else None


def get_question_key(run_id: str) -> str:
    """The key of a run's question among a call's input requests."""
    return f"ask_{run_id}"


def build_input_request(question: str) -> types.ElicitRequest:
    """The elicitation request for a question."""
    return types.ElicitRequest(params=types.ElicitRequestFormParams(message=question, requested_schema=ANSWER_FORM))


def parse_answer(result: types.ElicitResult) -> str | None:
    """The user's answer, or None if there is none: the form was declined, closed or left empty."""
    answer_text = (result.content or {}).get("answer") if result.action == "accept" else None
    return answer_text.strip()[:MAX_ANSWER_CHARS] or None if isinstance(answer_text, str) else None
