"""The kernel's plan sources, in order, with those of features among them. The first that has a plan gives it."""

from collections.abc import Sequence
from functools import cache

from agent.answers.answer_without_model import describe_unknown_command
from agent.core.errors import ConfigError
from agent.execution.client_calls import build_continuation
from agent.execution.given_plan import build_given_plan
from agent.execution.open_questions import ask_user
from agent.execution.static_plans import plan_completion_only, plan_explicit_calls, plan_skill
from agent.planning.planned import Planned, build_ruled
from agent.planning.rules import RulePlanner
from agent.run_context.run import Run
from agent.run_context.run_hooks import PlanInquiry, PlanSource


async def find_first_plan(run: Run, inquiry: PlanInquiry) -> Planned:
    """The plan of the first source that has one; the planner always has."""
    for source in order_sources(run.engine.extensions.plan_sources):
        if source.concerns(run, inquiry) and (planned := await source.plan(run, inquiry)) is not None:
            return planned
    raise AssertionError("the planner plans every request")


async def take_given_plan(run: Run, _: PlanInquiry) -> Planned | None:
    """The plan of another run: of one that a client's results continue, or that was forked."""
    given = run.state.given
    if given is None:
        return None
    if given.client_results:
        return Planned(given.plan, "rules", "rules", recorded=tuple(await build_continuation(run, given)))
    proposed, results = await build_given_plan(run, given)
    return Planned(proposed.plan, "rules", "rules", recorded=(proposed, *results))


async def plan_named_calls(run: Run, inquiry: PlanInquiry) -> Planned | None:
    """The tool calls that the request names."""
    return build_ruled(plan_explicit_calls(run, inquiry.why))


async def plan_named_skill(run: Run, inquiry: PlanInquiry) -> Planned | None:
    """The skill that the request calls, or that the room is for."""
    understood = run.state.understanding
    if inquiry.command is None or understood is None:
        return None
    return build_ruled(plan_skill(run, inquiry.command, understood.question, inquiry.why))


async def plan_bare_answer(run: Run, inquiry: PlanInquiry) -> Planned | None:
    """A completion alone, where nothing needs a plan."""
    return build_ruled(plan_completion_only(run, inquiry.why)) if not requires_tools(run) else None


async def plan_command(run: Run, inquiry: PlanInquiry) -> Planned | None:
    """`/help` and its like, and names that nobody knows."""
    if requires_tools(run):
        return None
    if unknown := describe_unknown_command(run):
        return ask_user(run, unknown)
    ruled = RulePlanner().plan(await inquiry.get_request())
    return build_ruled(ruled.model_copy(update={"origin_reason": inquiry.why}))


async def ask_planner(_: Run, inquiry: PlanInquiry) -> Planned | None:
    """The planner, or the rules in its place."""
    return await inquiry.ask_planner()


KERNEL_SOURCES = (
    PlanSource("given", take_given_plan),
    PlanSource("calls", plan_named_calls, routes=("tool_calls",)),
    PlanSource("skill", plan_named_skill, routes=("skill",)),
    PlanSource("answer", plan_bare_answer, routes=("task", "greeting", "direct")),
    PlanSource("command", plan_command, routes=("command",)),
    PlanSource("planner", ask_planner),
)


@cache
def order_sources(further: tuple[PlanSource, ...]) -> Sequence[PlanSource]:
    """All sources in order: each of the features' before the kernel's source that it names.

    Raises `ConfigError` for a name that no source of the kernel has."""
    names_of_kernel = {source.name for source in KERNEL_SOURCES}
    for source in further:
        if source.before not in names_of_kernel:
            names = ", ".join(one.name for one in KERNEL_SOURCES)
            raise ConfigError(
                f"plan source {source.name!r} comes before {source.before!r}, which does not exist; known: {names}"
            )
    return [
        one
        for kernel in KERNEL_SOURCES
        for one in (*(source for source in further if source.before == kernel.name), kernel)
    ]


def requires_tools(run: Run) -> bool:
    """Whether the room requires tools for this request."""
    return run.state.is_gated and bool(run.room.required_tools)
