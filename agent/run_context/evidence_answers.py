"""`EvidenceAnswers`: how the completion step asks a feature for an answer whose claims are checked against evidence.

A feature that reads documents registers one (`Extension.evidence_answers`). Without it, answers are plain completions.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from agent.core.events import StepOutput
from agent.core.models import PlanStep, RoomFilter, Tier
from agent.core.run_state import StepResult

if TYPE_CHECKING:
    from agent.run_context.run import Run


class EvidenceWriter(Protocol):
    """Writes one attempt at an answer from the evidence that steps found."""

    @property
    def is_extractive(self) -> bool:
        """Whether all results are passages, so that the answer can be given without a model."""
        ...

    async def quote_passages(self, reason: str, *, tainted: bool) -> StepOutput:
        """The best passages verbatim: the answer without a model. `reason` is why there is none."""
        ...

    async def write(self, feedback: str | None, tier: Tier, why: str, *, tainted: bool) -> StepOutput:
        """The model's answer as far as the evidence supports it. Raises `ModelError` and `BudgetError`."""
        ...


class EvidenceAnswers(Protocol):
    """Decides which answers are written from evidence."""

    @property
    def rooms(self) -> RoomFilter:
        """The rooms whose answers it writes. In others it is not asked."""
        ...

    def prepare(
        self,
        run: "Run",
        step: PlanStep,
        attempt: int,
        outcomes: Sequence[StepResult],
        *,
        shows_early: bool,
    ) -> EvidenceWriter | None:
        """The writer of an answer from at least one result, or None if this answer needs no evidence.

        With `shows_early` the answer is streamed as far as it has been checked."""
        ...
