"""The live view of a run in the terminal: one line a step, with verdict, time and tool calls."""

from types import TracebackType
from typing import TYPE_CHECKING, Self

from agent.core import events as ev
from agent.core.models import AgentResponse, Outcome, PlanStep
from gateway.cli import lazy_rich

if TYPE_CHECKING:
    from agent.run_context.run import Run
    from agent.runs.service import AcceptedRun, AgentService

_MARKS = {
    Outcome.SUCCESS: "[green]✓[/green]",
    Outcome.RETRY: "[yellow]↻[/yellow]",
    Outcome.REPLAN: "[yellow]⤳[/yellow]",
    Outcome.ABORT: "[red]✗[/red]",
}


async def follow_run(service: "AgentService[Run]", run: "AcceptedRun", *, quiet: bool = False) -> AgentResponse:
    """Shows the new events of the run on stderr until it ends or waits for a person. Returns its response.

    Raises what `AgentService.wait_for_response` raises.
    """
    if not quiet:
        with RunProgressView(lazy_rich.Console(stderr=True)) as progress:
            async for event in service.follow_events(run.run_id, owner=run.owner, waits=False, seen_seq=run.last_seq):
                if event.seq > run.last_seq:
                    progress.show(event)
                else:
                    progress.remember(event)
    return await service.wait_for_response(run.run_id, owner=run.owner, seen_seq=run.last_seq)


class RunProgressView:
    """Prints events line by line, on a terminal or into a log."""

    def __init__(self, console: "lazy_rich.Console") -> None:
        self._console = console
        self._steps: dict[str, PlanStep] = {}
        self._seconds: dict[tuple[str | None, int | None], float] = {}
        self._status = console.status("Thinking")
        self._last_fallback = ""

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._status.stop()

    def remember(self, event: ev.Event) -> None:
        """Handles an event that was shown before."""
        if isinstance(event.body, ev.PlanProposed):
            self._steps |= {step.id: step for step in event.body.plan.steps}

    def show(self, event: ev.Event) -> None:  # noqa: C901, PLR0912 - one case an event
        """Prints one event, if it is of interest to a person."""
        step = self._steps.get(event.step_id or "")
        match event.body:
            case ev.PlanRejected(problems=problems):
                self._print_line(f"[yellow]plan rejected:[/yellow] {_escape(problems[0])}")
            case ev.PlanProposed() as proposed:
                self._show_plan(proposed)
            case ev.StepStarted() if step is not None:
                self._status.update(_format_step(step))
            case ev.ToolCalled(tool=tool) if step is not None and step.action == "skill":
                self._print_line(f"    [dim]{step.id} calls {_escape(tool)}[/dim]")
            case ev.SubAgentStarted(agent_id=agent_id):
                self._print_line(f"    [dim]{_escape(agent_id)} begins[/dim]")
            case ev.SubAgentFinished(agent_id=agent_id, result=result):
                self._print_line(f"    [dim]{_escape(agent_id)}: {_escape(result.summary[:200])}[/dim]")
            case ev.ToolRefused(reason=reason):
                self._print_line(f"    [yellow]refused:[/yellow] {_escape(reason)}")
            case ev.StepFinished(duration=seconds):
                self._seconds[event.step_id, event.attempt] = seconds
            case ev.StepJudged(verdict=verdict) if step is not None:
                self._show_verdict(step, event.attempt, verdict.outcome, verdict.reason)
            case ev.StepUnknown(message=message):
                self._print_line(f"[red]?[/red] {_escape(message)}")
            case ev.AnswerChecked(problems=problems, action=action) if problems:
                what = "written again" if action == "retry_strict" else "left out"
                self._print_line(
                    f"[yellow]{len(problems)} not in the documents, {what}:[/yellow] {_escape(problems[0].reason)}"
                )
            case ev.GateChecked(passed=False, gate=gate, reason=reason):
                self._print_line(f"[yellow]gate {gate}:[/yellow] {_escape(reason)}")
            case _:
                return

    def _show_plan(self, proposed: ev.PlanProposed) -> None:
        plan = proposed.plan
        self._steps |= {step.id: step for step in plan.steps}
        by = "model" if proposed.effective == "llm" else "rules"
        count = f"{len(plan.steps)} step{'s' if len(plan.steps) != 1 else ''}"
        self._print_line(f"[bold]Plan{f' {plan.version + 1}' if plan.version else ''}[/bold] ({by}): {count}")
        if proposed.fallback_reason and proposed.fallback_reason != self._last_fallback:
            self._last_fallback = proposed.fallback_reason
            self._print_line(f"  [dim]fallback to rules: {_escape(proposed.fallback_reason.partition(';')[0])}[/dim]")

    def _show_verdict(self, step: PlanStep, attempt: int | None, outcome: Outcome, reason: str) -> None:
        seconds = self._seconds.get((step.id, attempt), 0.0)
        self._print_line(f"  {_MARKS[outcome]} {_format_step(step)} [dim]{seconds:.1f} s[/dim]")
        if outcome is not Outcome.SUCCESS:
            self._print_line(f"      {outcome.value}: {_escape(reason)}")

    def _print_line(self, text: str) -> None:
        """Prints a line: cut to the width of a terminal, whole otherwise."""
        if self._console.is_terminal:
            self._console.print(text, highlight=False, overflow="ellipsis", no_wrap=True)
        else:
            self._console.print(text, highlight=False, soft_wrap=True)


def _format_step(step: PlanStep) -> str:
    """A step as one line; for an answer, only its name."""
    if step.is_completion:
        return _escape(step.title if step.id == step.title else f"{step.id} {step.title}")
    intent = f" [dim]{_escape(step.intent)}[/dim]" if step.intent else ""
    return f"{step.id} {_escape(step.title)}{intent}"


def _escape(text: str, limit: int = 160) -> str:
    """Text of a run that is safe on a terminal: one line, no control characters, no markup."""
    visible = "".join(char if char.isprintable() else " " for char in text)[:limit]
    return lazy_rich.escape(visible)
