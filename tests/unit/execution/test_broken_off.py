"""What is kept of an answer whose model failed: what readers had seen, and nothing that was declared void."""

import pytest

from agent.answers.broken_off import find_broken_off_text
from agent.core import events as ev
from tests.support.builders import created, log

STARTED = ev.AnswerStarted(tier="fast", model="m", reason="", restarted=True)


def fail_with(code: str, *bodies: ev.EventBody) -> list[ev.EventBody]:
    """An attempt at an answer that ends with this failure."""
    return [STARTED, *bodies, ev.StepFinished(output=ev.StepOutput(error_code=code, error="It failed."))]


def write(*texts: str) -> list[ev.EventBody]:
    return [ev.AnswerDelta(text=text) for text in texts]


@pytest.mark.parametrize(
    ("bodies", "kept"),
    [
        ([*fail_with("ERR_MODEL_OUTPUT", *write("It ", "was ")), *fail_with("ERR_MODEL_DOWN")], "It was"),
        ([*fail_with("ERR_RATE_LIMIT", *write("Longer")), *fail_with("ERR_MODEL_DOWN", *write("Short"))], "Longer"),
        (fail_with("ERR_MODEL_DOWN", *write("A thought, at length"), STARTED, *write("So")), "So"),
        (fail_with("ERR_GUARDRAIL_UNSAFE", *write("It is unsafe.")), ""),
        ([*fail_with("ERR_GUARDRAIL_UNSAFE", *write("It is unsafe.")), *fail_with("ERR_MODEL_DOWN")[1:]], ""),
        ([STARTED, *write("It has not ended.")], ""),
    ],
    ids=["retried", "longest", "void", "refused", "refused, then down", "open"],
)  # fmt: skip
def test_what_readers_had_seen_is_kept(bodies: list[ev.EventBody], kept: str) -> None:
    assert find_broken_off_text(log(created(), *bodies)) == kept
