"""The verification gates over a whole run: named, deterministic, each with a reason. Pure but for what it is given."""

import re
from collections.abc import Sequence

from agent.core.events import GateChecked
from agent.core.fold import RunState
from agent.core.models import Source
from agent.knowledge.models import NOT_IN_DOCUMENTS

_CITATION = re.compile(r"\[(\d{1,3})\](?!\()")
_CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)


def check_gates(state: RunState, answer: str, sources: tuple[Source, ...]) -> tuple[GateChecked, ...]:
    """Every gate this run must pass; gates that do not apply are left out."""
    gates = [_answer_present(answer)]
    wanted = state.request.metadata.get("tool_calls")
    if isinstance(wanted, list) and wanted:
        gates.append(_required_tools(state, wanted))
    if state.room.citations:  # elsewhere "[3]" may be anything: a list index, a footnote of the page that was read
        gates.append(_citations_resolve(answer, sources))
    if state.room.citations and state.plan is not None and len(state.plan.steps) > 1:
        gates.append(_evidence_found(state, answer, sources))
    return tuple(gates)


def cited_ids(answer: str) -> list[int]:
    """The numbers cited as `[n]` outside code, in order, once each."""
    return list(dict.fromkeys(int(number) for number in _CITATION.findall(_CODE.sub("", answer))))


def _answer_present(answer: str) -> GateChecked:
    passed = bool(answer.strip())
    return GateChecked(gate="answer_present", passed=passed, reason="there is an answer" if passed else "no answer")


def _required_tools(state: RunState, wanted: Sequence[object]) -> GateChecked:
    names = {str(call.get("tool") or call.get("name")) for call in wanted if isinstance(call, dict)}
    ran = {
        call.called.tool
        for step in state.steps.values()
        for attempt in step.attempts
        for call in attempt.calls
        if call.returned is not None
    }
    missing = sorted(names - ran)
    reason = "every requested tool ran" if not missing else "never ran: " + ", ".join(missing)
    return GateChecked(gate="required_tools", passed=not missing, reason=reason)


def _evidence_found(state: RunState, answer: str, sources: tuple[Source, ...]) -> GateChecked:
    if sources:
        return GateChecked(gate="evidence_found", passed=True, reason=f"{len(sources)} sources stand behind the answer")
    if state.room.knowledge and answer.strip() == NOT_IN_DOCUMENTS:
        reason = "the documents were searched and hold nothing of it, and the answer says so"
        return GateChecked(gate="evidence_found", passed=True, reason=reason)
    return GateChecked(gate="evidence_found", passed=False, reason="no step brought any evidence")


def _citations_resolve(answer: str, sources: tuple[Source, ...]) -> GateChecked:
    known = {source.id for source in sources}
    unknown = [number for number in cited_ids(answer) if number not in known]
    reason = "every citation resolves"
    if unknown:
        reason = "no source stands behind " + ", ".join(f"[{number}]" for number in unknown)
    return GateChecked(gate="citations_resolve", passed=not unknown, reason=reason)
