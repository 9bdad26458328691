"""`CallSite`: where in a run a tool is called."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class CallSite:
    """The place of a call: its step, attempt and number within the attempt (from 1), or within the sub-agent `span`.

    Calls by rules have their own numbers, because a skill may fall back to rules and return to the model.
    """

    step_id: str
    attempt: int
    ordinal: int = 1
    origin: Literal["plan", "rules"] = "plan"
    span: str = ""
    is_allowed: bool = False
    """Whether the list of calls that this one belongs to was checked as a whole, and allowed by a person if need be."""

    @property
    def call_id(self) -> str:
        """The id of the call, unique in the run and stable after a crash."""
        number = f"{'r' if self.origin == 'rules' else ''}{self.ordinal}"
        return f"{self.span}/{number}" if self.span else f"{self.step_id}.{self.attempt}.{number}"

    @property
    def place(self) -> str:
        """The place within the attempt: `2`, `r1`, or `2/1` in the sub-agent that call 2 started."""
        return self.call_id.removeprefix(f"{self.step_id}.{self.attempt}.")
