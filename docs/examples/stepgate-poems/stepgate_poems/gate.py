"""A gate: answers must be short."""

from agent.execution.gates import GateContext, GateResult

MAX_WORDS = 40


def short_answer(context: GateContext) -> GateResult:
    """Passes if the answer has at most `MAX_WORDS` words."""
    count = len(context.answer.split())
    if count <= MAX_WORDS:
        return GateResult(True, f"the answer has {count} words")
    problem = f"the answer has {count} words, more than {MAX_WORDS}"
    return GateResult(False, problem, (problem,))
