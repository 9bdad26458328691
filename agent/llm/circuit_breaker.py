"""`CircuitBreaker`: leaves out an upstream that keeps failing, and tries it again after a while."""

from collections.abc import Callable
from dataclasses import dataclass

from agent.core.errors import ModelAuthError, ModelError, ModelRateLimitError

OPEN_AFTER = 3
"""Failures in a row after which an upstream is left out."""
OPEN_SECONDS = 30.0
LONGEST_OPEN_SECONDS = 300.0
"""Longest time for which an upstream's own `Retry-After` is believed."""


@dataclass
class CircuitBreaker:
    """The state of one upstream. `clock` gives seconds that never go back."""

    clock: Callable[[], float]
    failures: int = 0
    open_until: float = 0.0
    is_tried: bool = False
    """Whether one call tries the upstream again; others leave it out until that call ends."""

    def allows_call(self) -> bool:
        """Whether the upstream may be called now."""
        return not self.open_until or (self.clock() >= self.open_until and not self.is_tried)

    def begin_call(self) -> None:
        """Marks the call that tries an upstream again."""
        self.is_tried = bool(self.open_until)

    def record_success(self) -> None:
        """Closes the circuit."""
        self.failures, self.open_until, self.is_tried = 0, 0.0, False

    def record_failure(self, error: ModelError) -> None:
        """Opens the circuit after several failures; at once where waiting is known to be needed."""
        self.failures += 1
        at_once = isinstance(error, ModelAuthError | ModelRateLimitError)
        if at_once or self.is_tried or self.failures >= OPEN_AFTER:
            stated = error.retry_after_s if error.retry_after_s is not None else OPEN_SECONDS
            self.open_until = self.clock() + min(stated, LONGEST_OPEN_SECONDS)
        self.is_tried = False

    def record_cancelled(self) -> None:
        """Lets another call try the upstream, because this one ended without a result."""
        self.is_tried = False
