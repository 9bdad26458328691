"""What a run does with findings in its answer: its room's policy, where `auto` is decided by what the run has read."""

from collections.abc import Iterator

from agent.core.events import ToolReturned
from agent.core.models import OutputGuards
from agent.core.run_state import RunState

FROM_ARGUMENTS = "arguments"
"""`ToolReturned.read_from` of a result that is made of nothing but its arguments."""


def get_answer_guards(state: RunState) -> OutputGuards:
    """The room's policy for answers, with `pii` decided."""
    guards = state.room.guard_output
    if guards.pii != "auto":
        return guards
    return guards.model_copy(update={"pii": "off" if has_read_only_own(state) else "redact_answer"})


def has_read_only_own(state: RunState) -> bool:
    """Whether the run has read documents, and all that it read belongs to the caller alone.

    Results of trusted tools do not count: they are the caller's own data, which may be repeated anyway. A result of an
    earlier run, whose calls are not in this log, may be of anything.
    """
    own = {*state.unshared, FROM_ARGUMENTS}
    read = [result.read_from for result in _iter_untrusted_results(state)]
    attempts = [attempt for step in state.steps.values() for attempt in step.attempts]
    is_taken = any(one.taken_from and one.output is not None and one.output.tainted for one in attempts)
    memories = state.retrieval.items if state.retrieval is not None else ()
    if any(item.tainted for item in memories):
        read.append(("memories",))
    has_documents = any(source != FROM_ARGUMENTS for sources in read for source in sources)
    return has_documents and not is_taken and all(sources and own.issuperset(sources) for sources in read)


def _iter_untrusted_results(state: RunState) -> Iterator[ToolReturned]:
    """Yields the results with untrusted text, also those of skills and sub-agents."""
    for step in state.steps.values():
        for attempt in step.attempts:
            for call in attempt.calls:
                if call.result is not None and call.result.tainted:
                    yield call.result
