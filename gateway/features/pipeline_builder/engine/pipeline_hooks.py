"""The note at the end of answers that build pipelines: that the proposal was not validated, whatever a model says."""

from collections.abc import Sequence

from agent.core.models import rooms_with
from agent.run_context.run import Run
from agent.run_context.run_hooks import RunHooks
from gateway.features.documents.engine.ingest.pipeline_check import parse_pipeline
from gateway.features.pipeline_builder.engine.conversation_store import BuilderConversationStore
from gateway.features.pipeline_builder.engine.subagent_findings import has_report, is_validated

SKILL = "build-pipeline"
NOT_VALIDATED = "The proposed pipeline was not validated yet."
NOT_FINISHED = "The validation of the proposed pipeline did not finish."


class PipelineHooks(RunHooks):
    """The state of the conversation's pipeline in the answers of models. Answers by rule hold it already."""

    name = "pipelines"
    rooms = rooms_with(skill=SKILL)

    def __init__(self, store: BuilderConversationStore) -> None:
        self._store = store

    async def list_caveats(self, run: Run) -> Sequence[str]:
        """See `RunHooks.list_caveats`: none without a proposal, and where its validation finished."""
        if not run.works_with_model:
            return ()
        name = run.state.request.conversation_id or run.run_id
        conversation = await self._store.get(name, run.state.owner)
        if conversation is None or conversation.status != "active" or conversation.pipeline is None:
            return ()
        pipeline = parse_pipeline(conversation.pipeline)
        if is_validated(conversation, pipeline):
            return ()
        return (NOT_FINISHED if has_report(conversation, pipeline) else NOT_VALIDATED,)
