"""Short status lines about a run, for people. Every view that shows progress uses them."""

from dataclasses import dataclass, field

from agent.core import events as ev
from agent.core.models import Outcome, Plan, PlanStep


@dataclass
class StatusLines:
    """Turns events into status lines. Keeps the plan, to number its steps."""

    plan: Plan | None = None
    started_at: float = 0.0
    sources: int = 0
    retries: int = 0
    finished_steps: set[str] = field(default_factory=set)

    def format_event(self, event: ev.Event) -> str | None:  # noqa: C901, PLR0912 - one case an event
        """The line for an event, or None."""
        match event.body:
            case ev.RunCreated():
                self.started_at = event.at
            case ev.RequestUnderstood(route="plan"):
                return "Planning"
            case ev.PlanRejected():
                return "The plan was rejected; asking again"
            case ev.PlanProposed(plan=plan):
                return self._format_plan(plan)
            case ev.StepStarted(feedback=feedback) if feedback is None or event.attempt == 1:
                return self._format_step("Step", event)
            case ev.StepStarted():
                self.retries += 1
                return self._format_step("Again, step", event)
            case ev.StepJudged(verdict=verdict):
                if verdict.outcome is Outcome.SUCCESS and event.step_id:
                    self.finished_steps.add(event.step_id)
                if verdict.outcome is Outcome.REPLAN:
                    return f"Step {event.step_id} did not help: {verdict.reason}"[:200]
            case ev.SubAgentStarted(agent_id=agent_id):
                return f"{agent_id.replace('_', ' ')} begins"
            case ev.SubAgentFinished(agent_id=agent_id, result=result):
                return f"{agent_id.replace('_', ' ')}: {result.summary}"[:200]
            case ev.AnswerFinished(sources=sources):
                self.sources = len(sources)
            case ev.RunSuspended(reason=reason):
                return reason
            case ev.RunWaiting():
                return "Waiting for approval"
            case _:
                return None
        return None

    def format_headline(self, event: ev.Event) -> str:
        """The last line: outcome, number of steps, sources and retries, time."""
        steps = len(self.finished_steps)
        parts = [f"{steps} step{'s' if steps != 1 else ''}"]
        if self.sources:
            parts.append(f"{self.sources} source{'s' if self.sources != 1 else ''}")
        if self.retries:
            parts.append(f"{self.retries} retr{'ies' if self.retries != 1 else 'y'}")
        parts.append(f"{event.at - self.started_at:.1f} s")
        word = "Done"
        if isinstance(event.body, ev.RunSucceeded) and event.body.awaits_input:
            word = "Waiting for your answer"
        elif isinstance(event.body, ev.RunSucceeded) and event.body.completeness != "complete":
            word = "Stopped early" if event.body.completeness == "aborted" else "Partly done"
        elif isinstance(event.body, ev.RunCancelled):
            word = "Cancelled"
        elif isinstance(event.body, ev.RunFailed):
            word = "Failed"
        elif isinstance(event.body, ev.RunWaiting):
            word = "Waiting for approval"
        return f"{word}: {', '.join(parts)}"

    def find_step(self, step_id: str | None) -> tuple[int, PlanStep] | None:
        """A step of the current plan with its number, counted from 1."""
        steps = self.plan.steps if self.plan else ()
        return next(((n, step) for n, step in enumerate(steps, start=1) if step.id == step_id), None)

    def _format_plan(self, plan: Plan) -> str | None:
        self.plan = plan
        if len(plan.steps) == 1 and plan.steps[0].is_completion:
            return None  # a plan that only answers is not worth a line
        word = "New plan" if plan.version else "Plan"
        return f"{word}: {len(plan.steps)} step{'s' if len(plan.steps) != 1 else ''}"

    def _format_step(self, word: str, event: ev.Event) -> str | None:
        plan_step = self.find_step(event.step_id)
        if plan_step is None or self.plan is None or (len(self.plan.steps) == 1 and plan_step[1].is_completion):
            return None
        number, step = plan_step
        return f"{word} {number}/{len(self.plan.steps)}: {step.title}"
