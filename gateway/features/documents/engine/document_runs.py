"""`DOCUMENT_EXTENSION`: what documents add to runs: plans of rooms with `knowledge`, and answers with citations."""

from collections.abc import Sequence

from agent.core.models import Plan, PlanStep, rooms_with
from agent.execution.decide import needs_round
from agent.execution.static_plans import make_goal
from agent.planning.planned import Planned, build_ruled
from agent.planning.request import PlanningRequest
from agent.run_context.extensions import Extension
from agent.run_context.run import Run
from agent.run_context.run_hooks import PlanInquiry, PlanSource, RunHooks
from gateway.features.documents.engine.comparisons import build_search_args
from gateway.features.documents.engine.document_search import KNOWLEDGE_TOOL, plan_document_search, plan_next_search
from gateway.features.documents.engine.grounded_answers.document_answers import DocumentAnswers
from gateway.features.documents.engine.request_commands import asks_for_listing

LISTING_TOOL = "list_documents"
KNOWLEDGE_ROOMS = rooms_with(knowledge=True)


class DocumentRuns(RunHooks):
    """A room with `knowledge` looks every question up: its searches are planned, and nothing else."""

    name = "documents"
    rooms = KNOWLEDGE_ROOMS

    @property
    def plan_sources(self) -> Sequence[PlanSource]:
        """Listings, then look-ups. A greeting is answered without a search."""
        return (
            PlanSource("document_listing", plan_listing, before="answer", rooms=KNOWLEDGE_ROOMS),
            PlanSource("knowledge", plan_lookup, before="answer", routes=("plan", "direct"), rooms=KNOWLEDGE_ROOMS),
        )

    async def plan_next(self, run: Run, request: PlanningRequest) -> Planned | None:
        """See `RunHooks.plan_next`: the second round of searches."""
        return await plan_next_search(run, request) if needs_round(run.state) else None


async def plan_listing(run: Run, _: PlanInquiry) -> Planned | None:
    """The question which documents exist. No passage of a document answers it."""
    if not asks_for_listing(run.state.question):
        return None
    return build_ruled(plan_document_listing(run)) if LISTING_TOOL in run.allowed_tools else None


async def plan_lookup(run: Run, inquiry: PlanInquiry) -> Planned | None:
    """Every other question."""
    if KNOWLEDGE_TOOL not in run.engine.registry:
        return None
    return await plan_document_search(run, await inquiry.get_request())


def plan_document_listing(run: Run) -> Plan:
    """The plan for a question about which documents exist. No passage of a document answers it."""
    args = {name: value for name, value in build_search_args(run.state.request.metadata, "").items() if name != "query"}
    intent = "list the documents"
    step = PlanStep(id="s1", executor="agent", action="tool", tool=LISTING_TOOL, args=args, intent=intent)
    return Plan(
        goal=make_goal(run), steps=(step,), origin="rules", origin_reason="a room of knowledge, asked what it has"
    )


DOCUMENT_EXTENSION = Extension("documents", hooks=(DocumentRuns(),), evidence_answers=DocumentAnswers())
