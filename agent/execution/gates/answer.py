"""Gates over the answer: it exists, has evidence, and cites only existing sources."""

from agent.answers.evidence import contains_no_answer_text
from agent.core.plan_outcome import find_empty_reply
from agent.run_context.extensions import GateContext, GateResult, fail_gate, pass_gate
from agent.run_context.outputs import parse_cited_ids


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
        return pass_gate(f"{len(context.sources)} sources stand behind the answer")
    # Matches the sentence alone, or within the requested form.
    if state.room.knowledge and contains_no_answer_text(context.answer):
        return pass_gate("the documents were searched and hold nothing of it, and the answer says so")
    return fail_gate("no step brought any evidence")


def check_citations_resolve(context: GateContext) -> GateResult | None:
    """Passes if every `[n]` of the answer is the number of a source.

    Applies only if the room has citations or lists this gate. Elsewhere "[3]" may be a list index or a footnote.
    """
    room = context.state.room
    if not room.citations and "citations_resolve" not in room.gates:
        return None
    known = {source.id for source in context.sources}
    quoted = set(parse_cited_ids(context.state.prompt))  # the answer may repeat "[12]" from a log in the prompt
    unknown = [number for number in parse_cited_ids(context.answer) if number not in known | quoted]
    if not unknown:
        return pass_gate("every citation resolves")
    return fail_gate("no source stands behind " + ", ".join(f"[{number}]" for number in unknown))
