"""Checks the meaning of claims: one call to a model for all claims that are not verbatim quotes.

The model says for each claim whether the passages support it, contradict it, or do not say it, and copies the words it
relies on. Words that no passage contains make the verdict void: the claim then fails.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Literal

from pydantic import Field, ValidationError

from agent.core.errors import BudgetError, ModelError, ModelOutputError, PlanInvalidError
from agent.core.models import FrozenModel, JsonObject
from agent.llm.port import ResponseSchema
from agent.llm.prompts import format_block
from agent.planning.parse import read_first_object
from gateway.features.documents.engine.grounded_answers.evidence_checker import CheckedUnit, EvidenceChecker
from gateway.features.documents.engine.grounded_answers.models import format_place
from gateway.features.documents.engine.prompts import render

PASSAGE_CHARS = 4_000
"""The most that a model is shown of one passage."""
CLAIM_CHARS = 1_500
MAX_CLAIMS = 24
"""The most claims of one call. More would exceed the longest reply of many models."""
CHECK_TOKENS, CLAIM_TOKENS = 200, 160
"""Tokens of a reply: a fixed part, and for each claim with the words it copies."""

AskEntailment = Callable[[tuple[JsonObject, ...], int], Awaitable[str]]
"""Asks a model: messages and the maximum of tokens in, reply out. Raises `ModelError` and `BudgetError`."""

ENTAILMENT_SCHEMA = ResponseSchema(
    "entailment",
    {
        "type": "object",
        "additionalProperties": False,
        "required": ["claims"],
        "properties": {
            "claims": {
                "type": "array",
                "items": {
                    "type": "object",
                    "additionalProperties": False,
                    "required": ["claim", "words", "verdict"],
                    "properties": {
                        "claim": {"type": "integer"},
                        "words": {"type": "array", "items": {"type": "string"}},
                        "verdict": {"type": "string", "enum": ["supported", "contradicted", "not_said"]},
                    },
                },
            }
        },
    },
)


class ClaimVerdict(FrozenModel):
    """The model's verdict on claim number `claim`, and the words of the passages that it rests on."""

    claim: int
    words: tuple[str, ...] = ()
    verdict: Literal["supported", "contradicted", "not_said"]


class _Reply(FrozenModel):
    claims: tuple[ClaimVerdict, ...] = Field(min_length=1)


class EntailmentCheck:
    """Checks the open units of one answer. `skipped_because` is the reason if a check could not be made."""

    def __init__(self, checker: EvidenceChecker, ask: AskEntailment) -> None:
        self._checker = checker
        self._ask = ask
        self.skipped_because = ""

    async def check(self, units: Sequence[CheckedUnit]) -> None:
        """Checks the open ones among the units, and records the results in the `EvidenceChecker`.

        If the model fails or its reply is unreadable, the exact checks decide, and `skipped_because` is set.
        """
        claims = list({one.unit: one for one in units if one.is_open}.values())
        for start in range(0, len(claims), MAX_CLAIMS):
            await self._check_claims(claims[start : start + MAX_CLAIMS])

    async def _check_claims(self, claims: Sequence[CheckedUnit]) -> None:
        try:
            reply = await self._ask(build_messages(self._checker, claims), CHECK_TOKENS + CLAIM_TOKENS * len(claims))
            verdicts = parse_verdicts(reply)
        except (ModelError, BudgetError) as error:
            self.skipped_because = error.message
            for one in claims:
                self._checker.record(one.unit, self._checker.accept_without_entailment(one))
            return
        for number, one in enumerate(claims, start=1):
            self._checker.record(one.unit, self._apply(one, verdicts.get(number)))

    def _apply(self, claim: CheckedUnit, verdict: ClaimVerdict | None) -> CheckedUnit:
        """The claim with the verdict applied. A claim without a verdict fails."""
        if verdict is None:
            return CheckedUnit(claim.unit, problem="the check gave no verdict on it")
        words = " / ".join(word for word in verdict.words if word.strip())[:200]
        if verdict.verdict == "contradicted":
            return CheckedUnit(claim.unit, problem=f"the passages say otherwise: {words!r}" if words else "they differ")
        if verdict.verdict == "not_said":
            return CheckedUnit(claim.unit, problem="the passages do not say this")
        return self._checker.accept(claim, [word for word in verdict.words if word.strip()])


def build_messages(checker: EvidenceChecker, claims: Sequence[CheckedUnit]) -> tuple[JsonObject, ...]:
    """The prompt: the passages that the claims cite (all, if one cites none), and the numbered claims."""
    cited = {number for one in claims for number in one.unit.cites}
    shows_all = any(not one.unit.cites for one in claims)
    parts = [format_block("user_request", checker.question)]
    parts += [
        format_block("result", passage.chunk.content[:PASSAGE_CHARS], number=f"[{passage.number}]", source=place)
        for passage in checker.passages
        if (shows_all or passage.number in cited) and (place := format_place(passage.chunk))
    ]
    parts += [format_block("result", text[:PASSAGE_CHARS]) for text in checker.known]
    for number, one in enumerate(claims, start=1):
        marks = "".join(f"[{cite}]" for cite in one.unit.cites)
        parts.append(format_block("claim", f"{one.unit.text[:CLAIM_CHARS]} {marks}".strip(), number=str(number)))
    return {"role": "system", "content": render("entailment")}, {"role": "user", "content": "\n".join(parts)}


def parse_verdicts(reply: str) -> dict[int, ClaimVerdict]:
    """The verdicts by claim number. Raises `ModelOutputError` if the reply holds none.

    Of two verdicts on one claim, the less favourable counts.
    """
    try:
        listed = _Reply.model_validate(read_first_object(reply)).claims
    except (PlanInvalidError, ValidationError) as error:
        raise ModelOutputError("the reply of the claim check cannot be read", agent_id="tailor") from error
    verdicts: dict[int, ClaimVerdict] = {}
    for one in listed:
        if one.claim not in verdicts or one.verdict != "supported":
            verdicts[one.claim] = one
    return verdicts
