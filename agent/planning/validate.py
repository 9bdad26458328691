"""Validates a normalised plan against the catalogue, with every problem in a sentence for the model, and adds the step
that writes the answer."""

import difflib
import re
from collections.abc import Collection, Container, Iterable, Iterator
from itertools import chain, count

from agent.core.errors import PlanInvalidError
from agent.core.json_schema import get_properties, iter_violations
from agent.core.models import STEP_ID_PATTERN, Action, Effect, Executor, JsonObject, Plan, PlanStep, Tier
from agent.core.plan_references import ITEM, find_references, is_literal, list_references
from agent.llm.prompts import format_block
from agent.planning.list_steps import find_list_problems, is_list_call, split_list_inputs
from agent.planning.normalise import RawPlan, RawStep
from agent.planning.reply_schema import COMPLETION
from agent.tools.catalogue import Catalogue, SkillCard, find_worst_effect, is_foreign
from agent.tools.declared_arguments import collect_arguments, list_undeclared_arguments
from agent.tools.extracted_fields import EXTRACT, find_fields_problem
from agent.tools.spec import declares_all

_STEP_ID = re.compile(STEP_ID_PATTERN)


def validate_plan(raw: RawPlan, catalogue: Catalogue, *, max_steps: int, known_ids: Collection[str] = ()) -> Plan:
    """The plan with implicit dependencies and effect classes. Raises `PlanInvalidError` with every problem.

    `known_ids` are completed steps: new steps may refer to them but not redefine them."""
    problems: list[str] = []
    if not 1 <= len(raw.steps) <= max_steps:
        problems.append(f"the plan has {len(raw.steps)} steps; it may have 1 to {max_steps}")
    ids = {raw_step.id for raw_step in raw.steps}.union(known_ids)
    steps = [_build_step(raw_step, raw, catalogue, ids, problems) for raw_step in raw.steps]
    problems += _find_id_problems(steps, known_ids)
    problems += _find_completion_problems(steps)
    ordered = [] if problems else sort_by_dependencies(steps, known_ids)
    if not problems:
        problems += _find_cycle_problems(steps, ordered)
    if problems:
        raise PlanInvalidError(list(dict.fromkeys(problems)))
    return Plan(
        goal=raw.goal,
        language=raw.language,
        steps=tuple(ordered),
        origin="llm",
        reasoning=raw.reasoning,
    )


