"""An uncertainty in the last message of a sub-agent."""

from pydantic import Field

from agent.core.models import DeferredModel
from agent.core.subagent_result import Severity, Uncertainty


class ModelUncertainty(DeferredModel):
    """An uncertainty as a model writes it."""

    severity: Severity
    message: str = Field(min_length=1)

    def to_uncertainty(self) -> Uncertainty:
        """Cuts it to 500 characters."""
        return Uncertainty(severity=self.severity, message=self.message[:500])
