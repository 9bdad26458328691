"""The labelled claims of `tests/support/data/claims`, and the results of checking them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from agent.core.bounded_yaml import load_trusted_yaml
from gateway.features.documents.engine.grounded_answers import CheckedUnit, EvidenceChecker, parse_answer
from gateway.features.documents.engine.grounded_answers.entailment import AskEntailment, EntailmentCheck
from gateway.features.documents.engine.search.models import RetrievedContext

FOLDER = Path(__file__).parent / "data" / "claims"
Half = Literal["development", "measured"]
HALVES: tuple[Half, ...] = ("development", "measured")
Outcome = Literal["released", "rejected", "open"]
EXACT_KINDS = frozenset({"swapped_number", "swapped_unit", "swapped_date"})
"""Kinds of false claims that change a value, which the exact checks can find."""


@dataclass(frozen=True, slots=True)
class LabelledClaim:
    """A claim about a passage: its label, what was done to make it, and the question it answers, if there is one."""

    passage: str
    language: str
    text: str
    label: Literal["supported", "contradicted", "not_said"]
    kind: str
    question: str

    @property
    def is_supported(self) -> bool:
        """Whether the passage says it."""
        return self.label == "supported"


@dataclass(frozen=True, slots=True)
class ClaimOutcome:
    """A claim, what the checks made of it, and why it was rejected."""

    claim: LabelledClaim
    outcome: Outcome
    problem: str = ""


def load_claims(half: Half) -> tuple[dict[str, RetrievedContext], list[LabelledClaim]]:
    """The passages by id, and the claims, of one half of the set."""
    data = load_trusted_yaml((FOLDER / f"{half}.yaml").read_text("utf-8"))
    passages = {
        one["id"]: RetrievedContext(
            chunk_id=one["id"],
            content=one["text"],
            source_id=one["id"],
            relevance_score=1.0,
            metadata={"title": one["title"], "source": one["title"]},
        )
        for one in data["passages"]
    }
    languages = {one["id"]: one["language"] for one in data["passages"]}
    claims = [
        LabelledClaim(
            one["passage"],
            languages[one["passage"]],
            one["claim"],
            one["label"],
            one["kind"],
            one.get("question", ""),
        )
        for one in data["claims"]
    ]
    return passages, claims


async def check_claims(
    passages: dict[str, RetrievedContext], claims: Sequence[LabelledClaim], ask: AskEntailment | None = None
) -> list[ClaimOutcome]:
    """Returns what the exact checks make of each claim and, with `ask`, the check of their meaning.

    The meaning of all claims about a passage is checked in one call, like that of the claims of one answer. Raises
    `RuntimeError` if the model fails."""
    outcomes: list[ClaimOutcome] = []
    for name, passage in passages.items():
        own = [claim for claim in claims if claim.passage == name]
        checker = EvidenceChecker((passage,), " ".join(claim.question for claim in own if claim.question))
        answers = [parse_answer(f"{claim.text.rstrip('.')} [1].") for claim in own]
        if ask is not None:
            check = EntailmentCheck(checker, ask)
            await check.check(checker.check([unit for units in answers for unit in units]))
            if check.skipped_because:
                raise RuntimeError(check.skipped_because)
        outcomes += [_make_outcome(claim, checker.check(units)) for claim, units in zip(own, answers, strict=True)]
    return outcomes


def _make_outcome(claim: LabelledClaim, checked: Sequence[CheckedUnit]) -> ClaimOutcome:
    problem = next((one.problem for one in checked if one.problem), "")
    outcome: Outcome = "rejected" if problem else "open" if any(one.is_open for one in checked) else "released"
    return ClaimOutcome(claim, outcome, problem)
