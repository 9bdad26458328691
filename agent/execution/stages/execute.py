"""Execute: the plan's DAG. A step starts the moment its own dependencies have succeeded; no waves.

`decide` says what may be done; the crew carries it out as tasks; every task that ends makes us decide again.
"""

import asyncio
from collections.abc import Coroutine

from agent.core.events import StepDiscarded
from agent.execution.decide import Attempt, Command, Discard, Judge, Start, decide
from agent.execution.run import Run
from agent.execution.steps import run_attempt
from agent.execution.supervisor import StepSupervisorAgent


async def execute(run: Run) -> None:
    """Carry out the plan in force until nothing more may be started and nothing is under way."""
    crew = Crew(run)
    try:
        while True:
            commands = decide(run.state, crew.attempts)
            for command in commands:
                await crew.carry_out(command)
            if crew.attempts:
                await crew.next_change()
            elif not commands:
                return
    finally:
        await crew.dismiss()


class Crew:
    """The attempts under way in this process, each a task, and whether it is carried out or judged."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._supervisor = StepSupervisorAgent(run)
        self._tasks: dict[Attempt, asyncio.Task[None]] = {}

    @property
    def attempts(self) -> frozenset[Attempt]:
        """The attempts under way."""
        return frozenset(self._tasks)

    async def carry_out(self, command: Command) -> None:
        """Start what the command asks for; a discard is done at once."""
        match command:
            case Start(step=step, attempt=number):
                self._begin((step.id, number), run_attempt(self._run, command))
            case Judge(step=step, attempt=number):
                self._begin((step.id, number), self._judge(command))
            case Discard(step_id=step_id, attempt=number, reason=reason):
                await self._cancel((step_id, number))
                await self._run.emit(StepDiscarded(reason=reason), step_id=step_id, attempt=number)

    async def next_change(self) -> None:
        """Return when an attempt has ended, or a person has decided; raise what the attempt raised."""
        nudged = self._run.nudged.seen()
        await asyncio.wait((*self._tasks.values(), nudged), return_when=asyncio.FIRST_COMPLETED)
        self._run.nudged.clear()
        done = [task for task in self._tasks.values() if task.done()]
        for attempt, task in list(self._tasks.items()):
            if task in done:
                del self._tasks[attempt]
        for task in done:
            task.result()

    async def dismiss(self) -> None:
        """Cancel whatever is still under way and wait for its end."""
        for attempt in list(self._tasks):
            await self._cancel(attempt)

    def _begin(self, attempt: Attempt, work: Coroutine[None, None, None]) -> None:
        self._tasks[attempt] = asyncio.create_task(work, name=f"{self._run.run_id} {attempt[0]}.{attempt[1]}")

    async def _judge(self, command: Judge) -> None:
        verdict = await self._supervisor.judge(command.step, command.attempt)
        await self._run.emit(verdict, step_id=command.step.id, attempt=command.attempt)

    async def _cancel(self, attempt: Attempt) -> None:
        task = self._tasks.pop(attempt, None)
        if task is not None:
            task.cancel()
            await asyncio.wait([task])
