"""`RunHooks`: what a feature does in every run beside its tools. The engine asks, and knows no feature."""

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, ClassVar

from agent.planning.planned import Planned
from agent.planning.request import PlanningRequest
from agent.planning.routing import RunCommand
from agent.run_context.plan_sources import PlanSource
from agent.tools import ToolSpec
from agent.tools.catalogue import Catalogue

if TYPE_CHECKING:
    from agent.run_context.run import Run


class RunHooks:
    """The base class: every method does nothing. `Run.feature_data[name]` holds what `load` returned."""

    name: ClassVar[str]
    heading: ClassVar[str] = ""
    """Stands above its commands in the answer to `/help`."""

    @property
    def plan_sources(self) -> Sequence[PlanSource]:
        """Its ways to a first plan."""
        return ()

    async def load(self, run: "Run") -> object:
        """Returns what it keeps of the run's owner while the run is executed. Raises `StoreError`."""
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

    def describe_alternatives(self, run: "Run") -> str:
        """Returns where people do by themselves what they ask this room for, if no model can read it; "" if they
        cannot."""
        return ""
