"""The prompt that the first decision of each run in a room begins with, for an endpoint to read before there is one."""

from time import time

from agent.core.events import Event, RunCreated
from agent.core.models import LOCAL_OWNER, AgentRequest, JsonObject, Room
from agent.execution.stages.planning_request import build_planning_request
from agent.planning.rounds.prompt import build_round_messages, choose_tools
from agent.run_context.engine import Engine
from agent.run_context.run import Run
from agent.storage.journal import Claim

GREETING = "Hello!"


async def build_first_decision(engine: Engine, room: Room) -> tuple[JsonObject, ...]:
    """The messages by which a planner of rounds would decide on a greeting; empty where the room has other plans.

    Nothing is stored: the run exists only here. Raises `StoreError`.
    """
    created = RunCreated(request=AgentRequest(prompt=GREETING), room=room, owner=LOCAL_OWNER)
    run = Run(engine, Claim("", 0, (Event("", 1, 0, time(), created),)))
    await run.load_feature_data()
    if not run.decides_in_rounds:
        return ()
    request = await build_planning_request(run, None)
    return build_round_messages(request, choose_tools(request.catalogue, request.question))