def _build_step(raw: RawStep, plan: RawPlan, catalogue: Catalogue, ids: set[str], problems: list[str]) -> PlanStep:
    """The plan step of one normalised step, which may refer to the steps `ids`. Adds its problems to
    `problems`."""
    label = f"step {raw.id}"
    if not _STEP_ID.match(raw.id):
        problems.append(f"{label}: an id is a letter and up to 31 letters, digits, - or _; use s1, s2, ...")
    spec = catalogue.get_tool(raw.tool)
    is_list = is_list_call(raw.args, spec)
    referred = find_references(raw.args) - ({ITEM} if is_list else set())
    problems += [f"{label} refers to ${name}, which is not a step of this plan" for name in sorted(referred - ids)]
    depends_on = tuple(dict.fromkeys((*raw.depends_on, *sorted(referred & ids))))
    if raw.tool == COMPLETION:
        return _make_step(raw, depends_on, "litellm", "completion", {}, tier=raw.tier or plan.answer_tier)
    if (card := catalogue.get_skill(raw.tool)) is not None:
        args = raw.args if str(raw.args.get("task") or "").strip() else {**raw.args, "task": raw.intent or plan.goal}
        if not str(args["task"]).strip():
            problems.append(f'{label}: the skill {raw.tool!r} needs an input "task" that says what to do')
        tier = raw.tier or plan.answer_tier  # holds if the skill's text is the answer
        problems += _find_skill_tool_problems(label, raw, card)
        effect = card.effect if raw.tools is None else find_worst_effect(map(card.get_tool_effect, raw.tools))
        return _make_step(raw, depends_on, "skill", "skill", args, effect=effect, tier=tier, tools=raw.tools)
    if spec is not None:
        listed = find_list_problems(raw.args, spec, ids) if is_list else []
        inputs = split_list_inputs(raw.args)[1] if is_list else raw.args
        wrong = (
            *listed,
            *find_argument_problems(spec.input_schema, inputs, takes_any=is_foreign(spec)),
            *_find_fields_problems(raw),
        )
        problems += [f"{label}: {problem}" for problem in wrong]
        return _make_step(raw, depends_on, "agent", spec.step_action, raw.args, effect=spec.effect)
    near = difflib.get_close_matches(raw.tool, catalogue.list_names(), n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    problems.append(f"{label} names {raw.tool!r}, which is neither a skill nor a tool here{hint}")
    return _make_step(raw, depends_on, "agent", "tool", raw.args)


def _find_fields_problems(raw: RawStep) -> list[str]:
    """What is wrong with the fields of an extraction: after it has read something, a new plan would be one that
    untrusted text may have influenced.
    """
    fields = raw.args.get("fields")
    problem = None if raw.tool != EXTRACT or find_references(fields) else find_fields_problem(fields)
    return [problem] if problem is not None else []


def _find_skill_tool_problems(label: str, raw: RawStep, card: SkillCard) -> list[str]:
    """The names in a skill step that are not tools of the skill."""
    tool_names = ", ".join(card.tools) or "none"
    return [
        f"{label}: the skill {card.name!r} has no tool {name!r}; its tools: {tool_names}"
        for name in raw.tools or ()
        if name not in card.tools and name not in card.declared_tools
    ]


def _make_step(
    raw: RawStep,
    depends_on: tuple[str, ...],
    executor: Executor,
    action: Action,
    args: JsonObject,
    *,
    effect: Effect = "read",
    tier: Tier | None = None,
    tools: tuple[str, ...] | None = None,
) -> PlanStep:
    # Unchecked: a step with problems is built too, so that all of the plan's problems are found.
    return PlanStep.model_construct(
        id=raw.id, executor=executor, action=action, tool=raw.tool, args=args, depends_on=depends_on,
        intent=raw.intent, effect=effect, tier=tier, tools=tools, provider=None,
    )  # fmt: skip


def find_argument_problems(schema: JsonObject, args: JsonObject, *, takes_any: bool = False) -> list[str]:
    """The problems of a tool's arguments. A reference fits any type.

    `takes_any`: the tool takes any arguments if its schema declares none at all.
    """
    declared = get_properties(schema)
    unknown: tuple[str, ...] = ()
    if not declares_all(schema, args):
        declared, _ = collect_arguments(schema)
        unknown = list_undeclared_arguments(schema, args, is_foreign=takes_any)
    problems = [f"unknown input {name!r}; known: {', '.join(declared) or 'none'}" for name in unknown]
    unresolved = [
        name for name, value in args.items() if name in declared and (list_references(value) or is_literal(value))
    ]
    if unresolved:
        schema = {**schema, "properties": {**declared, **{name: {} for name in unresolved}}}
    problems += [
        f"input {fault.where!r}: {fault.message[:200]}" if fault.where else fault.message[:200]
        for fault in iter_violations(schema, args)
        if not (fault.path and fault.path[0] in unresolved)  # of a part or a form of the schema
    ]
    return problems


def _find_id_problems(steps: Iterable[PlanStep], known_ids: Collection[str]) -> list[str]:
    steps = list(steps)
    ids = [step.id for step in steps]
    problems = [f"the id {name!r} is used twice" for name in sorted({name for name in ids if ids.count(name) > 1})]
    problems += [f"the id {name!r} belongs to a finished step; use a new one" for name in ids if name in known_ids]
    existing = set(ids) | set(known_ids)
    for step in steps:
        if step.id in step.depends_on:
            problems.append(f"step {step.id} depends on itself")
        problems += [
            f"step {step.id} depends on {name!r}, which is not a step of this plan"
            for name in step.depends_on
            if name not in existing
        ]
    return problems


def _find_completion_problems(steps: list[PlanStep]) -> list[str]:
    completions = [step for step in steps if step.is_completion]
    if len(completions) > 1:
        return ["a plan has at most one completion, which writes the answer"]
    return [
        f"step {step.id} depends on the completion {done.id}; the completion must be the last step"
        for done in completions
        for step in steps
        if done.id in step.depends_on
    ]


def _find_cycle_problems(steps: list[PlanStep], ordered: list[PlanStep]) -> list[str]:
    free = {step.id for step in ordered}
    stuck = [step.id for step in steps if step.id not in free]
    return [f"the steps {', '.join(stuck)} depend on one another in a circle"] if stuck else []


def sort_by_dependencies(steps: list[PlanStep], known_ids: Collection[str]) -> list[PlanStep]:
    """The steps with dependencies first, otherwise in their order. Omits steps in a cycle. A completion depends
    on all other steps, because it receives their results."""
    done = set(known_ids)
    rest = [_let_completion_wait(step, steps) for step in steps]
    ordered: list[PlanStep] = []
    while ready := [step for step in rest if set(step.depends_on) <= done]:
        ordered += ready
        done |= {step.id for step in ready}
        rest = [step for step in rest if step.id not in done]
    return ordered


def _let_completion_wait(step: PlanStep, steps: list[PlanStep]) -> PlanStep:
    if not step.is_completion:
        return step
    others = [other.id for other in steps if other.id != step.id]
    depends_on = tuple(dict.fromkeys((*step.depends_on, *others)))
    return step if depends_on == step.depends_on else step.model_copy(update={"depends_on": depends_on})


def find_leaf_steps(steps: Iterable[PlanStep]) -> list[PlanStep]:
    """The steps that no other step depends on."""
    steps = list(steps)
    used = {name for step in steps for name in step.depends_on}
    return [step for step in steps if step.id not in used]


def finish_plan(
    plan: Plan,
    *,
    needs_completion: bool,
    has_model: bool,
    used_ids: Collection[str] = frozenset(),
    answering_tools: Collection[str] = frozenset(),
) -> Plan:
    """The plan with a completion at its end if it needs one: to join several results, for a persona or
    citations, or to turn a raw tool result into an answer. A skill's single result is the answer, and so is that of a
    plan with one call of one of `answering_tools`.

    `used_ids` are those of earlier plans. A completion with such an id would count as written."""
    if any(step.is_completion for step in plan.steps):
        return plan
    ends = find_leaf_steps(plan.steps)
    answers_alone = len(plan.steps) == 1 and ends[0].tool in answering_tools
    raw = len(ends) == 1 and ends[0].action != "skill" and not answers_alone and has_model
    if len(ends) == 1 and not needs_completion and not raw:
        return plan
    ids = [step.id for step in plan.steps]
    answer = build_completion(ids, {*ids, *used_ids})
    return plan.model_copy(update={"steps": (*plan.steps, answer)})


def iter_free_ids(used_ids: Container[str]) -> Iterator[str]:
    """Yields `s1`, `s2` and so on, without those that are used."""
    return (name for name in map("s{}".format, count(1)) if name not in used_ids)


def build_completion(
    depends_on: Iterable[str] = (), used_ids: Container[str] = (), *, intent: str = "", tier: Tier | None = None
) -> PlanStep:
    """The step that answers from the results of these steps. Its id is `answer`, or `answer2` where that is used."""
    results = tuple(depends_on)
    names = chain(("answer",), map("answer{}".format, count(2)))
    return PlanStep(
        id=next(name for name in names if name not in used_ids),
        executor="litellm",
        action="completion",
        tool=COMPLETION,
        depends_on=results,
        intent=intent or ("answer the user from the results" if results else "answer the user"),
        tier=tier,
    )


def format_problems(problems: Iterable[str]) -> str:
    """Formats problems, which quote the reply, as the list in a second prompt."""
    return format_block("problems", "\n".join(f"- {problem}" for problem in problems))
