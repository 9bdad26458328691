"""The errors of making and using generated tools."""

from collections.abc import Sequence

from agent.core.errors import RequestError
from gateway.features.studio.engine.errors import ValidationError


class ReflectionFailed(ValidationError):  # noqa: N818 - the documented name
    """Raised if the last round of a generation is refused. Nothing is stored.

    `stage` names what refused it, `problems` lists why, `rounds` is how many there were.
    """

    def __init__(self, message: str, stage: str, problems: Sequence[str], rounds: int) -> None:
        super().__init__(message, stage, recoverable=True, problems=problems)
        self.rounds = rounds
        self.details["rounds"] = rounds


class SandboxMissingError(RequestError):
    """Raised if this machine has no sandbox for generated tools, or they are switched off."""

    code = "ERR_CONFLICT"

    def __init__(self, message: str) -> None:
        super().__init__(message, agent_id="studio", stage="sandbox")
