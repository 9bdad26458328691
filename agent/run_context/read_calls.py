"""`ReadCalls`: the read-only tool calls of one run, so that identical calls of its steps are made once.

Kept in this process only: a resumed run makes such a call again, which changes nothing.
"""

import asyncio
import json
from dataclasses import dataclass

from agent.core.events import ToolReturned
from agent.core.models import JsonObject, Outcome
from agent.core.run_state import RunState
from agent.run_context.call_site import CallSite


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
