"""Calls of the client's own tools: the run ends with them, and another run goes on with their results.

Nothing waits in between: the log of the first run has the plan and what was done so far, and the second run takes that
over in one transaction. So a restart, or a client that never answers, costs nothing.
"""

import json
from time import monotonic

from pydantic import JsonValue

from agent.core.errors import AgentError, StaleEpochError, StoreError, ToolInputError
from agent.core.events import (
    ApprovalDecided,
    ApprovalRequested,
    ClientToolCall,
    ClientToolsCalled,
    EventBody,
    EventDraft,
    GivenPlan,
    PlanProposed,
    StepDiscarded,
    StepFinished,
    StepJudged,
    StepSpeculative,
    StepStarted,
    ToolCalled,
)
from agent.core.run_reducer import fold
from agent.execution.arguments import find_argument_problem, resolve_args
from agent.execution.decide import Start, find_client_steps
from agent.execution.given_plan import load_origin
from agent.execution.run_catalogue import build_catalogue
from agent.execution.steps import build_failed_output, build_start_events, record_output
from agent.execution.tool_gateway import build_return
from agent.run_context.calls import CallSite
from agent.run_context.outputs import shorten_args, to_step_output
from agent.run_context.run import Run
from agent.tools import ToolResult
from agent.tools.client_tools import build_client_spec

_TAKEN_OVER = (
    PlanProposed,
    ApprovalRequested,
    ApprovalDecided,
    StepStarted,
    StepSpeculative,
    StepFinished,
    StepJudged,
    StepDiscarded,
)
"""The events from which the run that goes on knows the plans and their steps. Calls stay in the first run's log, so
that nothing counts twice."""


async def call_client_tools(run: Run) -> None:
    """Records the calls that the client must make now; the run then ends with them. Does nothing while a person is to
    decide something, or if no such step may start.

    A call whose arguments do not fit is a failed attempt, as with any other tool.
    """
    if run.state.input_request is not None or run.state.pending_approvals:
        return
    calls: list[ClientToolCall] = []
    for start in find_client_steps(run.state):
        if calls and not run.state.request.parallel_client_calls:
            break
        call = await _prepare_call(run, start, len(calls) + 1)
        if call is not None:
            calls.append(call)
    if calls:
        await run.emit(ClientToolsCalled(calls=tuple(calls)))


async def build_continuation(run: Run, given: GivenPlan) -> list[EventDraft]:
    """The events that take over the earlier run's plans, steps and approvals, with the client's results.

    The results are untrusted data, and are judged as those of any tool.
    """
    origin = await load_origin(run, given)
    events = await run.journal.read_events(given.from_run)
    drafts = [
        EventDraft(_mark_taken(event.body, given.from_run), event.step_id, event.attempt)
        for event in events
        if isinstance(event.body, _TAKEN_OVER)
    ]
    called = fold(given.from_run, events).client_calls or origin.client_calls
    for call in called.calls if called is not None else ():
        drafts += await _build_result(run, call, given)
    return drafts


async def _prepare_call(run: Run, start: Start, number: int) -> ClientToolCall | None:
    """The call of a step; None if its arguments do not fit, which is recorded."""
    started = monotonic()
    step = start.step
    try:
        args, tainted = await resolve_args(run, start)
        spec = build_catalogue(run).get_tool(step.tool)
        problem = find_argument_problem(spec, args) if spec is not None else None
        if problem is not None:
            raise ToolInputError(problem, agent_id=step.tool)
    except (StaleEpochError, StoreError):
        raise
    except AgentError as error:
        begin = await build_start_events(run, start, dict(step.args), tainted=run.state.tainted)
        await record_output(run, start, build_failed_output(error), begin, duration=monotonic() - started)
        return None
    return ClientToolCall(
        call_id=f"call_{run.run_id.removeprefix('run_')}_{number}",
        step_id=step.id,
        attempt=start.attempt,
        tool=step.tool,
        args=args,
        feedback=start.feedback,
        tainted=tainted,
    )


async def _build_result(run: Run, call: ClientToolCall, given: GivenPlan) -> list[EventDraft]:
    """The events of an attempt that the client has made."""
    site = CallSite(call.step_id, call.attempt)
    text = given.client_results[call.call_id]
    begin = StepStarted(
        args=shorten_args(call.args), feedback=call.feedback, tainted=call.tainted, taken_from=given.from_run
    )
    intent = ToolCalled(call_id=site.call_id, tool=call.tool, args=call.args, effect="effect", key=call.call_id)
    result = ToolResult(value=_read_value(text), text=text, tainted=True)
    returned = await build_return(run, build_client_spec(call.tool), site, result, monotonic(), 1)
    finished = StepFinished(output=to_step_output(returned))
    return [EventDraft(body, call.step_id, call.attempt) for body in (begin, intent, returned, finished)]


def _read_value(text: str) -> JsonValue:
    """The JSON object or list that a result is, so that steps may refer to its fields; else the text."""
    if not text.lstrip().startswith(("{", "[")):
        return text
    try:
        value: JsonValue = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value


def _mark_taken(body: EventBody, origin: str) -> EventBody:
    if isinstance(body, StepStarted):
        return body.model_copy(update={"taken_from": body.taken_from or origin})
    return body
