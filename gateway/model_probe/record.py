"""Turns the outcomes of a probe into the record that is stored, and into the profile that the engine works by."""

from collections.abc import Sequence

from agent.llm.profile import CALL_FORMS, CallForm, Count, MeasuredModel, MeasuredTask, ModelProfile
from gateway.model_probe.probe import ModelProbe, Outcome
from gateway.model_probe.tasks import ANSWERED, PROBE_TASKS, ProbeTask, TaskKind

_DECIDING: tuple[TaskKind, ...] = ("rounds", "plans", "catalogue")
"""The kinds of tasks that a model may answer where a call is needed."""


def build_record(
    probe: ModelProbe,
    *,
    model: str,
    base_url: str,
    fingerprint: str,
    context_tokens: int | None,
    at: float,
    former: MeasuredModel | None = None,
) -> MeasuredModel:
    """The record of a probe, complete or not. `at` is UTC seconds since 1970. `former` is the record that the probe
    went on from: what that took is added.
    """
    outcomes, tasks = probe.outcomes, probe.tasks
    counts = {kind: _count_right(outcomes, kind) for kind in dict.fromkeys(one.kind for one in outcomes)}
    speed = probe.speed
    return MeasuredModel(
        model=model,
        base_url=base_url,
        fingerprint=fingerprint,
        measured_at=at,
        is_complete=probe.is_complete,
        outcomes=()
        if probe.is_complete
        else tuple(MeasuredTask(one.kind, one.name, one.right, one.note) for one in outcomes),
        profile=choose_measured_profile(outcomes, tasks),
        takes_schema=_are_all_right(outcomes, tasks, "schema"),
        call_forms=_list_forms(outcomes),
        longest_catalogue=max((int(one.name) for one in outcomes if one.kind == "catalogue" and one.right), default=0),
        thinks=probe.model.thinks or (former is not None and former.thinks),
        context_tokens=context_tokens,
        languages=tuple(one.name for one in outcomes if one.kind == "languages" and one.right),
        follows_verdicts=_are_all_right(outcomes, tasks, "verdicts"),
        counts=dict(counts),
        first_token_s=speed.first_token_s if speed else 0.0,
        prompt_tokens_per_s=speed.prompt_tokens_per_s if speed else 0.0,
        tokens_per_s=speed.tokens_per_s if speed else 0.0,
        calls=probe.model.calls + (former.calls if former else 0),
        prompt_tokens=probe.model.prompt_tokens + (former.prompt_tokens if former else 0),
        completion_tokens=probe.model.completion_tokens + (former.completion_tokens if former else 0),
        seconds=round(probe.seconds + (former.seconds if former else 0.0), 1),
    )


def choose_measured_profile(outcomes: Sequence[Outcome], tasks: Sequence[ProbeTask] = PROBE_TASKS) -> ModelProfile:
    """Chooses how the engine works with the model: the bolder way only where every task of that way was right.

    Plans: all plans were right. No check of answers: whatever way is chosen, no task was answered that needed a call,
    and every round was right. A kind of which a task was not asked yet counts as for an unknown model.
    """
    rounds = _are_all_right(outcomes, tasks, "rounds")
    answered = any(one.note == ANSWERED for one in outcomes)
    has_asked = all(_is_asked(outcomes, tasks, kind) for kind in _DECIDING)
    return ModelProfile(
        decides="plans" if rounds and _are_all_right(outcomes, tasks, "plans") else "rounds",
        judges=_are_all_right(outcomes, tasks, "verdicts"),
        checks_answers=answered or not rounds or not has_asked,
    )


def _count_right(outcomes: Sequence[Outcome], kind: TaskKind) -> Count:
    of_kind = [one for one in outcomes if one.kind == kind]
    return Count(sum(one.right for one in of_kind), len(of_kind))


def _is_asked(outcomes: Sequence[Outcome], tasks: Sequence[ProbeTask], kind: TaskKind) -> bool:
    """Whether every task of a kind was asked."""
    return {task.name for task in tasks if task.kind == kind} <= {one.name for one in outcomes if one.kind == kind}


def _are_all_right(outcomes: Sequence[Outcome], tasks: Sequence[ProbeTask], kind: TaskKind) -> bool:
    """Whether every task of a kind was asked, and its reply was right."""
    return _is_asked(outcomes, tasks, kind) and all(one.right for one in outcomes if one.kind == kind)


def _list_forms(outcomes: Sequence[Outcome]) -> tuple[CallForm, ...]:
    notes = {one.note for one in outcomes if one.kind == "tools"}
    return tuple(form for form in CALL_FORMS if form in notes)
