"""The verification gates of a run: named and deterministic; each returns a reason.

To add one: write a function from `GateContext` to `GateResult` (None if it does not apply) and add its name to `GATES`,
or to the `Extension` of another package. A room lists the gates that its runs must pass (`gates:` in its file). A run
that still fails one after its replans ends as failed. Every mode of planning and execution checks all gates.
"""

from collections.abc import Callable, Mapping

from agent.answers.evidence import contains_no_answer_text
from agent.core.errors import BadRequestError
from agent.core.events import GateChecked, StepOutput
from agent.core.models import Outcome, Source
from agent.core.models.request import read_explicit_tool_calls
from agent.core.plan_outcome import find_empty_reply
from agent.core.run_state import AttemptState, RunState
from agent.run_context.extensions import NO_EXTENSIONS, Extensions, Gate, GateContext, GateResult, fail_gate, pass_gate
from agent.run_context.outputs import parse_cited_ids


def check_required_tools(context: GateContext) -> GateResult | None:
    """Passes if the tools in `metadata.tool_calls` returned and the tools that the room requires succeeded."""
    state = context.state
    named, wanted = context.requested_tools, context.state.room.list_required_tools(context.topics)
    if not named and not wanted:
        return None
    ran = _get_last_errors_by_tool(state)
    missing = [name for name in sorted(named) if name not in ran]
    missing += [name for name in wanted if name not in ran and name not in named]
    broken = [name for name in wanted if name in ran and name not in context.outputs]
    faults = ["never ran: " + ", ".join(missing)] if missing else []
    faults += [f"{name} failed: {ran[name]}" for name in broken]
    if faults:
        return fail_gate(*faults)
    return pass_gate("every requested tool ran" if not wanted else "every required tool ran and succeeded")


def _list_requested_tools(state: RunState) -> set[str]:
    try:
        return {call.tool for call in read_explicit_tool_calls(state.request)}
    except BadRequestError:  # no door takes such a request now; a run of earlier may hold it
        return set()


def _get_last_errors_by_tool(state: RunState) -> dict[str, str]:
    """The tools that returned in any attempt, each with its last error."""
    ran: dict[str, str] = {}
    for attempt in state.list_attempts():
        for call in attempt.calls:
            if call.result is not None:
                ran[call.intent.tool] = call.result.error or _get_rejection_reason(attempt)
    # Calls with invalid arguments are refused, so only the attempt's output has the error.
    for proposed in state.plans:
        for planned in proposed.plan.steps:
            last = state.get_step(planned.id).last
            if planned.action != "tool" or last is None or last.output is None:
                continue
            if last.output.error is not None:
                ran[planned.tool] = last.output.error
            elif last.taken_from:  # a fork took the result over and made no call
                ran.setdefault(planned.tool, _get_rejection_reason(last))
    return ran


def _get_rejection_reason(attempt: AttemptState) -> str:
    """The verdict's reason for rejecting a tool's result."""
    verdict = attempt.verdict
    because = "" if verdict is None or verdict.outcome is Outcome.SUCCESS else f" ({verdict.reason})"
    return f"its result was not accepted{because}"


def check_answer_present(context: GateContext) -> GateResult:
    """Passes if there is an answer, or a finish reason that says why there is none: another plan would not give one."""
    if context.answer.strip():
        return pass_gate("there is an answer")
    empty = find_empty_reply(context.state)
    return fail_gate("no answer") if empty is None else pass_gate(empty)


def check_evidence_found(context: GateContext) -> GateResult | None:
    """In a room with citations, passes if an answer of several steps has a source or says that there is none."""
    state = context.state
    if not state.room.citations or state.plan is None or len(state.plan.steps) <= 1:
        return None
    # Tools that are required for every request only read the request.
    if state.room.required_tools and not context.topics:
        return None
    if context.sources:
        return pass_gate(f"{len(context.sources)} sources support the answer")
    # Matches the sentence alone, or within the requested form.
    if state.room.knowledge and contains_no_answer_text(context.answer):
        return pass_gate("the documents were searched and say nothing about it, and the answer says so")
    return fail_gate("no step returned any evidence")


def check_citations_resolve(context: GateContext) -> GateResult | None:
    """Passes if every `[n]` of the answer is the number of a source.

    Applies only if the room has citations or lists this gate. Elsewhere "[3]" may be a list index or a footnote.
    """
    room = context.state.room
    if not room.citations and "citations_resolve" not in room.gates:
        return None
    source_ids = {source.id for source in context.sources}
    quoted = set(parse_cited_ids(context.state.prompt))  # the answer may repeat "[12]" from a log in the prompt
    unknown = [number for number in parse_cited_ids(context.answer) if number not in source_ids | quoted]
    if not unknown:
        return pass_gate("every citation resolves")
    return fail_gate("no source supports " + ", ".join(f"[{number}]" for number in unknown))


__all__ = [
    "GATES",
    "GateContext",
    "GateResult",
    "check_gates",
    "list_failed_gates",
    "has_room_gates",
]

GATES: Mapping[str, Gate] = {
    "answer_present": check_answer_present,
    "required_tools": check_required_tools,
    "citations_resolve": check_citations_resolve,
    "evidence_found": check_evidence_found,
}

_DEFAULT_GATES = ("answer_present", "required_tools", "citations_resolve", "evidence_found")
"""Checked in every room where they apply. A failure gives a partial answer, or fails the run if the room lists the
gate."""


def check_gates(
    state: RunState,
    answer: str,
    sources: tuple[Source, ...],
    outputs: Mapping[str, tuple[StepOutput, ...]] | None = None,
    extensions: Extensions = NO_EXTENSIONS,
    *,
    resolve_tool: Callable[[str], str] = str,
) -> tuple[GateChecked, ...]:
    """Checks every gate that applies to this run and returns the results. `outputs` as in `GateContext`; `resolve_tool`
    returns the registered name of a tool by the name that the request has for it."""
    topics = extensions.match_topics(state.room, f"{state.prompt}\n{state.question}", state.request.metadata)
    requested = frozenset(map(resolve_tool, _list_requested_tools(state)))
    context = GateContext(state, answer, sources, outputs or {}, topics, requested)
    gates = {**GATES, **extensions.gates}
    listed = state.room.gates if state.is_gated else ()
    checked = []
    for name in dict.fromkeys((*_DEFAULT_GATES, *listed)):
        result = gates[name](context) if name in gates else _fail_unknown_gate(name)
        if result is not None:
            checked.append(
                GateChecked(
                    gate=name,
                    passed=result.passed,
                    reason=result.reason,
                    failures=result.failures,
                    redo=result.redo,
                )
            )
    return tuple(checked)


def has_room_gates(state: RunState) -> bool:
    """Whether the room lists gates. Then even a plan without results is checked."""
    return state.is_gated and bool(state.room.gates)


def list_failed_gates(state: RunState) -> tuple[GateChecked, ...]:
    """The failed gates that the room lists."""
    listed = state.room.gates if state.is_gated else ()
    return tuple(gate for gate in state.gates if not gate.passed and gate.gate in listed)


def _fail_unknown_gate(name: str) -> GateResult:
    """A failure. The run of another version may list a gate that this version lacks."""
    return GateResult(False, f"this version has no gate {name!r}", (f"this version has no gate {name!r}",))
