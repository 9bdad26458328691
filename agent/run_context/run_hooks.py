"""`RunHooks`: what a feature does in runs beside its tools. `PlanSource`: a way to a first plan.

Hooks and plan sources say which runs they concern (by the room, by rows of the owner, by the request's route): in all
other runs none of the feature's code is called.
"""

from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from agent.core.models import EVERY_ROOM, RoomFilter, RouteKind
from agent.planning.planned import Planned
from agent.planning.request import PlanningRequest
from agent.planning.routing import RunCommand
from agent.storage.sql import OwnedRows, Row
from agent.tools import ToolSpec
from agent.tools.catalogue import Catalogue

if TYPE_CHECKING:
    from agent.run_context.run import Run


class RunHooks:
    """The base class: every method does nothing. `Run.feature_data[name]` holds what `load` returned."""

    name: ClassVar[str]
    heading: ClassVar[str] = ""
    """Stands above its commands in the answer to `/help`."""
    rooms: ClassVar[RoomFilter] = EVERY_ROOM
    """The rooms that it concerns: it is not called in runs of other rooms."""
    owner_rows: OwnedRows | None = None
    """Rows of the owner without which it does not concern a run: it is called only if there are any."""

    @property
    def plan_sources(self) -> Sequence["PlanSource"]:
        """Its ways to a first plan."""
        return ()

    def load(self, run: "Run", rows: Sequence[Row]) -> object:
        """Builds what it keeps of the run's owner while the run is executed. `rows` are those of `owner_rows`.
        Raises `StoreError`."""
        return None

    def list_commands(self, run: "Run") -> Sequence[RunCommand]:
        """The commands that it offers in this run beside the skills."""
        return ()

    def describe_command(self, run: "Run", name: str, rest: str) -> str:
        """The request that a call of its command stands for, for models and people."""
        return rest

    def get_catalogue_key(self, run: "Run") -> Hashable:
        """A value that changes with `list_catalogue_tools`: catalogues are kept by it."""
        return None

    def list_catalogue_tools(self, run: "Run", known: Catalogue) -> Sequence[ToolSpec]:
        """Tools that only the planner sees (`PlanHints.stands_for_steps`)."""
        return ()

    def expand_plan(self, run: "Run", planned: Planned) -> Planned:
        """The plan with steps of its own in place of those tools. Raises `PlanInvalidError` if they do not
        fit."""
        return planned

    async def plan_next(self, run: "Run", request: PlanningRequest) -> Planned | None:
        """The plan that follows its own: the next round, or another way; None if the planner makes it."""
        return None

    async def list_caveats(self, run: "Run") -> Sequence[str]:
        """Sentences that its answer ends with, whatever a model has written. Raises `StoreError`."""
        return ()

    def describe_alternatives(self, run: "Run") -> str:
        """Names where people do by themselves what they ask this room for, if no model can read it; "" if they
        cannot."""
        return ""


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
    """One way to a first plan, in the engine's ordered list of them (`agent.execution.plan_sources`)."""

    name: str
    plan: Callable[["Run", PlanInquiry], Awaitable[Planned | None]]
    """The plan; None if the request is not this source's."""
    before: str = "planner"
    """The source of the kernel that it comes before."""
    routes: tuple[RouteKind, ...] = ()
    """The routes of requests that it concerns; empty: all."""
    rooms: RoomFilter = EVERY_ROOM
    """The rooms that it concerns."""

    def concerns(self, run: "Run", inquiry: PlanInquiry) -> bool:
        """Whether the engine asks it for a plan."""
        return (not self.routes or inquiry.route in self.routes) and self.rooms.matches(run.room)
