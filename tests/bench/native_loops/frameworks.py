"""The frameworks whose loops are measured, and a task's conversation with one of them."""

import asyncio
import contextlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import httpx

from agent.core.errors import ConfigError
from gateway.features.evaluation.conversation import SEED, TURN_SECONDS, Outcome
from gateway.features.evaluation.progress import ProgressFile
from gateway.features.evaluation.report import TaskResult, build_result
from gateway.features.evaluation.scorers import grade_outcome
from gateway.features.evaluation.task_files import EvalTask
from gateway.features.evaluation.world import World, compare_snapshots, open_world
from tests.bench import peer
from tests.bench.endpoint import MAX_TOKENS, Endpoint
from tests.bench.native_loops.loop_door import SimulatedUser, choose_toolsets, open_door
from tests.bench.native_loops.loop_job import Job
from tests.support.processes import ROOT

INSTRUCTIONS = (
    "You are a helpful assistant. Use the tools where the request needs them, and do nothing that was not asked for. "
    "Answer briefly, in the language of the request."
)
MAX_REQUESTS = 20
"""Model calls of one turn. The longest task needs twelve tool calls, which one call may make together."""
TASK_SECONDS = 1800


@dataclass(frozen=True, slots=True)
class Framework:
    """A framework: its name, its package, a module that tells whether it works here, and the module of its loop."""

    name: str
    package: str
    imported: str
    loop: str

    @property
    def requirements(self) -> Path:
        """The pinned requirements of its environment."""
        return peer.find_requirements(self.name)

    @property
    def version(self) -> str:
        """The package with its version."""
        return peer.read_version(self.package, self.requirements)


FRAMEWORKS: Mapping[str, Framework] = {
    one.name: one
    for one in (
        Framework("pydantic-ai", "pydantic-ai-slim", "pydantic_ai.models.openai", "pydantic_ai_loop"),
        Framework("openai-agents", "openai-agents", "agents", "openai_agents_loop"),
    )
}


async def run_framework(
    framework: Framework,
    tasks: Sequence[EvalTask],
    settings: Mapping[str, str],
    endpoint: Endpoint,
    *,
    parallel: int,
    progress: ProgressFile[TaskResult] | None,
    report: Callable[[TaskResult], None],
) -> tuple[TaskResult, ...]:
    """The result of every task, in the order of families and ids. Tasks in `progress` are not run again."""
    slots = asyncio.Semaphore(parallel)

    async def measure(task: EvalTask) -> TaskResult:
        stored = progress.find(framework.name, task.id) if progress is not None else None
        if stored is not None:
            return stored
        async with slots:
            result = await run_task(framework, task, settings, endpoint)
        if progress is not None:
            progress.add(framework.name, result)
        report(result)
        return result

    results = await asyncio.gather(*(measure(task) for task in tasks))
    return tuple(sorted(results, key=lambda result: (result.family, result.id)))


async def run_task(framework: Framework, task: EvalTask, settings: Mapping[str, str], endpoint: Endpoint) -> TaskResult:
    """Makes the task's world, holds its conversation there and grades the outcome as `stepgate eval` does."""
    try:
        async with open_world(task, settings) as world:
            outcome = await hold_conversation(framework, task, world, endpoint)
    except (ConfigError, httpx.HTTPError, OSError) as error:  # not measured, and tried again
        return TaskResult(id=task.id, family=task.family, is_right=False, failures=(str(error) or repr(error),))
    return build_result(task.id, task.family, outcome, grade_outcome(task, outcome).failures)


async def hold_conversation(framework: Framework, task: EvalTask, world: World, endpoint: Endpoint) -> Outcome:
    """The outcome of a task's conversation. A loop that fails has one too, without an answer."""
    before = world.take_snapshot()
    user = SimulatedUser(task.reply)
    async with open_door(world.url, choose_toolsets(task.world), endpoint, user) as door:
        job = Job(
            door=door.url,
            model=endpoint.model,
            instructions=INSTRUCTIONS,
            turns=[world.fill_in(turn) for turn in task.turns],
            tools=await door.list_tools(),
            max_requests=MAX_REQUESTS,
            max_tokens=MAX_TOKENS,
            seed=SEED,
            seconds=TURN_SECONDS,
        )
        done = await _run_process(framework, job)
    return Outcome(
        answer=str(done["answer"]),
        status="failed" if done["error"] else "succeeded",
        error=str(done["error"]),
        changes=compare_snapshots(before, world.take_snapshot()),
        tool_uses=door.uses,
        approvals=user.questions,
        model_calls=door.usage.model_calls,
        tokens=door.usage.total_tokens,
        prompt_tokens=door.usage.prompt_tokens,
        cached_tokens=door.usage.cached_tokens,
        seconds=float(done["seconds"]),
    )


async def _run_process(framework: Framework, job: Job) -> dict[str, Any]:
    """What the framework's process prints; its last words as the error if it prints nothing."""
    process = await asyncio.create_subprocess_exec(
        str(peer.python(framework.requirements)), "-m", f"tests.bench.native_loops.{framework.loop}",
        cwd=ROOT, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        async with asyncio.timeout(TASK_SECONDS):
            printed, complaints = await process.communicate(json.dumps(asdict(job)).encode())
    except TimeoutError:
        return {"answer": "", "error": f"it took more than {TASK_SECONDS} s", "seconds": TASK_SECONDS}
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
    return read_printed(printed.decode("utf-8", "replace"), complaints.decode("utf-8", "replace"))


def read_printed(printed: str, complaints: str) -> dict[str, Any]:
    """The answer that a process printed as its last line; else the last line of its complaints as the error."""
    lines = printed.strip().splitlines()
    try:
        answer: dict[str, Any] = json.loads(lines[-1])
    except (ValueError, IndexError):
        reason = (complaints.strip().splitlines() or ["no output"])[-1]
        return {"answer": "", "error": f"the process failed: {reason}"[:500], "seconds": 0.0}
    return answer
