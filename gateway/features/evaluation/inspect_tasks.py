"""The evaluation as an Inspect task: the only module that imports `inspect_ai`.

Inspect reaches a world's gateway as the model `stepgate/ROOM`, over `/v1/chat/completions`. Inspect's own provider for
such endpoints needs openai 3.4, and LiteLLM pins openai 2. The run's trace is stored in the sample's metadata.
`inspect eval gateway/features/evaluation/inspect_tasks.py -T family=tables` works as `stepgate eval` does.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import httpx
from inspect_ai import Task, eval, task  # noqa: A004 - Inspect's public name
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import EvalLog, EvalSample
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageUser,
    GenerateConfig,
    Model,
    ModelAPI,
    ModelCall,
    ModelOutput,
    ModelUsage,
    get_model,
    modelapi,
)
from inspect_ai.scorer import CORRECT, INCORRECT, Score, Scorer, Target, accuracy, grouped, scorer, stderr
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.tool import ToolChoice, ToolInfo

from agent.core.settings.loading import load_settings
from gateway.features.evaluation.conversation import (
    SEED,
    TURN_SECONDS,
    ChatTurn,
    Outcome,
    SendError,
    hold_conversation,
)
from gateway.features.evaluation.report import TaskResult, build_result
from gateway.features.evaluation.scorers import grade_outcome
from gateway.features.evaluation.task_files import EvalTask, select_tasks
from gateway.features.evaluation.task_sets import DEVELOPMENT
from gateway.features.evaluation.world import list_settings, open_world

Progress = Callable[[TaskResult], None]


@task
def stepgate(
    family: str = "", ids: Sequence[str] = (), limit: int = 0, room: str = "", set_name: str = DEVELOPMENT
) -> Task:
    """Builds the Inspect task from the families or ids of a set, separated by commas or as a list; empty means all.

    `room` answers in place of each task's own. The worlds' gateways have the settings of this process.
    """
    families = [name for name in family.split(",") if name]
    return _build_task(select_tasks(families, ids, limit or None, set_name), list_settings(load_settings()), room)


def _build_task(
    chosen: Sequence[EvalTask], settings: dict[str, str], room: str, progress: Progress | None = None
) -> Task:
    """Builds the task from tasks of a set. Inspect writes the parameters of tasks, solvers and scorers into its log, so
    those of this module have none that hold `settings`: keys of models are among them.
    """
    samples = [
        Sample(id=one.id, input=one.turns[0], target=one.solution.answer, metadata={"family": one.family})
        for one in chosen
    ]
    tasks = {one.id: one for one in chosen}
    return Task(
        dataset=MemoryDataset(samples, name="stepgate"),
        solver=_build_solver(tasks, settings, room),
        scorer=_build_scorer(tasks, progress),
        name="stepgate",
    )


def _build_solver(tasks: dict[str, EvalTask], settings: dict[str, str], room: str) -> Solver:
    """The solver that makes the sample's world, holds its conversation with the gateway there, and stores the
    outcome.
    """

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        chosen = tasks[str(state.sample_id)]
        if room:
            chosen = chosen.model_copy(update={"room": room})
        async with open_world(chosen, settings) as world:
            model = get_model(
                f"stepgate/{chosen.room}",
                base_url=f"{world.url}/v1",
                config=GenerateConfig(max_retries=0),
                memoize=False,
            )
            outcome = await hold_conversation(chosen, world, lambda messages: _send(model, state, messages))
        state.metadata["outcome"] = outcome.model_dump(mode="json")
        state.output.completion = outcome.answer
        return state

    @solver
    def converse() -> Solver:
        return solve

    return converse()


async def _send(model: Model, state: TaskState, messages: list[ChatTurn]) -> str:
    """Sends the conversation through Inspect's model, which logs the request and the reply. Raises `SendError`."""
    state.messages = [_to_message(message) for message in messages]
    try:
        state.output = await model.generate(state.messages)
    except GatewayRefusedError as error:
        raise SendError(str(error)) from error
    state.messages.append(state.output.message)
    return state.output.completion


class GatewayRefusedError(Exception):
    """The gateway answered with an error object: the run failed, or the request was refused."""


