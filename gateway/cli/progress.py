"""The live view of a run in the terminal: one line a step, with its verdict, time and tool calls."""

from types import TracebackType
from typing import TYPE_CHECKING, Self

from agent.core import events as ev
from agent.core.models import AgentResponse, Outcome, PlanStep
from gateway.cli import screen

if TYPE_CHECKING:
    from agent.core.service import AgentService
    from agent.execution.run import Run

_MARKS = {
    Outcome.SUCCESS: "[green]✓[/green]",
    Outcome.RETRY: "[yellow]↻[/yellow]",
    Outcome.REPLAN: "[yellow]⤳[/yellow]",
    Outcome.ABORT: "[red]✗[/red]",
}


async def follow(service: "AgentService[Run]", run_id: str, *, quiet: bool = False, heard: int = 0) -> AgentResponse:
    """Show what happens in a run on stderr, from seq `heard` on, until it ends or waits for a person; its response.

    Raises what `AgentService.response` does."""
    if not quiet:
        with Progress(screen.Console(stderr=True)) as progress:
            async for event in service.events(run_id, waits=False, heard=heard):
                if event.seq > heard:
                    progress.show(event)
                else:
                    progress.recall(event)
    return await service.response(run_id, heard=heard)


class Progress:
    """Prints what happens, line by line; works on a terminal and in a log alike."""

    def __init__(self, console: "screen.Console") -> None:
        self._console = console
        self._steps: dict[str, PlanStep] = {}
        self._seconds: dict[tuple[str | None, int | None], float] = {}
        self._status = console.status("Thinking")
        self._told = ""

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._status.stop()

    def recall(self, event: ev.Event) -> None:
        """An event that was shown before."""
        if isinstance(event.body, ev.PlanProposed):
            self._steps |= {step.id: step for step in event.body.plan.steps}

    def show(self, event: ev.Event) -> None:  # noqa: C901, PLR0912 - one case an event
        """One event, as a line where it says something to a person."""
        step = self._steps.get(event.step_id or "")
        match event.body:
            case ev.PlanRejected(problems=problems):
                self._line(f"[yellow]a plan was refused:[/yellow] {_plain(problems[0])}")
            case ev.PlanProposed() as proposed:
                self._plan(proposed)
            case ev.StepStarted() if step is not None:
                self._status.update(_name(step))
            case ev.ToolCalled(tool=tool) if step is not None and step.action == "skill":
                self._line(f"    [dim]{step.id} calls {tool}[/dim]")
            case ev.SubAgentStarted(agent_id=agent_id):
                self._line(f"    [dim]{_plain(agent_id)} begins[/dim]")
            case ev.SubAgentFinished(agent_id=agent_id, result=result):
                self._line(f"    [dim]{_plain(agent_id)}: {_plain(result.summary[:200])}[/dim]")
            case ev.ToolRefused(reason=reason):
                self._line(f"    [yellow]refused:[/yellow] {_plain(reason)}")
            case ev.StepFinished(duration=seconds):
                self._seconds[event.step_id, event.attempt] = seconds
            case ev.StepJudged(verdict=verdict) if step is not None:
                self._judged(step, event.attempt, verdict.outcome, verdict.reason)
            case ev.StepUnknown(message=message):
                self._line(f"[red]?[/red] {_plain(message)}")
            case ev.AnswerChecked(problems=problems, action=action) if problems:
                what = "written again" if action == "retry_strict" else "left out"
                self._line(
                    f"[yellow]{len(problems)} not in the documents, {what}:[/yellow] {_plain(problems[0].reason)}"
                )
            case ev.GateChecked(passed=False, gate=gate, reason=reason):
                self._line(f"[yellow]gate {gate}:[/yellow] {_plain(reason)}")
            case _:
                return

    def _plan(self, proposed: ev.PlanProposed) -> None:
        plan = proposed.plan
        self._steps |= {step.id: step for step in plan.steps}
        by = "model" if proposed.effective == "llm" else "rules"
        count = f"{len(plan.steps)} step{'s' if len(plan.steps) != 1 else ''}"
        self._line(f"[bold]Plan{f' {plan.version + 1}' if plan.version else ''}[/bold] ({by}): {count}")
        if proposed.fallback_reason and proposed.fallback_reason != self._told:
            self._told = proposed.fallback_reason
            self._line(f"  [dim]rules took over: {_plain(proposed.fallback_reason.partition(';')[0])}[/dim]")

    def _judged(self, step: PlanStep, attempt: int | None, outcome: Outcome, reason: str) -> None:
        seconds = self._seconds.get((step.id, attempt), 0.0)
        self._line(f"  {_MARKS[outcome]} {_name(step)} [dim]{seconds:.1f} s[/dim]")
        if outcome is not Outcome.SUCCESS:
            self._line(f"      {outcome.value}: {_plain(reason)}")

    def _line(self, text: str) -> None:
        """A line; cut to the terminal's width, whole where it goes into a file or another program."""
        if self._console.is_terminal:
            self._console.print(text, highlight=False, overflow="ellipsis", no_wrap=True)
        else:
            self._console.print(text, highlight=False, soft_wrap=True)


def _name(step: PlanStep) -> str:
    """A step in one line; an answer needs no more than its name."""
    if step.is_completion:
        return step.title if step.id == step.title else f"{step.id} {step.title}"
    intent = f" [dim]{_plain(step.intent)}[/dim]" if step.intent else ""
    return f"{step.id} {_plain(step.title)}{intent}"


def _plain(text: str, limit: int = 160) -> str:
    """Text of a run, harmless on a terminal: one line, no control characters, no markup."""
    visible = "".join(char if char.isprintable() else " " for char in text)[:limit]
    return visible.replace("[", r"\[")
