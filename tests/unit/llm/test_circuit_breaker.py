"""When an upstream is left out, and when it is tried again."""

import pytest

from agent.core.errors import ModelAuthError, ModelDownError, ModelError, ModelRateLimitError
from agent.llm.circuit_breaker import LONGEST_OPEN_SECONDS, OPEN_AFTER, OPEN_SECONDS, CircuitBreaker


class Clock:
    """Seconds moved by hand."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def limited(seconds: float) -> ModelError:
    error = ModelRateLimitError("slow down")
    error.retry_after_s = seconds
    return error


def test_single_failures_do_not_open_it() -> None:
    breaker = CircuitBreaker(Clock())
    for _ in range(OPEN_AFTER - 1):
        breaker.record_failure(ModelDownError("down"))
    assert breaker.allows_call()
    breaker.record_success()
    for _ in range(OPEN_AFTER - 1):
        breaker.record_failure(ModelDownError("down"))
    assert breaker.allows_call(), "a success between them counts"


def test_one_call_tries_again_after_a_while() -> None:
    clock = Clock()
    breaker = CircuitBreaker(clock)
    for _ in range(OPEN_AFTER):
        breaker.record_failure(ModelDownError("down"))
    assert not breaker.allows_call()
    clock.now += OPEN_SECONDS
    assert breaker.allows_call()
    breaker.begin_call()
    assert not breaker.allows_call(), "one call tries, the others do not wait for it"
    breaker.record_failure(ModelDownError("down"))
    assert not breaker.allows_call(), "one failure opens it again"
    clock.now += OPEN_SECONDS
    breaker.begin_call()
    breaker.record_cancelled()
    assert breaker.allows_call()
    breaker.begin_call()
    breaker.record_success()
    assert breaker.allows_call()


@pytest.mark.parametrize(
    ("error", "seconds"),
    [(ModelAuthError("key"), OPEN_SECONDS), (limited(7), 7), (limited(9_999), LONGEST_OPEN_SECONDS)],
    ids=["key", "retry-after", "long retry-after"],
)
def test_some_failures_open_it_at_once(error: ModelError, seconds: float) -> None:
    clock = Clock()
    breaker = CircuitBreaker(clock)
    breaker.record_failure(error)
    clock.now += seconds - 1
    assert not breaker.allows_call()
    clock.now += 1
    assert breaker.allows_call()
