"""Where in a run a tool is called."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class CallSite:
    """Where a call stands: its step, attempt and number within the attempt (from 1), or within the sub-agent `span`.
    Calls by rule are numbered by themselves: a skill may change over to rules and back."""

    step_id: str
    attempt: int
    ordinal: int = 1
    by: Literal["plan", "rules"] = "plan"
    span: str = ""

    @property
    def call_id(self) -> str:
        """Unique in the run, and the same after a crash."""
        number = f"{'r' if self.by == 'rules' else ''}{self.ordinal}"
        return f"{self.span}/{number}" if self.span else f"{self.step_id}.{self.attempt}.{number}"

    @property
    def place(self) -> str:
        """The call within its attempt: `2`, `r1`, or `2/1` in the sub-agent that call 2 started."""
        return self.call_id.removeprefix(f"{self.step_id}.{self.attempt}.")
