"""Gates over the answer: it is there, rests on evidence, and cites nothing that does not exist."""

import re

from agent.execution.gates.context import GateContext, GateResult, failed, passed
from agent.execution.outputs import CITATION
from agent.knowledge.not_said import holds_not_said

_CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)


def answer_present(context: GateContext) -> GateResult:
    """There is an answer."""
    return passed("there is an answer") if context.answer.strip() else failed("no answer")


def evidence_found(context: GateContext) -> GateResult | None:
    """In a room that cites, an answer made of several steps has a source, or says that the documents hold none."""
    state = context.state
    if not state.room.citations or state.plan is None or len(state.plan.steps) <= 1:
        return None
    if state.room.required_tools and not context.is_incident:  # what is required there reads the request, nothing else
        return None
    if context.sources:
        return passed(f"{len(context.sources)} sources stand behind the answer")
    if state.room.knowledge and holds_not_said(context.answer):  # by itself, or in the form that was asked for
        return passed("the documents were searched and hold nothing of it, and the answer says so")
    return failed("no step brought any evidence")


def citations_resolve(context: GateContext) -> GateResult | None:
    """Every `[n]` of the answer is the number of a source.

    Only where the room cites or lists this gate: elsewhere "[3]" may be a list index or a footnote of a page."""
    room = context.state.room
    if not room.citations and "citations_resolve" not in room.gates:
        return None
    known = {source.id for source in context.sources}
    quoted = set(cited_ids(context.state.prompt))  # a log the user pasted may hold "[12]", and an answer repeat it
    unknown = [number for number in cited_ids(context.answer) if number not in known | quoted]
    if not unknown:
        return passed("every citation resolves")
    return failed("no source stands behind " + ", ".join(f"[{number}]" for number in unknown))


def cited_ids(answer: str) -> list[int]:
    """The numbers cited as `[n]` outside code, in order, once each."""
    return list(dict.fromkeys(int(number) for number in CITATION.findall(_CODE.sub("", answer))))