@modelapi("stepgate")
class StepgateModel(ModelAPI):
    """A room of a gateway as a model of Inspect. It has its own tools; Inspect's are not passed on."""

    async def generate(
        self,
        input: list[ChatMessage],  # noqa: A002 - the base class's name
        tools: list[ToolInfo],
        tool_choice: ToolChoice,
        config: GenerateConfig,
    ) -> tuple[ModelOutput, ModelCall]:
        """Sends the conversation. Raises `GatewayRefusedError`, and httpx's errors if the gateway cannot be reached."""
        body = {
            "model": self.model_name,
            "messages": [{"role": message.role, "content": message.text} for message in input],
            # The answer too: what is measured twice should differ only where the gateway does.
            "temperature": 0,
            "seed": SEED,
        }
        async with httpx.AsyncClient(base_url=self.base_url or "", timeout=TURN_SECONDS) as client:
            response = await client.post("/chat/completions", json=body)
        if not response.is_success:
            raise GatewayRefusedError(response.text[:2000])
        reply = response.json()
        output = ModelOutput.from_content(self.model_name, reply["choices"][0]["message"]["content"] or "")
        usage = reply["usage"]
        output.usage = ModelUsage(
            input_tokens=usage["prompt_tokens"],
            output_tokens=usage["completion_tokens"],
            total_tokens=usage["total_tokens"],
        )
        return output, ModelCall.create(body, reply)


def _to_message(turn: ChatTurn) -> ChatMessage:
    if turn.role == "user":
        return ChatMessageUser(content=turn.content)
    return ChatMessageAssistant(content=turn.content)


def _build_scorer(tasks: dict[str, EvalTask], progress: Progress | None) -> Scorer:
    """The scorer that grades the stored outcome by the task's checks, and reports it to `progress`."""

    async def score(state: TaskState, target: Target) -> Score:
        outcome = Outcome.model_validate(state.metadata["outcome"])
        chosen = tasks[str(state.sample_id)]
        grade = grade_outcome(chosen, outcome)
        if progress is not None:
            progress(build_result(chosen.id, chosen.family, outcome, grade.failures))
        return Score(
            value=CORRECT if grade.is_right else INCORRECT,
            answer=outcome.answer,
            explanation="; ".join(grade.failures) or "every check passed",
            metadata={"failures": grade.failures},
        )

    @scorer(metrics=[grouped(accuracy(), "family", all_label="all"), stderr()])
    def check_outcome() -> Scorer:
        return score

    return check_outcome()


def run_evaluation(
    tasks: Sequence[EvalTask],
    settings: dict[str, str],
    *,
    log_dir: Path,
    parallel: int,
    room: str = "",
    progress: Progress | None = None,
) -> EvalLog:
    """Runs tasks, `parallel` at a time, and writes Inspect's log below `log_dir`. Returns the log.

    `settings` are environment variables of the worlds' gateways. `room` answers in place of each task's own. `progress`
    gets each result as soon as it is graded.
    """
    options: dict[str, Any] = {"display": "none", "log_dir": str(log_dir), "max_samples": parallel}
    [log] = eval(
        _build_task(tasks, settings, room, progress),
        model=None,
        fail_on_error=False,
        log_model_api=True,
        score_display=False,
        **options,
    )
    return log


def read_results(log: EvalLog) -> tuple[TaskResult, ...]:
    """The result of every sample of a log, in the order of their ids."""
    samples = sorted(log.samples or (), key=lambda sample: (sample.metadata["family"], str(sample.id)))
    return tuple(_read_result(sample) for sample in samples)


def _read_result(sample: EvalSample) -> TaskResult:
    family = str(sample.metadata["family"])
    if sample.error is not None or not sample.scores:
        reason = sample.error.message if sample.error is not None else "the sample was not scored"
        lines = reason.splitlines() or ["an error without a message; the log has its trace"]
        return TaskResult(id=str(sample.id), family=family, is_right=False, failures=(lines[0],))
    [score] = sample.scores.values()
    outcome = Outcome.model_validate(sample.metadata["outcome"])
    return build_result(str(sample.id), family, outcome, (score.metadata or {})["failures"])
