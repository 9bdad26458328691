"""The notes at the end of answers that build pipelines: what was not proposed, validated or applied, whatever a model
says.
"""

from collections.abc import Sequence

from agent.core.models import rooms_with
from agent.run_context.run import Run
from agent.run_context.run_hooks import RunHooks
from gateway.features.documents.engine.ingest.pipeline_check import parse_pipeline
from gateway.features.pipeline_builder.engine.conversation_store import BuilderConversationStore
from gateway.features.pipeline_builder.engine.subagent_findings import has_report, is_validated

SKILL = "build-pipeline"
APPLY = "apply_pipeline"
BUILDING = frozenset({"build_pipeline", "spawn_pipeline_validator", APPLY})
NOT_PROPOSED = "No pipeline was proposed yet."
NOT_APPLIED = "The pipeline was not applied."
NOT_VALIDATED = "The proposed pipeline was not validated yet."
NOT_FINISHED = "The validation of the proposed pipeline did not finish."


class PipelineHooks(RunHooks):
    """The state of the conversation's pipeline in the answers of models. Answers by rule hold it already."""

    name = "pipelines"
    rooms = rooms_with(skill=SKILL)

    def __init__(self, store: BuilderConversationStore) -> None:
        self._store = store

    async def list_caveats(self, run: Run) -> Sequence[str]:
        """See `RunHooks.list_caveats`: none if the proposal's validation finished, and all that was tried worked."""
        if not run.works_with_model:
            return ()
        name = run.state.request.conversation_id or run.run_id
        conversation = await self._store.get(name, run.state.owner)
        if conversation is None or conversation.status != "active":
            return ()
        tried = _list_tried_tools(run)
        if conversation.pipeline is None:
            return (NOT_PROPOSED,) if tried & BUILDING else ()
        pipeline = parse_pipeline(conversation.pipeline)
        caveats = [] if APPLY not in tried else [NOT_APPLIED]
        if not is_validated(conversation, pipeline):
            caveats.append(NOT_FINISHED if has_report(conversation, pipeline) else NOT_VALIDATED)
        return caveats


def _list_tried_tools(run: Run) -> set[str]:
    """The tools that the models of this run asked for, whatever became of the calls."""
    turns = (turn for attempt in run.state.list_attempts() for turn in attempt.turns)
    return {str(call.get("name")) for turn in turns for call in turn.tool_calls}
