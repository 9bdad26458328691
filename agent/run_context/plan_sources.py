"""Plan sources: the ways in which a run gets its first plan, in one ordered list.

The kernel has its own (`agent.execution.plan_sources`): a plan that was given, named tool calls, a skill, a bare
answer, a command, and last the planner. A feature adds a `PlanSource` before one of them.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent.core.models import RouteKind
from agent.planning.planned import Planned
from agent.planning.request import PlanningRequest

if TYPE_CHECKING:
    from agent.run_context.run import Run


class PlanInquiry:
    """What a plan source learns beside the run: how the request was routed, and what a planner would be asked."""

    def __init__(
        self,
        run: "Run",
        build_request: Callable[["Run"], Awaitable[PlanningRequest]],
        ask_planner: Callable[["Run", PlanningRequest], Awaitable[Planned]],
    ) -> None:
        understood = run.state.understanding
        self.route: RouteKind = understood.route if understood else "plan"
        self.why = understood.reason if understood else ""
        """Why the request was routed so."""
        self.command = understood.skill if understood else None
        """The name of the skill or of the feature's command that the request calls."""
        self._run = run
        self._build_request = build_request
        self._ask_planner = ask_planner
        self._request: PlanningRequest | None = None

    async def get_request(self) -> PlanningRequest:
        """The input of planning. Built once, when it is first needed: most routes do without."""
        if self._request is None:
            self._request = await self._build_request(self._run)
        return self._request

    async def ask_planner(self) -> Planned:
        """The plan of the planner or of the rules."""
        return await self._ask_planner(self._run, await self.get_request())


@dataclass(frozen=True, slots=True)
class PlanSource:
    """One way to a plan."""

    name: str
    plan: Callable[["Run", PlanInquiry], Awaitable[Planned | None]]
    """Returns the plan, or None if the request is not this source's."""
    before: str = "planner"
    """The source of the kernel that it comes before."""
