"""`ClaimReview`: the checks of one written answer, the single rewrite of what failed, and what remains."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from agent.core.errors import RunError
from agent.core.models import JsonObject
from gateway.features.documents.engine.grounded_answers.answer_builder import AnswerBuilder, BuiltAnswer
from gateway.features.documents.engine.grounded_answers.answer_units import Unit, parse_answer
from gateway.features.documents.engine.grounded_answers.entailment import AskEntailment, EntailmentCheck
from gateway.features.documents.engine.grounded_answers.evidence_checker import CheckedUnit
from gateway.features.documents.engine.grounded_answers.passage_quotes import list_overlooked
from gateway.features.documents.engine.grounded_answers.render import select_presentable, select_supported
from gateway.features.documents.engine.grounded_answers.rewrite import describe_problems, replace_failed
from gateway.features.documents.engine.prompts import render

AskAnswer = Callable[[tuple[JsonObject, ...]], Awaitable[str]]
"""Asks a model for an answer. Raises `ModelError` and `BudgetError`."""


class TailorHallucinationError(RunError):
    """Recorded, not raised, if no claim of a model's answer is supported, also after the rewrite."""

    code = "ERR_TAILOR_HALLUCINATION"


@dataclass(frozen=True, slots=True)
class ReviewResult:
    """The checked units of a whole answer."""

    units: tuple[CheckedUnit, ...]

    @property
    def failed(self) -> list[CheckedUnit]:
        """The units that failed."""
        return [one for one in self.units if one.problem]

    @property
    def claims(self) -> int:
        """The number of claims: of units that are supported or failed."""
        return sum(1 for one in self.units if one.states_fact or one.problem)

    @property
    def has_support(self) -> bool:
        """Whether at least one claim is supported."""
        return any(one.states_fact for one in select_supported(self.units))

    @property
    def is_hopeless(self) -> bool:
        """Whether claims failed and none is supported."""
        return bool(self.failed) and not self.has_support

    def make_failure(self) -> TailorHallucinationError:
        """The failure to record for a hopeless answer."""
        count, problem = len(self.failed), self.failed[0].problem
        message = f"no claim of the answer is supported by the documents ({count} failed; the first: {problem})"
        return TailorHallucinationError(message, agent_id="tailor", sentences=count)


class ClaimReview:
    """Reviews the answer that a model writes for a builder's request. `ask` is the model of the entailment check."""

    def __init__(self, builder: AnswerBuilder, ask: AskEntailment) -> None:
        self._builder = builder
        self._checker = builder.checker
        self._entailment = EntailmentCheck(builder.checker, ask)

    @property
    def skipped_because(self) -> str:
        """Why the meaning of a claim was not checked; empty if it was."""
        return self._entailment.skipped_because

    async def review_text(self, text: str, *, may_be_cut: bool = True) -> ReviewResult:
        """The result for a whole answer. Checks the meaning of all open claims in one call.

        `may_be_cut` as in `parse_answer`.
        """
        return await self._review_units(await asyncio.to_thread(parse_answer, text, may_be_cut=may_be_cut))

    async def review_complete_paragraphs(self, text: str) -> None:
        """Checks the open claims in all paragraphs of a growing answer except the last, which may continue."""
        units = await asyncio.to_thread(parse_answer, text)
        complete = [unit for unit in units if unit.block < units[-1].block] if units else []
        await self._entailment.check(await asyncio.to_thread(self._checker.check, complete))

    async def list_presentable(self, text: str) -> list[CheckedUnit]:
        """The units of a growing answer that can be shown for good."""
        checked = await asyncio.to_thread(lambda: self._checker.check(parse_answer(text, finished=False)))
        return select_presentable(checked)

    async def review_rewrite(self, result: ReviewResult, reply: str) -> ReviewResult:
        """The result after the rewrite of the failed units."""
        return await self._review_units(await asyncio.to_thread(replace_failed, result.units, reply))

    async def build(self, result: ReviewResult, *, adds_overlooked: bool = False) -> BuiltAnswer:
        """The answer of what is supported, or "I don't know" if claims failed and none is.

        `adds_overlooked` quotes passages for those questions of the message that the answer leaves out.
        """
        if result.is_hopeless:
            return self._builder.say_unknown()
        return await asyncio.to_thread(self._build, result, adds_overlooked=adds_overlooked)

    def _build(self, result: ReviewResult, *, adds_overlooked: bool) -> BuiltAnswer:
        units = list(select_supported(result.units))
        if adds_overlooked and self._builder.format.is_plain and any(one.states_fact for one in units):
            cited = {quote.number for one in units for quote in one.list_quotes()}
            units += list_overlooked(self._builder.request, self._builder.checker, cited)
        return self._builder.build(
            units, left_out=len(result.failed), written=result.claims, is_unchecked=bool(self.skipped_because)
        )

    async def _review_units(self, units: Sequence[Unit]) -> ReviewResult:
        checked = await asyncio.to_thread(self._checker.check, units)
        await self._entailment.check(checked)
        return ReviewResult(tuple(self._checker.check(units)))


def make_rewrite_messages(
    messages: Sequence[JsonObject], text: str, failed: Sequence[CheckedUnit]
) -> tuple[JsonObject, ...]:
    """The prompt that asks for the failed sentences again."""
    return (
        *messages,
        {"role": "assistant", "content": text},
        {"role": "user", "content": render("tailor_strict", problems=describe_problems(failed))},
    )
