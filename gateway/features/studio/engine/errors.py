"""`ValidationError` and `RollbackRegistry`: how a change is refused, and how a half-made one is undone."""

from collections.abc import Callable, Sequence

from agent.core.errors import ConflictError, RequestError
from agent.core.failures import AgentFailure


class ValidationError(RequestError):
    """Raised for something that may not be stored. Nothing was changed.

    `stage` names the check that refused it: `identifier`, `fields`, `yaml_parse` or `check_config`. `recoverable` says
    whether other values can succeed. `problems` lists everything that is wrong.
    """

    code = "ERR_VALIDATION"

    def __init__(self, message: str, stage: str, recoverable: bool = True, problems: Sequence[str] = ()) -> None:
        self.problems = tuple(problems) or (message,)
        super().__init__(message, agent_id="studio", stage=stage, problems=[*self.problems])
        self.stage = stage
        self.recoverable = recoverable

    def to_failure(self) -> AgentFailure:
        """Converts this error to its wire form, with its own `recoverable`."""
        return super().to_failure().model_copy(update={"recoverable": self.recoverable})


class VersionConflictError(ConflictError):
    """Raised if the thing to change was changed since the caller read it. Read it again; nothing was changed."""

    def __init__(self, what: str, version: str | None) -> None:
        super().__init__(
            f"{what} was changed by somebody else; read it again and repeat the change",
            agent_id="studio",
            stage="version",
            version=version,
        )


class RollbackRegistry:
    """The operations that undo what was done so far, for changes that no database transaction covers."""

    def __init__(self) -> None:
        self._operations: list[Callable[[], None]] = []

    def register(self, operation: Callable[[], None]) -> None:
        """Adds an operation. It undoes what is done next, and must be harmless if that was not done."""
        self._operations.append(operation)

    def rollback_all(self) -> list[str]:
        """Runs all operations in reverse order and returns the errors of those that failed."""
        errors = []
        for operation in reversed(self._operations):
            try:
                operation()
            except Exception as error:  # noqa: BLE001 - the others are still undone, and all is reported
                errors.append(str(error))
        self._operations.clear()
        return errors

    def clear(self) -> None:
        """Forgets the operations: the change has succeeded."""
        self._operations.clear()
