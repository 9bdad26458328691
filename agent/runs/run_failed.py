"""`RunFailedError`: how a door reports a failed run to the caller who waits for it."""

from agent.core.errors import RunError
from agent.core.failures import FAILURES, AgentFailure, FailureKind


class RunFailedError(RunError):
    """Raised by `wait_for_response` for a run that failed; carries the failure from the log."""

    def __init__(self, failure: AgentFailure) -> None:
        super().__init__(failure.message, agent_id=failure.agent_id, **failure.details)
        self._failure = failure

    @property
    def kind(self) -> FailureKind:
        """The failure's row of the table."""
        return FAILURES.get(self._failure.error_code, FAILURES["ERR_INTERNAL"])

    def to_failure(self) -> AgentFailure:
        """The failure from the log."""
        return self._failure
