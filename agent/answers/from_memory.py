"""Says under an answer that the model wrote it without any tool, because it could not decide on one."""

from agent.answers.sentences import say
from agent.core.run_state import RunState


def find_undecided_reason(state: RunState) -> str:
    """Why the model that was to decide on calls did not, if it then answered without any; "" if all is well."""
    proposed = state.plans[-1] if state.plans else None
    if proposed is None or proposed.requested != "llm" or not proposed.fallback_reason:
        return ""
    if any(step.is_work for one in state.plans for step in one.plan.steps):
        return ""
    outputs = [state.get_step(step.id).output for step in proposed.plan.steps]
    is_written = any(one is not None and one.effective != "rules" and one.text.strip() for one in outputs)
    return f"no tool was used, because {proposed.fallback_reason}" if is_written else ""


def add_memory_sentence(text: str, language: str, reason: str) -> str:
    """The answer with the sentence, in `language` or else in English, and with the reason."""
    return f"{text}\n\n{say('from_memory', language)} ({reason[:1].upper()}{reason[1:]}.)"
