"""The evaluation as an Inspect task: the only module that imports `inspect_ai`.

Inspect reaches a world's gateway with its own OpenAI-compatible provider; the run's trace is stored in the sample's
metadata. `inspect eval gateway/evaluation/inspect_tasks.py -T family=tables` works as `stepgate eval` does.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from inspect_ai import Task, eval, task  # noqa: A004 - Inspect's public name
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import EvalLog
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageUser,
    GenerateConfig,
    Model,
    get_model,
)
from inspect_ai.scorer import CORRECT, INCORRECT, Score, Scorer, Target, accuracy, grouped, scorer, stderr
from inspect_ai.solver import Generate, Solver, TaskState, solver
from openai import APIError

from agent.core.settings_loading import load_settings
from gateway.evaluation.conversation import ChatTurn, Outcome, SendError, hold_conversation
from gateway.evaluation.scorers import grade_outcome
from gateway.evaluation.task_files import EvalTask, select_tasks
from gateway.evaluation.world import list_settings, open_world

TURN_SECONDS = 900
"""Time limit of one turn; a room's own time limit ends a run before it."""


@task
def stepgate(family: str = "", settings: dict[str, str] | None = None, ids: Sequence[str] = (), limit: int = 0) -> Task:
    """Builds the Inspect task from the families or ids, separated by commas or as a list; empty means all.

    `settings` are environment variables of the worlds' gateways; unset: those of this process.
    """
    families = [name for name in family.split(",") if name]
    chosen = select_tasks(families, ids, limit or None)
    environment = list_settings(load_settings()) if settings is None else settings
    samples = [
        Sample(id=one.id, input=one.turns[0], target=one.solution.answer, metadata={"family": one.family})
        for one in chosen
    ]
    return Task(
        dataset=MemoryDataset(samples, name="stepgate"),
        solver=converse({one.id: one for one in chosen}, environment),
        scorer=check_outcome(),
        name="stepgate",
    )


@solver
def converse(tasks: dict[str, EvalTask], settings: dict[str, str]) -> Solver:
    """Makes the sample's world, holds its conversation with the gateway there, and stores the outcome."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        chosen = tasks[str(state.sample_id)]
        async with open_world(chosen, settings) as world:
            model = get_model(
                f"openai-api/stepgate/{chosen.room}",
                base_url=f"{world.url}/v1",
                api_key="none-needed",
                config=GenerateConfig(max_retries=0, timeout=TURN_SECONDS),
                memoize=False,
            )
            outcome = await hold_conversation(chosen, world, lambda messages: _send(model, state, messages))
        state.metadata["outcome"] = outcome.model_dump(mode="json")
        state.output.completion = outcome.answer
        return state

    return solve


async def _send(model: Model, state: TaskState, messages: list[ChatTurn]) -> str:
    """Sends the conversation through Inspect's model, which logs the request and the reply. Raises `SendError`."""
    state.messages = [_to_message(message) for message in messages]
    try:
        state.output = await model.generate(state.messages)
    except (APIError, RuntimeError) as error:
        raise SendError(str(error)) from error
    state.messages.append(state.output.message)
    return state.output.completion


def _to_message(turn: ChatTurn) -> ChatMessage:
    if turn.role == "user":
        return ChatMessageUser(content=turn.content)
    return ChatMessageAssistant(content=turn.content)


@scorer(metrics=[grouped(accuracy(), "family", all_label="all"), stderr()])
def check_outcome() -> Scorer:
    """Grades the stored outcome by the task's checks."""
    tasks = {one.id: one for one in select_tasks()}

    async def score(state: TaskState, target: Target) -> Score:
        outcome = Outcome.model_validate(state.metadata["outcome"])
        grade = grade_outcome(tasks[str(state.sample_id)], outcome)
        return Score(
            value=CORRECT if grade.is_right else INCORRECT,
            answer=outcome.answer,
            explanation="; ".join(grade.failures) or "every check passed",
            metadata={"failures": grade.failures},
        )

    return score


def run_evaluation(
    tasks: Sequence[EvalTask], settings: dict[str, str], *, log_dir: Path, parallel: int, display: str = "none"
) -> EvalLog:
    """Runs the tasks, `parallel` at a time, and writes Inspect's log below `log_dir`. Returns the log."""
    options: dict[str, Any] = {"display": display, "log_dir": str(log_dir), "max_samples": parallel}
    [log] = eval(
        stepgate(settings=settings, ids=[one.id for one in tasks]),
        model=None,
        fail_on_error=False,
        log_model_api=True,
        score_display=False,
        **options,
    )
    return log
