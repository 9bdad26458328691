"""`DocumentAnswers`: the answers that cite documents, as the completion step asks for them."""

from collections.abc import Sequence

from agent.core.models import PlanStep, rooms_with
from agent.core.run_state import StepResult
from agent.run_context.run import Run
from gateway.features.documents.engine.grounded_answers.answer_tailor import AnswerTailor
from gateway.features.documents.engine.grounded_answers.brief import build_brief


class DocumentAnswers:
    """Implements `EvidenceAnswers` for rooms with `knowledge` or `citations`."""

    rooms = rooms_with(knowledge=True) | rooms_with(citations=True)

    def prepare(
        self,
        run: Run,
        step: PlanStep,
        attempt: int,
        outcomes: Sequence[StepResult],
        *,
        shows_early: bool,
    ) -> AnswerTailor | None:
        """See `EvidenceAnswers.prepare`."""
        brief = build_brief(run, outcomes)
        return AnswerTailor(run, step, attempt, brief, shows_early=shows_early) if brief is not None else None
