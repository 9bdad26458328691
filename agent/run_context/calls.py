"""Tool calls of a run: `CallSite`, the place of one; `ReadCalls`, the results that identical calls share."""

import asyncio
import json
from dataclasses import dataclass
from typing import Literal

from agent.core.events import ToolReturned
from agent.core.models import JsonObject, Outcome
from agent.core.run_state import RunState


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


@dataclass(frozen=True, slots=True)
class ReadCall:
    """A call that was made, and its result as soon as there is one; None as result if it failed or was interrupted."""

    site: CallSite
    result: asyncio.Future[ToolReturned | None]


class ReadCalls:
    """The results of read-only calls by tool and arguments, since the last call that may have changed something."""

    def __init__(self) -> None:
        self._calls: dict[str, ReadCall] = {}

    def find(self, state: RunState, key: str, site: CallSite) -> ReadCall | None:
        """The call with the same key whose result `site` may use, or None.

        A step that calls a tool again wants a new result, and a rejected result serves no other step either."""
        call = self._calls.get(key)
        if call is None or not call.result.done():
            return call
        if call.site.step_id == site.step_id:
            return None
        attempt = state.get_step(call.site.step_id).find_attempt(call.site.attempt)
        verdict = attempt.verdict if attempt is not None else None
        return call if verdict is None or verdict.outcome is Outcome.SUCCESS else None

    def begin(self, key: str, site: CallSite) -> ReadCall:
        """Records a call that starts now. Its caller sets the result."""
        call = ReadCall(site, asyncio.get_running_loop().create_future())
        self._calls[key] = call
        return call

    def clear(self) -> None:
        """Forgets all results, because a call may have changed what they show."""
        self._calls.clear()


def build_key(tool: str, args: JsonObject, span: str) -> str:
    """The key of a call: the same for the same arguments of the same tool in the same sub-agent.

    A sub-agent's own tools work on its source or pipeline, which is not in the arguments: `enumerate_files {}` of two
    sub-agents side by side are different calls.
    """
    return f"{span} {tool} {json.dumps(args, sort_keys=True, ensure_ascii=False)}"
