"""Turns the outcomes of a probe into the record that is stored, and into the profile that the engine works by."""

from collections.abc import Sequence

from agent.llm.profile import CALL_FORMS, CallForm, Count, MeasuredModel, ModelProfile
from gateway.model_probe.probe import ModelProbe, Outcome
from gateway.model_probe.tasks import ANSWERED, TaskKind


def build_record(
    probe: ModelProbe, *, model: str, base_url: str, fingerprint: str, context_tokens: int | None, at: float
) -> MeasuredModel:
    """The record of a probe, complete or not. `at` is UTC seconds since 1970."""
    outcomes = probe.outcomes
    counts = {kind: _count_right(outcomes, kind) for kind in dict.fromkeys(one.kind for one in outcomes)}
    speed = probe.speed
    return MeasuredModel(
        model=model,
        base_url=base_url,
        fingerprint=fingerprint,
        measured_at=at,
        is_complete=probe.is_complete,
        profile=choose_measured_profile(outcomes),
        takes_schema=_count_right(outcomes, "schema").is_whole,
        call_forms=_list_forms(outcomes),
        longest_catalogue=max((int(one.name) for one in outcomes if one.kind == "catalogue" and one.right), default=0),
        context_tokens=context_tokens,
        languages=tuple(one.name for one in outcomes if one.kind == "languages" and one.right),
        follows_verdicts=_count_right(outcomes, "verdicts").is_whole,
        counts=dict(counts),
        first_token_s=speed.first_token_s if speed else 0.0,
        prompt_tokens_per_s=speed.prompt_tokens_per_s if speed else 0.0,
        tokens_per_s=speed.tokens_per_s if speed else 0.0,
        calls=probe.model.calls,
        prompt_tokens=probe.model.prompt_tokens,
        completion_tokens=probe.model.completion_tokens,
        seconds=round(probe.seconds, 1),
    )


def choose_measured_profile(outcomes: Sequence[Outcome]) -> ModelProfile:
    """Chooses how the engine works with the model: the bolder way only where every task of that way was right.

    Plans: all plans were right. No check of answers: whatever way is chosen, no task was answered that needed a call,
    and every round was right. What was not asked is as for an unknown model.
    """
    plans, rounds = _count_right(outcomes, "plans"), _count_right(outcomes, "rounds")
    answered = any(one.note == ANSWERED for one in outcomes)
    return ModelProfile(
        decides="plans" if plans.is_whole and rounds.is_whole else "rounds",
        judges=_count_right(outcomes, "verdicts").is_whole,
        checks_answers=answered or not rounds.is_whole,
    )


def _count_right(outcomes: Sequence[Outcome], kind: TaskKind) -> Count:
    of_kind = [one for one in outcomes if one.kind == kind]
    return Count(sum(one.right for one in of_kind), len(of_kind))


def _list_forms(outcomes: Sequence[Outcome]) -> tuple[CallForm, ...]:
    notes = {one.note for one in outcomes if one.kind == "tools"}
    return tuple(form for form in CALL_FORMS if form in notes)
