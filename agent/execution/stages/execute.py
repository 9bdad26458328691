"""Execute: runs the plan's DAG. A step starts as soon as its own dependencies have succeeded; there are no waves.

`decide` returns the commands and `StepTasks` runs them as tasks. The loop decides again after every task.
"""

import asyncio
from collections.abc import Coroutine

from agent.core.cancellation import cancel_and_wait
from agent.core.events import StepDiscarded
from agent.execution.client_calls import call_client_tools
from agent.execution.decide import Attempt, Command, Discard, Judge, Start, decide
from agent.execution.open_questions import ask_open_question
from agent.execution.steps import run_attempt
from agent.execution.supervisor import StepSupervisorAgent
from agent.run_context.run import Run


async def execute(run: Run) -> None:
    """Executes the current plan until no step may start and no task is running."""
    tasks = StepTasks(run)
    try:
        while True:
            commands = decide(run.state, tasks.attempts)
            if len(commands) == 1 and not tasks.attempts and not run.state.pending_approvals:
                await tasks.execute_alone(commands[0])  # nothing else can start before its end
                continue
            for command in commands:
                await tasks.execute_command(command)
            if tasks.attempts:
                await tasks.wait_for_change()
            elif not commands:
                break
        if run.state.subagents:
            await ask_open_question(run)
        if run.state.client_tool_names:
            await call_client_tools(run)
    finally:
        await tasks.cancel_all()


class StepTasks:
    """The attempts that this process executes or judges, one task each."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._supervisor = StepSupervisorAgent(run)
        self._tasks: dict[Attempt, asyncio.Task[None]] = {}

    @property
    def attempts(self) -> frozenset[Attempt]:
        """The running attempts."""
        return frozenset(self._tasks)

    async def execute_command(self, command: Command) -> None:
        """Starts the task of a command. A discard takes effect at once."""
        match command:
            case Start(step=step, attempt=number):
                self._start_task((step.id, number), run_attempt(self._run, command))
            case Judge(step=step, attempt=number):
                self._start_task((step.id, number), self._judge(command))
            case Discard(step_id=step_id, attempt=number, reason=reason):
                await self._cancel((step_id, number))
                await self._run.emit(StepDiscarded(reason=reason), step_id=step_id, attempt=number)

    async def execute_alone(self, command: Command) -> None:
        """Executes a command to its end, without a task."""
        match command:
            case Start():
                await run_attempt(self._run, command)
            case Judge():
                await self._judge(command)
            case Discard():
                await self.execute_command(command)

    async def wait_for_change(self) -> None:
        """Waits until an attempt ends or a person decides. Raises an attempt's error."""
        nudged = self._run.decision_made.get_future()
        await asyncio.wait((*self._tasks.values(), nudged), return_when=asyncio.FIRST_COMPLETED)
        self._run.decision_made.clear()
        done = [task for task in self._tasks.values() if task.done()]
        for attempt, task in list(self._tasks.items()):
            if task in done:
                del self._tasks[attempt]
        for task in done:
            task.result()

    async def cancel_all(self) -> None:
        """Cancels all tasks and waits for their end."""
        for attempt in list(self._tasks):
            await self._cancel(attempt)

    def _start_task(self, attempt: Attempt, work: Coroutine[None, None, None]) -> None:
        self._tasks[attempt] = asyncio.create_task(work, name=f"{self._run.run_id} {attempt[0]}.{attempt[1]}")

    async def _judge(self, command: Judge) -> None:
        verdict = await self._supervisor.judge(command.step, command.attempt)
        await self._run.emit(verdict, step_id=command.step.id, attempt=command.attempt)

    async def _cancel(self, attempt: Attempt) -> None:
        task = self._tasks.pop(attempt, None)
        if task is not None:
            await cancel_and_wait(task)
