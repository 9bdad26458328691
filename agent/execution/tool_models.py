"""`RunModel`: a model for a tool, within the budgets and the log of the calling run."""

from dataclasses import dataclass

from agent.core.models import JsonObject, Tier
from agent.llm.port import ResponseSchema
from agent.run_context.calls import CallSite
from agent.run_context.model_calls import MeteredModels, ModelCall
from agent.run_context.run import Run


@dataclass(frozen=True, slots=True)
class RunModel:
    """Implements `ToolModel` for one tool call."""

    run: Run
    site: CallSite

    async def ask(
        self, messages: tuple[JsonObject, ...], *, tier: Tier = "fast", schema: ResponseSchema | None = None
    ) -> str:
        """See `ToolModel.ask`."""
        models = MeteredModels(self.run, self.site.step_id, self.site.attempt, span=self.site.span)
        return (await models.complete(ModelCall("tool", messages, tier=tier, schema=schema))).text
