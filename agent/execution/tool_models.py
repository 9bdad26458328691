"""`RunModel`: a model for a tool, within the budgets and the log of the run that calls the tool."""

from dataclasses import dataclass

from agent.core.models import JsonObject, Tier
from agent.execution.metering import MeteredModels
from agent.execution.run import Run
from agent.execution.site import CallSite


@dataclass(frozen=True, slots=True)
class RunModel:
    """Implements `Asker` for one call of a tool."""

    run: Run
    site: CallSite

    async def ask(self, messages: tuple[JsonObject, ...], *, tier: Tier = "fast") -> str:
        """See `Asker.ask`."""
        models = MeteredModels(self.run, self.site.step_id, self.site.attempt, span=self.site.span)
        return (await models.complete("tool", messages, tier=tier)).text


def model_at(run: Run, site: CallSite) -> RunModel | None:
    """The model of a call; None where the run works by rules."""
    return RunModel(run, site) if run.works_with_model else None
